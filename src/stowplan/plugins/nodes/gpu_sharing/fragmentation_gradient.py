"""FragmentationGradient: where the pod makes the least of the free GPUs useless to typical pods.

The policy of "Beware of Fragmentation" (Weng et al., USENIX ATC 2023), FGD there. A node's score is 50 if the pod
leaves its fragmentation as it is, more if it lowers it, less if it raises it. A share goes to the GPU for which that is
best.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.columns.arrays import Bools, Floats, Ints
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.scoring import MAX_SCORE
from stowplan.objects.gpu_requests import WHOLE
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.gpu_sharing import device_columns
from stowplan.plugins.nodes.gpu_sharing.device_columns import milli_on
from stowplan.plugins.nodes.gpu_sharing.fragmentation import Fragmentation, after_whole
from stowplan.plugins.nodes.gpu_sharing.sharing import milli_by_node
from stowplan.plugins.nodes.gpu_sharing.typical_pods import ANY_WORKLOAD, TypicalPod, checked, most_frequent

UNFIT = -1  # the score of a GPU that has too little free


class FragmentationGradient:
    scores_by_row = ignores_volumes = True

    def __init__(self, typical_pods: list[TypicalPod] | None = None) -> None:
        """`typicalPods`: the shapes of the workload, as [{cpuMilli, gpus, gpuMilli, models, count}, …]."""
        self._fragmentation = Fragmentation(ANY_WORKLOAD if typical_pods is None else checked(typical_pods))

    @classmethod
    def of_workload(cls, shapes: Sequence[tuple[int, int, int, str]]) -> FragmentationGradient:
        """Take the most frequent of these shapes for typical, as the study does. See `most_frequent`."""
        made = cls()
        made._fragmentation = Fragmentation(most_frequent(shapes), len(shapes))  # its own
        return made

    def score(self, pod: Pod, nodes: Nodes) -> Ints:
        devices = device_columns.of_state(nodes.cluster.state)
        free, cpu = nodes.pick(devices.free), nodes.free["cpu"]
        allowed = self._fragmentation.allowed(devices, nodes.pick(devices.model))
        left, asked = cpu - pod.request.get("cpu", 0), pod.shape.gpus
        if asked is None:
            return self._scored(cpu, free, left, free, allowed)
        milli = milli_by_node(asked, nodes.pick(devices.memory))
        if asked.count == 1:
            best: Ints = np.maximum(self._by_device(cpu, left, free, milli, allowed).max(axis=1), 0)
            return best
        return self._scored(cpu, free, left, after_whole(free, asked.count, milli), allowed)

    def _scored(self, cpu: Ints, free: Ints, cpu_left: Ints, free_left: Ints, allowed: Bools | None) -> Ints:
        measure = self._fragmentation.of
        return self._rated(measure(cpu, free, allowed) - measure(cpu_left, free_left, allowed))

    def _by_device(self, cpu: Ints, left: Ints, free: Ints, milli: Ints | int, allowed: Bools | None) -> Ints:
        """The score of each GPU; of GPUs with the same free, only the first is looked at."""
        fits = free >= (milli if isinstance(milli, int) else milli[:, np.newaxis])
        for at in range(1, free.shape[1]):
            fits[:, at] &= (free[:, :at] != free[:, at : at + 1]).all(axis=1)
        node, device = fits.nonzero()
        before = self._fragmentation.of(cpu, free, allowed)[node]
        after = self._fragmentation.with_share(left, free, node, device, milli, allowed)
        scores = np.full(free.shape, UNFIT, np.int64)
        scores[node, device] = self._rated(before - after)
        return scores

    def _rated(self, gained: Floats) -> Ints:
        """Return 0 to 100 for a fragmentation that falls by so much."""
        rated: Floats = MAX_SCORE * (1 / (1 + np.exp(-gained / WHOLE)))
        return rated.astype(np.int64)

    # -- which GPU

    def reserve(self, pod: Pod, node_name: str, cluster: Cluster) -> None:
        """Assign the GPU with the best score to a share, the first among equals; GpuSharing assigns all others."""
        asked = pod.shape.gpus
        if asked is None or asked.whole or asked.count != 1:
            return
        devices = device_columns.assignments_of(cluster.state)
        table = cluster.state.table
        row = table.row_of[node_name]
        milli = milli_on(asked, int(devices.memory[row]))
        free = np.array([devices.free_without(pod, node_name)], np.int64)
        left = np.array([table.allocatable["cpu"][row] - table.requested["cpu"][row]])  # the pod is there already
        allowed = self._fragmentation.allowed(devices, devices.model[row : row + 1])
        scores = self._by_device(left + pod.request.get("cpu", 0), left, free, milli, allowed)[0]
        if len(scores) and scores.max() > UNFIT:
            devices.assign(pod, node_name, (int(scores.argmax()),))

    def unreserve(self, pod: Pod, node_name: str, cluster: Cluster) -> None:  # noqa: ARG002
        device_columns.assignments_of(cluster.state).release(pod)
