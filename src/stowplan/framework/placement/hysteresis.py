"""Hysteresis: small changes of scores move nothing. It is off unless somebody asks for it.

A placement says how much its scores vary, in points up and down, by the annotation `stowplan.io/hysteresis`; without
one a default of the program counts. While each score stays within ±N of what it was when the clusters were chosen, a
total can rise by N times the weights, and another one fall by as much. So a chosen cluster stays until another one has
more than 2 × N × weights on it. These are the weights of prioritizers that measure: scores of add-ons, amounts of
resources, and policies of others. Balance, Steady and taints do not vary by themselves.

What was chosen is known from the PlacementDecisions, so a restart changes nothing. A cluster that a filter drops goes,
whatever its score.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.framework.placement.choice import MISCONFIGURED, ClusterPluginStatus
from stowplan.framework.placement.policy import ClusterPolicy
from stowplan.framework.placement.weights import WeightedPrioritizers
from stowplan.objects.placements import Placement

ANNOTATION = "stowplan.io/hysteresis"
MOST = 100  # points up and down: the whole range of a score


def noise(placement: Placement, default: int) -> int | ClusterPluginStatus:
    """Return by how many points a placement's scores may vary; 0: there is no hysteresis."""
    given = placement.annotations.get(ANNOTATION)
    if given is None:
        return default
    if given.isascii() and given.isdecimal() and len(given) <= 3 and int(given) <= MOST:
        return int(given)
    path, remedy = f"metadata.annotations[{ANNOTATION}]", f"write a number from 0 to {MOST}, such as 5"
    return ClusterPluginStatus(MISCONFIGURED, "", f"found {given[:80]!r}", path, remedy)


def margin(points: int, prioritizers: WeightedPrioritizers, policy: ClusterPolicy) -> int:
    """Return by how much another cluster's total must exceed that of a chosen one, to take its place."""
    if not points:
        return 0
    measured = (abs(weight) for enabled, weight in prioritizers if not policy.hook(enabled, "exact"))
    return 2 * points * sum(measured)


def favoured(totals: Ints, chosen: Bools, margin: int) -> Ints:
    """Return the totals with an advantage for clusters that are chosen. It outweighs a difference of `margin`."""
    return totals + np.where(chosen, margin + 1, 0) if margin else totals


def ordered(names: Sequence[str], totals: Mapping[str, int], margin: int) -> list[str]:
    """Order names by total, the highest first. One goes before another only if it has more than `margin` on it.

    `names` are in the order so far. Each name comes right after the last one that it has no more than `margin` on. Such
    a last one has more than all names after it, so those alone are searched (`peaks`, from the end to the beginning).
    """
    after: dict[str, str] = {}  # the next name, by name; "" is the beginning and the end
    peaks: list[str] = []
    heights: list[int] = []  # their totals, which rise
    for name in names:
        total = totals[name]
        least = bisect_left(heights, total - margin)
        before = peaks[least] if least < len(peaks) else ""
        after[name], after[before] = after.get(before, ""), name
        lower = bisect_right(heights, total)  # these are no peaks any more
        heights[least:lower], peaks[least:lower] = [total], [name]
    found: list[str] = []
    while name := after.get(found[-1] if found else "", ""):
        found.append(name)
    return found
