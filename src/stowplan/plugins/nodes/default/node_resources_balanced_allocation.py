"""NodeResourcesBalancedAllocation: prefer nodes whose resources are used more evenly with the pod (Kubernetes 1.36).

Balance is 100 minus the deviation of the used fractions, in percent. The score is by the change of the balance: 75 for
no change, up to 100 for the greatest improvement, down to 50.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stowplan.columns.arrays import Bools, Bytes, Floats, Ints
from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.row_columns import row_columns
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.scoring import EXACT_AS_FLOAT, MAX_SCORE, int64
from stowplan.objects import requests
from stowplan.objects.pods import Pod

NO_CHANGE = MAX_SCORE // 2 + MAX_SCORE  # twice the score of a node whose balance does not change


class NodeResourcesBalancedAllocation:
    configurable_at = ("preScore",)
    scores_by_row = True
    ignores_volumes = True

    def __init__(self, resources: Sequence[Mapping[str, Any]] = ({"name": "cpu"}, {"name": "memory"})) -> None:
        """`resources`: the resources to balance."""
        self._resources = [resource["name"] for resource in resources]

    def score(self, pod: Pod, nodes: Nodes) -> Ints | Bytes | None:
        wanted = {name: pod.shape.balanced.get(name, 0) for name in self._resources}
        if not any(wanted.values()):
            return None
        counted = [
            each for each in wanted if requests.is_counted(each) and (wanted[each] or not requests.is_scalar(each))
        ]
        if len(counted) == 2 and (found := _of_two(nodes, counted, wanted)) is not None:
            return found
        offered = [nodes.allocatable[name] for name in counted]
        taken = [nodes.requested[name] for name in counted]
        with_pod = [used + wanted[name] for name, used in zip(counted, taken, strict=True)]
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


def _of_two(nodes: Nodes, counted: Sequence[str], wanted: Mapping[str, int]) -> Bytes | None:
    """Return the score for two resources: the usual case, in few steps. None: numbers are too large for floats."""
    first, second = counted
    columns = TwoResources(first, second)
    used, others_used, room, others_room, offset, too_large = columns.on(nodes)
    if too_large.any() or max(wanted[first], wanted[second]) >= EXACT_AS_FLOAT:
        return None
    balance = _halves(used + wanted[first], room, others_used + wanted[second], others_room)
    np.subtract(1.0, balance, out=balance)
    balance *= MAX_SCORE
    score: Bytes = balance.astype(np.uint8)
    score += offset
    score >>= 1
    return score


def _halves(used: Floats, room: Floats, others_used: Floats, others_room: Floats) -> Floats:
    """Return half the difference of two resources' fractions. The arrays of what is used are not needed any more.

    What is used is cut to the room before the division: with the number 1 after it, NumPy takes three times as long.
    """
    np.minimum(used, room, out=used)
    np.minimum(others_used, others_room, out=others_used)
    used /= room
    others_used /= others_room
    used -= others_used
    used *= 0.5
    return np.abs(used, out=used)


class TwoResources:
    """What the score for two resources needs of each node: amounts as floats, and the balance before the pod.

    With the balances before and after, the score is (after - before + 50) // 2 + 50, which is (after + offset) // 2.
    A node that lacks one of the resources has room without end of both: it is balanced with and without the pod.
    """

    def __init__(self, first: str, second: str) -> None:
        self._names = (first, second)

    def on(self, nodes: Nodes) -> list[Any]:
        return row_columns(nodes, ("balance", *self._names), self._of_nodes, self._of_one)

    def _of_nodes(self, nodes: Nodes) -> list[Any]:
        first, second = self._names
        offered = [nodes.allocatable[name] for name in self._names]
        there = (offered[0] != 0) & (offered[1] != 0)
        room = [np.where(there, column.astype(np.float64), np.inf) for column in offered]
        taken = [nodes.requested[first], nodes.requested[second]]
        used = [column.astype(np.float64) for column in taken]
        before = (1 - _halves(used[0].copy(), room[0], used[1].copy(), room[1])) * MAX_SCORE
        too_large = _too_large(taken[0]) | _too_large(taken[1]) | (room[0] < 0) | (room[1] < 0)
        offset = NO_CHANGE - np.where(too_large, 0, before).astype(np.uint8)
        return [*used, *room, offset, too_large]

    def _of_one(self, node: OneNode) -> tuple[float, ...]:
        first, second = self._names
        used, others_used = node.requested(first), node.requested(second)
        room, others_room = float(node.allocatable(first)), float(node.allocatable(second))
        if not room or not others_room:
            room = others_room = math.inf
        too_large = not (0 <= used < EXACT_AS_FLOAT and 0 <= others_used < EXACT_AS_FLOAT) or min(room, others_room) < 0
        before = 0
        if not too_large:
            shares = [min(float(used) / room, 1.0), min(float(others_used) / others_room, 1.0)]
            before = int((1 - _deviation_of_one(shares)) * MAX_SCORE)
        return float(used), float(others_used), room, others_room, NO_CHANGE - before, too_large


def _too_large(amounts: Ints) -> Bools:
    return (amounts < 0) | (amounts >= EXACT_AS_FLOAT)


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
