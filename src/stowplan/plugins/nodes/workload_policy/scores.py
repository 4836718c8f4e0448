"""The scores of nodes under a WorkloadPolicy: first by the level of their domain.

    3  OPEN       fewer pods than desired: the proportionally emptiest is best (Balance), or the fullest (Fill)
    2  FILLED     as many as desired or more: the smaller the excess in proportion, the better; with percentages, the
                  domain whose next place would come first
    1  OUTSIDE    no domain, a domain that is not listed, or one where no pod is desired: these nodes score 0

Nodes of one domain are ranked by the policy's pods on each of them, if that leaves the order of domains: see `ranked`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from stowplan.columns.arrays import Bytes, Ints
from stowplan.columns.nodes.column_types import Labels
from stowplan.columns.nodes.views import Nodes
from stowplan.columns.tally import Tally
from stowplan.framework.level_scores import ranked
from stowplan.framework.scoring import MAX_SCORE
from stowplan.objects.workload_policies import AllocationRule

OUTSIDE, FILLED, OPEN = 1, 2, 3
PER_MILLION = 1_000_000  # the unit of an excess
UPWARDS = np.arange(MAX_SCORE + 1, dtype=np.uint8)


class DomainLevel(NamedTuple):
    """The level of a domain; a greater one is better. `score` is by the formula, `tie_break` orders equal scores."""

    stage: int
    score: int = 0
    tie_break: int = 0


class Domain(NamedTuple):
    """A listed domain that has nodes, with the fewest and the most of the policy's pods on one of its nodes."""

    code: int
    level: DomainLevel
    fewest: int
    most: int


def scores(rule: AllocationRule, desired: Mapping[str, int], tally: Tally, nodes: Nodes) -> Bytes:
    """Return the scores of these nodes. `desired`: how many pods each listed domain should have.

    Nodes of one domain with the same number of the policy's pods form a class and score the same.
    """
    label, cluster = nodes.label(rule.topology_key), nodes.cluster
    if label.distinct:  # such as hostnames: a domain is one node
        class_of, width = label.codes, 1
        sizes = np.bincount(class_of, minlength=label.size)
    else:
        classes = cluster.domain_counts(tally, label.key)
        class_of, width = nodes.pick(classes.pair_of), classes.width
        sizes = classes.rows if nodes is cluster.nodes else np.bincount(class_of, minlength=label.size * width)
    domains, inside = _domains(rule, desired, label, cluster.by_domain(tally, label.key), sizes.reshape(-1, width))
    by_class = _by_class(domains, inside < len(nodes), rule.fills, label.size, width)
    return by_class.take(class_of)


@lru_cache(maxsize=64)
def _by_class(domains: tuple[Domain, ...], outside: bool, fills: bool, size: int, width: int) -> Bytes:
    """Return the score of each class. One more pod seldom changes a domain's level, so a cache is worthwhile."""
    ranks = _ranks(domains, outside=outside)
    by_class = np.zeros((size, width), np.uint8)
    for code, level, fewest, most in domains:
        top, fall = ranks[level]
        by_class[code] = top - fall
        steps = min(fall, most - fewest)
        if fills:
            by_class[code, most - steps : most + 1] = UPWARDS[top - steps : top + 1]
        else:
            by_class[code, fewest : fewest + steps + 1] = UPWARDS[top - steps : top + 1][::-1]
    return by_class.ravel()


def _domains(
    rule: AllocationRule, wanted: Mapping[str, int], label: Labels, counts: Ints, sizes: Ints
) -> tuple[tuple[Domain, ...], int]:
    """Return the listed domains with nodes, except those where no pod is desired; and how many nodes are in them.

    `sizes` has, for each domain by its label's code, the number of nodes with 0, 1, 2 … pods.
    """
    domains, inside = [], 0
    for name, desired in wanted.items():
        code = label.code(name) if rule.weights[name] else None
        numbers = [] if code is None else sizes[code].tolist()
        if code is not None and any(numbers):
            fewest, most = 0, len(numbers) - 1
            while not numbers[fewest]:
                fewest += 1
            while not numbers[most]:
                most -= 1
            count = int(counts[code])
            domains.append(Domain(code, _level(rule, desired, count, rule.weights[name]), fewest, most))
            inside += sum(numbers)
    return tuple(domains), inside


def _level(rule: AllocationRule, desired: int, count: int, weight: int) -> DomainLevel:
    """With percentages a domain may have no place at all now."""
    if count >= desired and rule.by_shares:
        return DomainLevel(FILLED, 0, -(PER_MILLION * (2 * count + 1) // weight))
    if count >= desired:
        return DomainLevel(FILLED, 0, -(PER_MILLION * (count - desired) // desired))
    if rule.fills:
        return DomainLevel(OPEN, MAX_SCORE * count // desired, desired - count)
    return DomainLevel(OPEN, MAX_SCORE * (desired - count) // desired)


def _ranks(domains: Sequence[Domain], *, outside: bool) -> dict[DomainLevel, tuple[int, int]]:
    """Return for each level the score of its best nodes, and how far its other nodes may be below that."""
    steps = {DomainLevel(OUTSIDE): 0} if outside else {}
    for _, level, fewest, most in domains:
        steps[level] = max(steps.get(level, 0), most - fewest)
    levels = sorted(steps)
    split = sum(each.stage < OPEN for each in levels)
    found = ranked([each.score for each in levels], [steps[each] for each in levels], split=split)
    return dict(zip(levels, found, strict=True))
