"""Policies that look at one node at a time, for authors who do not want to use columns (yet).

    @per_node
    class OnSsd:
        def fits(self, pod: Pod, node: OneNode) -> str | None:
            return None if node.labels.get("disk") == "ssd" else "node(s) had no ssd"

        def rate(self, pod: Pod, node: OneNode) -> int:
            return node.free("cpu") * 100 // node.allocatable("cpu")

`fits` becomes `filter`, `rate` becomes `score`. Such a policy is slow, since Python looks at every node. It can serve
later as the twin that checks a version with arrays (`check_plugin(twin=…)` in `plugin_checks`). A cluster policy works
in the same way, with `fits(placement, cluster)` and `rate(placement, cluster)`.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.decision import Reject
from stowplan.objects.pods import Pod

# Why a node is rejected; as a pair with False if evictions cannot help.
Refusal: TypeAlias = str | tuple[str, bool]


class Fits(Protocol):
    def fits(self, pod: Pod, node: OneNode) -> Refusal | list[Refusal] | None:
        """Return None to accept the node, else the reason against it, or a list of reasons."""


class Rates(Protocol):
    def rate(self, pod: Pod, node: OneNode) -> int:
        """Return a score of 0 to 100; the highest is the best."""


Policy = TypeVar("Policy")


def per_node(policy: type[Policy]) -> type[Policy]:
    """Make a plugin of a class with `fits`, `rate` or both. A `filter` or `score` that the class has is kept.

    @per_node
    class OnSsd:
        def fits(self, pod: Pod, node: OneNode) -> str | None:
            return None if node.labels.get("disk") == "ssd" else "node(s) had no ssd"
    """
    for own, point, adapted in (("fits", "filter", filter_each), ("rate", "score", score_each)):
        if hasattr(policy, own) and not hasattr(policy, point):
            setattr(policy, point, adapted)
    if not hasattr(policy, "filter") and not hasattr(policy, "score"):
        raise TypeError(f"{policy.__name__} has neither fits(pod, node) nor rate(pod, node)")
    return policy


def filter_each(policy: Fits, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
    """Filter by `fits`. A node's reasons keep their order: first the first reason of all nodes, then the second …"""
    found = [refusals(policy.fits(pod, node), node.name) for node in nodes]
    for turn in range(max(map(len, found), default=0)):
        given = [each[turn] if turn < len(each) else None for each in found]
        for reason in dict.fromkeys(each[0] for each in given if each is not None):
            yield Reject(_mask(given, {(reason, True), (reason, False)}), reason, _mask(given, {(reason, True)}))


def score_each(policy: Rates, pod: Pod, nodes: Nodes) -> Ints:
    """Score by `rate`."""
    return np.fromiter((_rating(policy.rate(pod, node), node.name) for node in nodes), np.int64, len(nodes))


def _mask(given: list[tuple[str, bool] | None], wanted: set[tuple[str, bool]]) -> Bools:
    return np.array([each in wanted for each in given], np.bool_)


def refusals(answer: Any, node: str) -> list[tuple[str, bool]]:
    """Return an answer of `fits` as pairs of a reason and whether evictions can help; none: the node is accepted."""
    each = answer if isinstance(answer, list) else [] if answer is None else [answer]
    return [_refusal(refusal, node) for refusal in each]


def _refusal(answer: Any, node: str) -> tuple[str, bool]:
    match answer:
        case str(reason):
            return reason, True
        case (str(reason), bool(resolvable)):
            return reason, resolvable
    raise TypeError(f"fits answered {answer!r} for {node}; None, a reason or (reason, resolvable) was due")


def _rating(answer: Any, node: str) -> int:
    try:
        return operator.index(answer)
    except TypeError:
        raise TypeError(f"rate answered {answer!r} for {node}; a whole number was due") from None
