"""NodeResourcesBalancedAllocation: prefer nodes whose resources are used more evenly with the pod (Kubernetes 1.36).

Balance is 100 minus the deviation of the used fractions, in percent. The score is by the change of the balance: 75 for
no change, up to 100 for the greatest improvement, down to 50.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stowplan.columns.arrays import Bools, Floats, Ints
from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.scoring import MAX_SCORE, int64
from stowplan.objects import requests
from stowplan.objects.pods import Pod


class NodeResourcesBalancedAllocation:
    configurable_at = ("preScore",)
    scores_by_row = True

    def __init__(self, resources: Sequence[Mapping[str, Any]] = ({"name": "cpu"}, {"name": "memory"})) -> None:
        """`resources`: the resources to balance."""
        self._resources = [resource["name"] for resource in resources]

    def score(self, pod: Pod, nodes: Nodes) -> Ints | None:
        wanted = {name: pod.shape.balanced.get(name, 0) for name in self._resources}
        if not any(wanted.values()):
            return None
        counted = [
            each for each in wanted if requests.is_counted(each) and (wanted[each] or not requests.is_scalar(each))
        ]
        offered = [nodes.allocatable[name] for name in counted]
        taken = [nodes.requested[name] for name in counted]
        with_pod = [used + wanted[name] for name, used in zip(counted, taken, strict=True)]
        if len(counted) == 2 and all(column.all() for column in offered):
            deviation = _of_two(taken, with_pod, offered)
        else:
            present = [column != 0 for column in offered]
            deviation = np.array([_deviation(taken, offered, present), _deviation(with_pod, offered, present)])
        before, after = ((1 - deviation) * MAX_SCORE).astype(np.int64)
        return np.asarray((after - before + MAX_SCORE // 2) // 2 + MAX_SCORE // 2)

    def rate(self, pod: Pod, node: OneNode) -> int:
        before: list[float] = []
        after: list[float] = []
        for name in self._resources:
            wanted = pod.shape.balanced.get(name, 0)
            room = node.allocatable(name)
            if not room or not requests.is_counted(name) or (not wanted and requests.is_scalar(name)):
                continue
            used = node.requested(name)
            before.append(min(float(used) / float(room), 1.0))
            after.append(min(float(int64(used + wanted)) / float(room), 1.0))
        change = int((1 - _deviation_of_one(after)) * MAX_SCORE) - int((1 - _deviation_of_one(before)) * MAX_SCORE)
        return (change + MAX_SCORE // 2) // 2 + MAX_SCORE // 2


def _deviation_of_one(fractions: list[float]) -> float:
    """Return half the difference of two, the standard deviation of more, else 0."""
    if len(fractions) == 2:
        return abs((fractions[0] - fractions[1]) / 2)
    if len(fractions) < 2:
        return 0.0
    total = squares = 0.0
    for fraction in fractions:  # in this order: floating-point sums depend on it
        total += fraction
    mean = total / len(fractions)
    for fraction in fractions:
        squares += (fraction - mean) * (fraction - mean)
    return math.sqrt(squares / len(fractions))


def _of_two(taken: list[Ints], with_pod: list[Ints], offered: list[Ints]) -> Floats:
    """Return half the difference of two resources' fractions, before and after: the usual case, in few steps."""
    used = np.array([taken, with_pod], np.float64)
    fractions = np.minimum(used / np.array(offered, np.float64), 1.0)
    return np.abs((fractions[:, 0] - fractions[:, 1]) / 2)


def _fraction(used: Ints, room: Ints) -> Floats:
    return np.minimum(used / room, 1.0)


def _deviation(taken: list[Ints], offered: list[Ints], present: list[Bools]) -> Floats:
    """Return per node, over its resources: half the difference of two, the standard deviation of more, else 0."""
    size = len(offered[0]) if offered else 0
    fractions = [
        np.where(here, _fraction(used, np.where(here, room, 1)), 0.0)
        for used, room, here in zip(taken, offered, present, strict=True)
    ]
    number = np.sum(present, axis=0, dtype=np.int64) if present else np.zeros(size, np.int64)
    total = np.zeros(size)
    for fraction in fractions:  # in this order: floating-point sums depend on it
        total += fraction
    mean = total / np.maximum(number, 1)
    squares = np.zeros(size)
    for fraction, here in zip(fractions, present, strict=True):
        squares += np.where(here, (fraction - mean) * (fraction - mean), 0.0)
    of_many = np.sqrt(squares / np.maximum(number, 1))
    of_two = _half_difference(fractions, present, size)
    return np.where(number == 2, of_two, np.where(number > 2, of_many, 0.0))


def _half_difference(fractions: list[Floats], present: list[Bools], size: int) -> Floats:
    """Return |first - second| / 2 of a node's two resources."""
    first, second = np.zeros(size), np.zeros(size)
    seen = np.zeros(size, np.int64)
    for fraction, here in zip(fractions, present, strict=True):
        first = np.where(here & (seen == 0), fraction, first)
        second = np.where(here & (seen == 1), fraction, second)
        seen += here
    return np.abs((first - second) / 2)
