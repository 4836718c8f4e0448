"""GPUs in the figures of a run whose profiles share them: thousandths, as `GpuSharing` counts them.

They are one more resource, `alibabacloud.com/gpu-milli`: a node offers 1000 for each of its GPUs, and a pod takes what
its annotations say, or 1000 for each `nvidia.com/gpu`. What a pod that asks for memory takes depends on its node, so it
counts from its binding on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from stowplan.framework.profile import Profile
from stowplan.objects.gpu_requests import ASKING, COUNT, MILLI, MOST_DEVICES, WHOLE
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.gpu_sharing import device_columns
from stowplan.plugins.nodes.gpu_sharing.device_columns import milli_on
from stowplan.plugins.nodes.gpu_sharing.sharing import GpuSharing


def are_shared(profiles: Iterable[Profile]) -> bool:
    """True if one of these profiles counts thousandths of GPUs."""
    return any(
        isinstance(each.plugin, GpuSharing)
        for profile in profiles
        for point in profile.points.values()
        for each in point
    )


def asks_by_annotation(document: Mapping[str, Any]) -> bool:
    """True if a pod, or the pods of a workload, ask for GPUs by annotations, which `GpuSharing` alone reads."""
    inner = document if document["kind"] == "Pod" else (document.get("spec") or {}).get("template") or {}
    annotations = (inner.get("metadata") or {}).get("annotations") or {}
    return not annotations.keys().isdisjoint(ASKING)


class OfferedGpus(msgspec.Struct, frozen=True):
    """The GPUs of a node, and the MiB that each has; 0 if it does not say."""

    number: int = 0
    memory: int = 0


def of_node(node: Node) -> OfferedGpus:
    """Return the GPUs that a node offers."""
    return OfferedGpus(min(device_columns.offered(node), MOST_DEVICES), device_columns.memory_of(node))


def with_offered(offered: Mapping[str, int], gpus: OfferedGpus) -> dict[str, int]:
    """Return what a node offers, with its GPUs in thousandths instead of their number."""
    found = {name: amount for name, amount in offered.items() if name not in (COUNT, MILLI)}
    return found | ({MILLI: WHOLE * gpus.number} if gpus.number else {})


def with_requested(requests: Mapping[str, int], pod: Pod, gpus: OfferedGpus | None = None) -> dict[str, int]:
    """Return what a pod requests, with its GPUs in thousandths. `gpus`: those of its node, if it has one."""
    asked = pod.shape.gpus
    if asked is None or asked.problem or (asked.memory and (gpus is None or not gpus.memory)):
        return dict(requests)
    return {**requests, MILLI: asked.count * milli_on(asked, gpus.memory if gpus else 0)}
