"""The experiment of "Beware of Fragmentation" (Weng et al., USENIX ATC 2023): pods fill a cluster of GPUs, one by one.

A pod that gets a node stays; one that gets none leaves, and is not tried again. Among equally good nodes the first of
the run's node order is taken. After each arrival it is noted how much GPU demand has arrived, and how much is placed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from stowplan.framework.node_order import NodeOrder
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.framework.ranking import Draw
from stowplan.objects.gpu_requests import WHOLE
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.default.default_binder import DefaultBinder
from stowplan.plugins.nodes.default.node_resources_fit import NodeResourcesFit
from stowplan.plugins.nodes.default.priority_sort import PrioritySort
from stowplan.plugins.nodes.gpu_sharing.fragmentation_gradient import FragmentationGradient
from stowplan.plugins.nodes.gpu_sharing.scores import (
    GpuBestFit,
    GpuClustering,
    GpuDotProduct,
    GpuPacking,
    GpuRandom,
)
from stowplan.plugins.nodes.gpu_sharing.sharing import GpuSharing
from stowplan.simulation.instant_cluster import InstantCluster
from stowplan.simulation.openb import OpenBNode, OpenBPod

RANDOM, FGD = "Random", "FGD"
DETERMINISTIC = ("DotProd", "GpuClustering", "GpuPacking", "BestFit", FGD)
POLICIES = (RANDOM, *DETERMINISTIC)
SCHEDULER = "default-scheduler"


class StudyPoint(msgspec.Struct, frozen=True):
    """What was known after one arrival: thousandths of GPUs that have arrived, and those that are placed."""

    arrived: int
    placed: int


def profile_of(policy: str, pods: Iterable[OpenBPod]) -> Profile:
    """Return the profile of a policy of the study. `pods`: the pod list, of which FGD takes the typical pods."""
    sharing, fit, binder, sort = GpuSharing(), NodeResourcesFit(), DefaultBinder(), PrioritySort()
    made: Any = _policy(policy, pods)
    of = EnabledPlugin
    own = of(type(made).__name__, made, 1)
    points: dict[str, tuple[EnabledPlugin[Any], ...]] = {
        "queueSort": (of("PrioritySort", sort),),
        "preFilter": (of("GpuSharing", sharing),),
        "filter": (of("NodeResourcesFit", fit), of("GpuSharing", sharing)),
        "score": (own,),
        "reserve": tuple(each for each in (own, of("GpuSharing", sharing)) if hasattr(each.plugin, "reserve")),
        "bind": (of("DefaultBinder", binder),),
    }
    return Profile(SCHEDULER, points)


def _policy(policy: str, pods: Iterable[OpenBPod]) -> object:
    match policy:
        case "Random":
            return GpuRandom()
        case "DotProd":
            return GpuDotProduct()
        case "GpuClustering":
            return GpuClustering()
        case "GpuPacking":
            return GpuPacking()
        case "BestFit":
            return GpuBestFit()
        case "FGD":
            return FragmentationGradient.of_workload([each.shape for each in pods])
    raise ValueError(f"there is no policy {policy!r}; there are {', '.join(POLICIES)}")


def run(
    nodes: Sequence[OpenBNode],
    pods: Sequence[OpenBPod],
    order: Iterable[int],
    profile: Profile,
    node_order: Iterable[str],
    draw: Draw | None = None,
) -> list[StudyPoint]:
    """Let pods arrive, by their places in the list; a place may come again.

    `node_order`: the names of the nodes, for ties. `draw`: a generator that decides between equals instead (Random).
    """
    cluster = InstantCluster({SCHEDULER: profile}, NodeOrder(node_order) if draw is None else draw)
    for node in nodes:
        if node.gpus:  # nodes without a GPU take no part
            cluster.put(node.as_node())
    templates: dict[tuple[object, ...], Pod] = {}  # a list has few pods that differ in more than their names
    arrived = placed = 0
    found = []
    for number, at in enumerate(order):
        arriving = pods[at]
        key = (*arriving.shape, arriving.memory_mib)
        template = templates.get(key)
        if template is None:
            template = templates[key] = arriving.as_pod()
        pod = _numbered(template, f"{arriving.name}-{number}")
        arrived += arriving.demand
        if cluster.arrive(pod) is None:
            cluster.remove(pod)
        else:
            placed += arriving.demand
        found.append(StudyPoint(arrived, placed))
    return found


def _numbered(template: Pod, name: str) -> Pod:
    pod = msgspec.structs.replace(template, metadata=msgspec.structs.replace(template.metadata, name=name, uid=name))
    vars(pod)["shape"] = template.shape
    return pod


def capacity(nodes: Iterable[OpenBNode]) -> int:
    """Return the thousandths of GPUs that the nodes have."""
    return WHOLE * sum(node.gpus for node in nodes)


def curve(arrivals: Iterable[StudyPoint], whole: int, most: int = 130) -> list[float]:
    """Return the allocated percentage at each percentage of arrived demand, as the study records it."""
    by_percent: dict[int, list[float]] = {}
    for each in arrivals:
        allocated = round(100 * each.placed / whole, 2)
        by_percent.setdefault(round(100 * each.arrived / whole), []).append(allocated)
    return [_mean(by_percent, at) for at in range(most + 1)]


def _mean(by_percent: Mapping[int, Sequence[float]], at: int) -> float:
    values = by_percent.get(at) or [*by_percent.get(at - 1, ()), *by_percent.get(at + 1, ())]
    return round(sum(values) / len(values), 2) if values else float("nan")
