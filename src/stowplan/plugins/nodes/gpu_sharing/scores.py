"""Five ways to choose a node for GPUs, as the study of GPU fragmentation (Weng et al., USENIX ATC 2023) compared them.

    GpuRandom       no preference: the scheduler draws one of the feasible nodes
    GpuDotProduct   where what the pod asks for and what is free, as vectors of cpu and GPU, have the smallest product
    GpuBestFit      where the least of both is left
    GpuClustering   beside pods of the same kind: shares, or so many whole GPUs
    GpuPacking      on GPUs that are shared already, then on nodes that are in use, then on small empty ones

The sixth is FragmentationGradient. Scores are whole numbers, so ties are usual. Amounts are divided by those of the
largest node, which the arguments say: what they are does not depend on which nodes there are.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np

from stowplan.columns.arrays import Bools, Floats, Ints
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.scoring import MAX_SCORE
from stowplan.objects.errors import ConfigError
from stowplan.objects.gpu_requests import WHOLE, GpuRequest
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.gpu_sharing import device_columns
from stowplan.plugins.nodes.gpu_sharing.device_columns import milli_on
from stowplan.plugins.nodes.gpu_sharing.sharing import milli_by_node

CORES, GPUS = 128, 8  # of the largest node of the study
NO_GPUS = GpuRequest(0)


class GpuRandom:
    """Every node is as good; a share of a GPU goes to any of the node's GPUs that fit."""

    scores_by_row = ignores_volumes = True

    def score(self, pod: Pod, nodes: Nodes) -> int:  # noqa: ARG002
        return 0

    def reserve(self, pod: Pod, node_name: str, cluster: Cluster) -> None:
        """Plugins draw no random numbers: the pod's uid decides, which says nothing about the GPUs."""
        asked = pod.shape.gpus
        if asked is None or asked.whole or asked.count != 1:
            return
        devices = device_columns.assignments_of(cluster.state)
        milli = milli_on(asked, int(devices.memory[cluster.state.table.row_of[node_name]]))
        fitting = [at for at, free in enumerate(devices.free_without(pod, node_name)) if free >= milli]
        if fitting:
            devices.assign(pod, node_name, (fitting[crc32(f"{pod.uid} {node_name}".encode()) % len(fitting)],))

    def unreserve(self, pod: Pod, node_name: str, cluster: Cluster) -> None:  # noqa: ARG002
        device_columns.assignments_of(cluster.state).release(pod)


class _Amounts:
    """What the nodes have free, and what the pod asks for, as parts of the largest node."""

    def __init__(self, cores: int, gpus: int) -> None:
        if cores < 1 or gpus < 1:
            raise ConfigError(f"cores is {cores} and gpus is {gpus}", remedy="give those of the largest node")
        self._cpu, self._gpu = 1000 * cores, WHOLE * gpus

    def of(self, pod: Pod, nodes: Nodes) -> tuple[Floats, Floats, Floats | float, Floats | float]:
        asked, devices = pod.shape.gpus or NO_GPUS, device_columns.of_state(nodes.cluster.state)
        wanted = asked.count * milli_by_node(asked, nodes.pick(devices.memory))
        free = nodes.pick(devices.free).sum(axis=1)
        cpu = pod.request.get("cpu", 0) / self._cpu
        return nodes.free["cpu"] / self._cpu, free / self._gpu, cpu, wanted / self._gpu


class GpuDotProduct:
    scores_by_row = ignores_volumes = True

    def __init__(self, cores: int = CORES, gpus: int = GPUS) -> None:
        self._amounts = _Amounts(cores, gpus)

    def score(self, pod: Pod, nodes: Nodes) -> Ints:
        free_cpu, free_gpu, cpu, gpu = self._amounts.of(pod, nodes)
        return _whole(MAX_SCORE * (1 - (free_cpu * cpu + free_gpu * gpu) / 2))


class GpuBestFit:
    scores_by_row = ignores_volumes = True

    def __init__(self, cores: int = CORES, gpus: int = GPUS) -> None:
        self._amounts = _Amounts(cores, gpus)

    def score(self, pod: Pod, nodes: Nodes) -> Ints:
        free_cpu, free_gpu, cpu, gpu = self._amounts.of(pod, nodes)
        return _whole(MAX_SCORE * (1 - ((free_cpu - cpu) + (free_gpu - gpu)) / 2))


class GpuClustering:
    scores_by_row = ignores_volumes = True

    def __init__(self, gpus: int = GPUS) -> None:
        if gpus < 1:
            raise ConfigError(f"gpus is {gpus}", remedy="give the number of GPUs of the largest node")
        self._gpu = WHOLE * gpus

    def score(self, pod: Pod, nodes: Nodes) -> Ints | int:
        asked = pod.shape.gpus
        if asked is None:
            return 0
        devices = device_columns.of_state(nodes.cluster.state)
        kinds, own = nodes.pick(devices.kinds), 1 << asked.kind
        alone, beside, empty = kinds == own, (kinds & own) > 0, kinds == 0
        bonus = np.select([alone, beside, empty], [75, 50, 25], 0)
        taken = self._gpu - nodes.pick(devices.free).sum(axis=1)
        found: Ints = np.clip(bonus + 25 * np.maximum(taken, 0) // self._gpu, 0, MAX_SCORE)
        return found


class GpuPacking:
    scores_by_row = ignores_volumes = True

    def score(self, pod: Pod, nodes: Nodes) -> Ints | int:
        asked = pod.shape.gpus
        if asked is None:
            return 0
        devices = device_columns.of_state(nodes.cluster.state)
        free, number = nodes.pick(devices.free), nodes.pick(devices.number)
        milli = milli_by_node(asked, nodes.pick(devices.memory))
        empty = np.count_nonzero(free == WHOLE, axis=1)
        fitting = free >= (milli if isinstance(milli, int) else milli[:, np.newaxis])
        used = fitting & (free < WHOLE)
        broken = asked.count - np.count_nonzero(used, axis=1)  # empty GPUs that the pod would begin to use
        tightest = np.where(used, free, WHOLE).min(axis=1)
        shared = np.maximum(MAX_SCORE - tightest // 10 // 10, 50)
        begun = np.maximum(50 - broken, 33)
        found: Ints = np.where(broken > 0, begun, shared)
        untouched: Bools = empty == number
        scores: Ints = np.clip(np.where(untouched, np.maximum(33 - empty, empty), found), 0, MAX_SCORE)
        return scores


def _whole(scores: Floats) -> Ints:
    whole: Ints = np.clip(scores.astype(np.int64), 0, MAX_SCORE)
    return whole
