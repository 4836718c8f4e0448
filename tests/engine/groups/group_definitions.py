"""Groups for the storm. Each is defined in another way, and its controller creates pods while some are missing.

g   labels of KubeNexus                       j   the same, with a pod of twice the size first
h   the older labels                          s   Kubernetes' own PodGroup; large pods go only all together
k   PodGroup of scheduling.x-k8s.io           r   the same, with minResources
"""

from __future__ import annotations

from typing import Any

import msgspec

from stowplan.objects import applications
from stowplan.objects.meta import Object
from stowplan.objects.pod_groups import PodGroup, SigsPodGroup
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_pod
from tests.plugins.nodes.coscheduling.pod_groups import MIN, NAME, a_kubernetes_group, a_pod_group, created

SIGS = "pod-group.scheduling.sigs.k8s.io"
MINIMA = {"g": 2, "h": 3, "j": 3, "k": 2, "r": 3, "s": 3}
WITH_OBJECTS = ("k", "r", "s")


class Wanted(msgspec.Struct):
    """The specification of a group's controller."""

    name: str
    count: int
    priority: int
    cpu: int
    stable: bool  # does a pod that takes another's place take its name, too?


def name_of(pod: Pod) -> str:
    return applications.identity(pod).group


def group_object(name: str, minimum: int, cpu: int = 1) -> Object:
    if name == "s":
        return a_kubernetes_group(name, minimum, **({"disruptionMode": "PodGroup"} if cpu == 2 else {}))
    resources = {"minResources": {"cpu": str(minimum * cpu)}} if name == "r" else {}
    return a_pod_group(name, minimum, scheduleTimeoutSeconds=5, **resources)


def minimum_of(name: str, objects: dict[tuple[str, str], Object]) -> int | None:
    """Return the group's minimum by the API server's objects; None if no object has it."""
    if name not in WITH_OBJECTS:
        return MINIMA[name]
    found = objects.get(("PodGroup" if name == "s" else "SigsPodGroup", f"default/{name}"))
    return found.minimum if isinstance(found, PodGroup | SigsPodGroup) else None


def a_member(wanted: Wanted, number: int, serial: int, at: float) -> Pod:
    """Return a member. `number`: its index in the group; `serial`: how many pods were created before it."""
    name = wanted.name
    labels, spec = _definition(name)
    cpu = wanted.cpu + 1 if name == "j" and number == 0 else wanted.cpu
    pod = a_pod(
        f"{name}-{number if wanted.stable else f'x{serial}'}",
        uid=f"{name}-{number}-{serial}", labels={**labels, "place": str(number), "app": name}, cpu=cpu,
        priority=wanted.priority, **spec,
    )  # fmt: skip
    return created(pod, int(at))


def _definition(name: str) -> tuple[dict[str, str], dict[str, Any]]:
    match name:
        case "g" | "j":
            return {NAME: name, MIN: str(MINIMA[name])}, {}
        case "h":
            return {f"{SIGS}/name": name, f"{SIGS}/min-available": str(MINIMA[name])}, {}
        case "s":
            return {}, {"schedulingGroup": {"podGroupName": name}}
        case _:
            return {"scheduling.x-k8s.io/pod-group": name}, {}
