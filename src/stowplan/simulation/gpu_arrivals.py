"""In which order pods arrive in the experiment of the GPU study: a list is shuffled, and then filled up or cut.

A list that asks for less than the target is filled up with pods drawn from it, until one would go beyond (a pod counts
as one GPU for that). Of a list that asks for more, pods are deleted at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, SupportsInt

from stowplan.simulation.openb import OpenBPod

TARGET = 130  # percent of the GPUs


class Shuffling(Protocol):
    """What is needed of a numpy generator."""

    def permutation(self, x: int, /) -> Any:
        """Return 0 … x-1 in a random order."""

    def integers(self, below: int, /) -> SupportsInt:
        """Return a number from 0 on, below this one."""


def arrivals(pods: Sequence[OpenBPod], whole: int, generator: Shuffling) -> list[int]:
    """Return places in the list, in the order of arrival. `whole`: the thousandths of GPUs of the cluster."""
    order = [int(at) for at in generator.permutation(len(pods))]
    demand, target = sum(pod.demand for pod in pods), whole * TARGET // 100
    if demand > target:
        while demand > target:
            demand -= pods[order.pop(int(generator.integers(len(order))))].demand
        return order
    if not any(pod.gpu_milli for pod in pods):
        return order  # no pod asks for a GPU, so no number of them reaches the target
    while True:
        drawn = int(generator.integers(len(pods)))
        if demand + pods[drawn].gpu_milli > target:
            return order
        order.append(drawn)
        demand += pods[drawn].demand
