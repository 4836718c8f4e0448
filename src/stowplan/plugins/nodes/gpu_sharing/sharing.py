"""GpuSharing: pods get GPUs, or shares of them, by number.

A pod fits on a node that has as many GPUs as it asks for, of a model that it allows, each with enough left. When the
pod is reserved it is assigned the tightest GPUs that fit, unless a policy beside this plugin has assigned others. Their
numbers are written as an annotation with the binding; after a restart they are read from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.decision import SKIP, Reject, RejectPod, Skip
from stowplan.framework.interfaces import Wake
from stowplan.objects.gpu_requests import INDEX, WHOLE, GpuRequest, index_text
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.gpu_sharing import device_columns
from stowplan.plugins.nodes.gpu_sharing.device_columns import milli_on, tightest


class GpuSharing:
    filters_by_row = True
    ignores_volumes = True
    skip_is_final = True

    def pre_filters_by_shape(self, pod: Pod) -> bool:
        asked = pod.shape.gpus
        return asked is None or not asked.problem

    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | Skip | None:  # noqa: ARG002
        asked = pod.shape.gpus
        if asked is None:
            return SKIP
        return RejectPod((f"GPUs of the pod: {asked.problem}",)) if asked.problem else None

    # -- filter

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        asked = pod.shape.gpus
        if asked is None:
            return
        devices = device_columns.of_state(nodes.cluster.state)
        too_few = nodes.pick(devices.number) < asked.count
        if too_few.any():
            yield Reject(too_few, "node(s) had too few GPUs", resolvable=False)
        if asked.models:
            right = devices.is_allowed(asked.models, nodes.pick(devices.model))
            yield Reject(~right, "node(s) had GPUs of another model", resolvable=False)
        milli = milli_by_node(asked, nodes.pick(devices.memory))
        if asked.memory:
            too_small: Bools = np.asarray(milli) > WHOLE
            yield Reject(too_small, "node(s) had GPUs with too little memory", resolvable=False)
        fitting = np.count_nonzero(nodes.pick(devices.free) >= _column(milli), axis=1)
        too_full = fitting < asked.count
        if too_full.any():
            yield Reject(too_full, "Insufficient free GPUs")

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        """Say of each node what `filter` says first."""
        left = np.ones(len(nodes), np.bool_)
        for reject in self.filter(pod, nodes):
            found = reject.rows & left
            if found.any():
                yield NodeCause(found, _cause(pod, reject.reason))
            left &= ~found

    def wakes_on(self) -> Iterator[Wake]:
        yield Wake("AssignedPod", ("Delete",))
        yield Wake("Node", ("Add", "UpdateNodeAllocatable", "UpdateNodeLabel"))

    # -- reserve

    def reserve(self, pod: Pod, node_name: str, cluster: Cluster) -> RejectPod | None:
        asked = pod.shape.gpus
        if asked is None:
            return None
        devices = device_columns.assignments_of(cluster.state)
        if devices.assigned_to(pod, node_name) is not None:
            return None
        row = cluster.state.table.row_of[node_name]
        free = devices.free_without(pod, node_name)
        chosen = tightest(free, asked.count, milli_on(asked, int(devices.memory[row])))
        if chosen is None:
            return RejectPod(("the node has too few free GPUs",))
        devices.assign(pod, node_name, chosen)
        return None

    def unreserve(self, pod: Pod, node_name: str, cluster: Cluster) -> None:  # noqa: ARG002
        device_columns.assignments_of(cluster.state).release(pod)

    def binding_annotations(self, pod: Pod, node_name: str, cluster: Cluster) -> dict[str, str]:
        chosen = device_columns.assignments_of(cluster.state).assigned_to(pod, node_name)
        return {INDEX: index_text(chosen)} if chosen else {}


def milli_by_node(asked: GpuRequest, memory: Ints) -> Ints | int:
    """Return the thousandths of each GPU that a pod takes on these nodes, by the memory of their GPUs."""
    if not asked.memory:
        return asked.milli
    milli: Ints = np.where(memory > 0, -(-asked.memory * WHOLE // np.maximum(memory, 1)), WHOLE + 1)
    return milli


def _column(milli: Ints | int) -> Any:
    return milli if isinstance(milli, int) else milli[:, np.newaxis]


def _cause(pod: Pod, reason: str) -> Cause:
    asked = pod.shape.gpus
    assert asked is not None, "only a pod that asks for GPUs is rejected"
    wants = f"{asked.memory} MiB" if asked.memory else f"{asked.milli / WHOLE:g}"
    return Cause("gpus", f"{reason}: the pod wants {asked.count} with {wants} free", {"count": asked.count})
