"""How nodes rank under a WorkloadPolicy: first by how their domain stands.

    3  OPEN       fewer pods than desired: the proportionally emptiest first (Balance), or the fullest (Fill)
    2  FILLED     as many or more: the smaller the share that is too much, the better
    1  OUTSIDE    no domain, one that is not listed, or one where none is desired: these score 0

Within a domain the policy's pods on each node tell them apart, as far as no domain is outweighed by it: see `ranked`.
"""

from __future__ import annotations

from collections.abc import Sequence
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
PER_MILLION = 1_000_000  # the parts by which what is too much is compared
UPWARDS = np.arange(MAX_SCORE + 1, dtype=np.uint8)


class DomainLevel(NamedTuple):
    """How a domain stands; the greater, the better. `wish` is its score by the formula, `then` decides among equals."""

    place: int
    wish: int = 0
    then: int = 0


class Domain(NamedTuple):
    """A listed one that has some of the nodes: the fewest and the most of the policy's pods that one of them has."""

    code: int
    standing: DomainLevel
    fewest: int
    most: int


def scores(rule: AllocationRule, tally: Tally, nodes: Nodes) -> Bytes:
    """Nodes of one domain with equally many of the policy's pods are alike, so each such sort is ranked once."""
    label, cluster = nodes.label(rule.topology_key), nodes.cluster
    if label.distinct:  # hostnames, say: a domain is one node
        sort, width = label.codes, 1
        there = np.bincount(sort, minlength=label.size)
    else:
        counts = cluster.domain_counts(tally, label.key)
        sort, width = nodes.pick(counts.pair_of), counts.width
        there = counts.rows if nodes is cluster.nodes else np.bincount(sort, minlength=label.size * width)
    domains, inside = _domains(rule, label, cluster.by_domain(tally, label.key), there.reshape(-1, width))
    by_sort = _by_sort(domains, inside < len(nodes), rule.fills, label.size, width)
    return by_sort.take(sort)


@lru_cache(maxsize=64)
def _by_sort(domains: tuple[Domain, ...], outside: bool, fills: bool, size: int, width: int) -> Bytes:
    """The score of each sort. One more pod seldom changes how any domain stands, so the last answers are kept."""
    ranks = _ranks(domains, outside=outside)
    by_sort = np.zeros((size, width), np.uint8)
    for code, stands, fewest, most in domains:
        top, fall = ranks[stands]
        by_sort[code] = top - fall
        steps = min(fall, most - fewest)
        if fills:
            by_sort[code, most - steps : most + 1] = UPWARDS[top - steps : top + 1]
        else:
            by_sort[code, fewest : fewest + steps + 1] = UPWARDS[top - steps : top + 1][::-1]
    return by_sort.ravel()


def _domains(rule: AllocationRule, label: Labels, counts: Ints, there: Ints) -> tuple[tuple[Domain, ...], int]:
    """The listed domains that have nodes, but for those where none is desired; and how many nodes are in them.

    `there` has, for each domain by its label's code, how many nodes there are with 0, 1, 2 … pods.
    """
    domains, inside = [], 0
    for name, desired in rule.desired.items():
        code = label.code(name) if desired else None
        numbers = [] if code is None else there[code].tolist()
        if code is not None and any(numbers):
            fewest, most = 0, len(numbers) - 1
            while not numbers[fewest]:
                fewest += 1
            while not numbers[most]:
                most -= 1
            domains.append(Domain(code, standing(rule, desired, int(counts[code])), fewest, most))
            inside += sum(numbers)
    return tuple(domains), inside


def standing(rule: AllocationRule, desired: int, count: int) -> DomainLevel:
    if count >= desired:
        return DomainLevel(FILLED, 0, -(PER_MILLION * (count - desired) // desired))
    if rule.fills:
        return DomainLevel(OPEN, MAX_SCORE * count // desired, desired - count)
    return DomainLevel(OPEN, MAX_SCORE * (desired - count) // desired)


def _ranks(domains: Sequence[Domain], *, outside: bool) -> dict[DomainLevel, tuple[int, int]]:
    """What the best nodes of domains that stand like this score, and how far others may fall below that."""
    steps = {DomainLevel(OUTSIDE): 0} if outside else {}
    for _, stands, fewest, most in domains:
        steps[stands] = max(steps.get(stands, 0), most - fewest)
    levels = sorted(steps)
    split = sum(each.place < OPEN for each in levels)
    found = ranked([each.wish for each in levels], [steps[each] for each in levels], split=split)
    return dict(zip(levels, found, strict=True))
