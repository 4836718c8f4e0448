"""The GPU study as a plain NumPy loop: a yardstick for the engine, and a second opinion on each decision.

No objects, no plugins, no queue: nodes are rows of arrays in the order for ties, and a pod is a tuple. As in the
engine, the scores of equal pods are kept, and only rows that changed are scored again. -1 is the score of a node that
is not feasible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stowplan.columns.arrays import Bools, Floats, Ints
from stowplan.objects.gpu_requests import WHOLE
from stowplan.plugins.nodes.gpu_sharing.typical_pods import most_frequent
from stowplan.simulation.gpu_study import FGD, RANDOM, StudyPoint
from stowplan.simulation.openb import MOST_PODS, OpenBNode, OpenBPod

CPU, GPU = 128_000, 8 * WHOLE  # of the largest node


class Loop:
    """`nodes` are in their order for ties. `generator` draws for the policy Random."""

    def __init__(self, policy: str, nodes: Sequence[OpenBNode], pods: Sequence[OpenBPod], generator: Any) -> None:
        self.policy, self.generator = policy, generator
        self.cpu = np.array([node.cpu_milli for node in nodes], np.int64)
        self.memory = np.array([node.memory_mib for node in nodes], np.int64)
        self.number = np.array([node.gpus for node in nodes], np.int64)
        self.free: Ints = np.where(np.arange(self.number.max()) < self.number[:, np.newaxis], WHOLE, 0)
        self.models = np.array([node.model for node in nodes])
        self.pods, self.kinds = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
        self._kept: dict[tuple[Any, ...], tuple[Ints, int]] = {}  # scores, and how much of the history they know
        self._history: list[int] = []  # the rows that changed
        if policy == FGD:
            self._typical(pods)

    def arrive(self, pod: OpenBPod) -> bool:
        """Place a pod; False if no node is feasible."""
        key = (*pod.shape, pod.memory_mib)
        scores, known = self._kept.get(key, (np.zeros(len(self.cpu), np.int64), -1))
        rows = np.arange(len(scores)) if known < 0 else np.unique(np.array(self._history[known:], np.int64))
        if len(rows):
            scores[rows] = np.where(self._feasible(pod, rows), self._scores(pod, rows), -1)
        self._kept[key] = scores, len(self._history)
        row = int(scores.argmax())
        if scores[row] < 0:
            return False
        if self.policy == RANDOM:
            row = int(self.generator.choice((scores >= 0).nonzero()[0]))
        self._place(pod, row)
        return True

    def _feasible(self, pod: OpenBPod, rows: Ints) -> Bools:
        found = (self.cpu[rows] >= pod.cpu_milli) & (self.memory[rows] >= pod.memory_mib)
        found &= self.pods[rows] < MOST_PODS
        if pod.gpus:
            found &= np.count_nonzero(self.free[rows] >= pod.gpu_milli, axis=1) >= pod.gpus
            if pod.gpu_spec:
                found &= np.isin(self.models[rows], pod.gpu_spec.split("|"))
        return found

    def _place(self, pod: OpenBPod, row: int) -> None:
        if pod.gpus:
            self.free[row, self._devices(pod, row)] -= pod.gpu_milli
            self.kinds[row] |= 1 << (0 if pod.gpu_milli < WHOLE else pod.gpus)
        self.cpu[row] -= pod.cpu_milli
        self.memory[row] -= pod.memory_mib
        self.pods[row] += 1
        self._history.append(row)
        if self.policy == FGD:
            at = np.array([row])
            self.before[at] = self._measure(at, self.cpu[at], self.free[at])

    def _devices(self, pod: OpenBPod, row: int) -> Ints:
        fitting: Ints = (self.free[row] >= pod.gpu_milli).nonzero()[0]
        if pod.gpu_milli < WHOLE and self.policy == RANDOM:
            return self.generator.choice(fitting, 1)  # type: ignore[no-any-return]
        if pod.gpu_milli < WHOLE and self.policy == FGD:
            return np.array([self._by_device(pod, np.array([row]))[0].argmax()])
        return fitting[np.argsort(self.free[row, fitting], kind="stable")[: pod.gpus]]

    # -- scores

    def _scores(self, pod: OpenBPod, rows: Ints) -> Ints | int:
        cpu, gpu, asked = self.cpu[rows], self.free[rows].sum(axis=1), pod.demand
        match self.policy:
            case "DotProd":
                product = cpu / CPU * (pod.cpu_milli / CPU) + gpu / GPU * (asked / GPU)
                return _whole(100 * (1 - product / 2))
            case "BestFit":
                left = (cpu / CPU - pod.cpu_milli / CPU) + (gpu / GPU - asked / GPU)
                return _whole(100 * (1 - left / 2))
            case "GpuClustering" if pod.gpus:
                kinds, own = self.kinds[rows], 1 << (0 if pod.gpu_milli < WHOLE else pod.gpus)
                bonus = np.select([kinds == own, (kinds & own) > 0, kinds == 0], [75, 50, 25], 0)
                clustered: Ints = bonus + 25 * (GPU - gpu) // GPU
                return clustered
            case "GpuPacking" if pod.gpus:
                return self._packed(pod, rows)
            case "FGD":
                return self._gradient(pod, rows)
        return 0

    def _packed(self, pod: OpenBPod, rows: Ints) -> Ints:
        free = self.free[rows]
        empty, used = np.count_nonzero(free == WHOLE, axis=1), (free >= pod.gpu_milli) & (free < WHOLE)
        begun = pod.gpus - np.count_nonzero(used, axis=1)
        shared = np.maximum(100 - np.where(used, free, WHOLE).min(axis=1) // 10 // 10, 50)
        found = np.where(begun > 0, np.maximum(50 - begun, 33), shared)
        scores: Ints = np.where(empty == self.number[rows], np.maximum(33 - empty, empty), found)
        return scores

    # -- fragmentation

    def _typical(self, pods: Sequence[OpenBPod]) -> None:
        typical = most_frequent(pod.shape for pod in pods)
        counts = np.array([each.count for each in typical], np.float64)
        self.parts: Floats = counts / len(pods) / (counts.sum() / len(pods))  # rounded as in the study
        self.wants_cpu = np.array([each.cpu_milli for each in typical])
        self.wants_gpus = np.array([each.gpus for each in typical])
        self.levels, self.level = np.unique([each.gpu_milli for each in typical], return_inverse=True)
        names = self.models[:, np.newaxis]
        allowed = [np.isin(names, each.models) if each.models else np.ones_like(names, np.bool_) for each in typical]
        self.allowed: Bools = np.concatenate(allowed, axis=1)
        rows = np.arange(len(self.cpu))
        self.before = self._measure(rows, self.cpu, self.free)

    def _measure(self, rows: Ints, cpu: Ints, free: Ints) -> Floats:
        """The fragmentation of nodes with so much free, added up by reason and in order: rounding decides ties."""
        fits = free[:, :, np.newaxis] >= self.levels
        small = (free[:, :, np.newaxis] * ~fits).sum(axis=1)
        cpu_is_enough = cpu[:, np.newaxis] >= self.wants_cpu
        gpus_are_enough = np.count_nonzero(fits, axis=1)[:, self.level] >= self.wants_gpus
        of_gpu_pods = np.where(cpu_is_enough, 1, np.where(gpus_are_enough, 2, 0))
        reason = np.where(self.wants_gpus > 0, of_gpu_pods, np.where(cpu_is_enough, 3, 4))
        reason = np.where(self.allowed[rows], reason, 5)
        room = cpu_is_enough & gpus_are_enough & self.allowed[rows] & (self.wants_gpus > 0)
        wasted = np.where(room, small[:, self.level], free.sum(axis=1)[:, np.newaxis]) * self.parts
        place = reason + 6 * np.arange(len(rows))[:, np.newaxis]
        sums = np.bincount(place.ravel(), wasted.ravel(), 6 * len(rows)).reshape(len(rows), 6)
        measured: Floats = np.add.accumulate(sums, axis=1)[:, -1]
        return measured

    def _rated(self, gained: Floats) -> Ints:
        return _whole(100 * (1 / (1 + np.exp(-gained / WHOLE))))

    def _gradient(self, pod: OpenBPod, rows: Ints) -> Ints:
        if pod.gpus and pod.gpu_milli < WHOLE:
            best: Ints = self._by_device(pod, rows).max(axis=1)
            return best
        left = self.free[rows]
        taken = (left == WHOLE) & (np.cumsum(left == WHOLE, axis=1) <= pod.gpus)
        after = self._measure(rows, self.cpu[rows] - pod.cpu_milli, np.where(taken, 0, left))
        return self._rated(self.before[rows] - after)

    def _by_device(self, pod: OpenBPod, rows: Ints) -> Ints:
        """The score of each GPU for a share; -1 where it does not fit."""
        free = self.free[rows]
        at, device = (free >= pod.gpu_milli).nonzero()
        left = free[at]
        left[np.arange(len(at)), device] -= pod.gpu_milli
        scores = np.full(free.shape, -1, np.int64)
        after = self._measure(rows[at], self.cpu[rows[at]] - pod.cpu_milli, left)
        scores[at, device] = self._rated(self.before[rows[at]] - after)
        return scores


def _whole(scores: Floats) -> Ints:
    whole: Ints = scores.astype(np.int64)
    return whole


def run(
    policy: str, nodes: Sequence[OpenBNode], pods: Sequence[OpenBPod], order: Sequence[int], generator: Any = None
) -> list[StudyPoint]:
    """Let pods arrive, by their places in the list. Return what `gpu_study.run` does."""
    loop, arrived, placed, found = Loop(policy, nodes, pods, generator), 0, 0, []
    for at in order:
        arrived += pods[at].demand
        placed += pods[at].demand * loop.arrive(pods[at])
        found.append(StudyPoint(arrived, placed))
    return found
