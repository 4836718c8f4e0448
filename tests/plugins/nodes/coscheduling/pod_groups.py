"""Worlds with gangs for tests: the default profile with Coscheduling in it, and pods of groups."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from stowplan.apps import profile_loader
from stowplan.framework.profile import Profile
from stowplan.objects import kinds
from stowplan.objects.actions import Action, Bind, Evict
from stowplan.objects.changes import Result
from stowplan.objects.pod_groups import PodGroup, SigsPodGroup
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World

NAME, MIN = "pod-group.scheduling.kubenexus.io/name", "pod-group.scheduling.kubenexus.io/min-available"
GROUP = "scheduling.x-k8s.io/pod-group"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)


def profiles(args: Mapping[str, Any] | None = None, *others: str) -> dict[str, Profile]:
    """`others`: further plugins beside Coscheduling."""
    plugins = {
        "multiPoint": {"enabled": [{"name": name} for name in ("Coscheduling", *others)]},
        "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
    }
    profile: dict[str, Any] = {"schedulerName": "default-scheduler", "plugins": plugins}
    if args:
        profile["pluginConfig"] = [{"name": "Coscheduling", "args": dict(args)}]
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    return profile_loader.configured(document)[1]


def a_world(nodes: int = 3, cpu: int = 1, args: Mapping[str, Any] | None = None, **more: Any) -> World:
    return World(nodes=[a_node(f"n{at}", cpu=cpu) for at in range(nodes)], profiles=profiles(args), **more)


def gang(name: str, count: int, needed: int | None = None, *, at: int = 0, first: int = 0, **more: Any) -> list[Pod]:
    """Pods name-0, name-1 …, made in the second `at`."""
    labels = {NAME: name, MIN: str(count if needed is None else needed)}
    return [member(f"{name}-{first + number}", labels, at=at, **more) for number in range(count)]


def member(name: str, labels: Mapping[str, str], *, at: int = 0, cpu: int | str = 1, **more: Any) -> Pod:
    return created(a_pod(name, labels=dict(labels), cpu=cpu, **more), at)


def created(pod: Pod, at: int) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=MOMENT + timedelta(seconds=at))
    return msgspec.structs.replace(pod, metadata=metadata)


def relabelled(pod: Pod, labels: Mapping[str, str]) -> Pod:
    """The pod with these labels besides its own."""
    metadata = msgspec.structs.replace(pod.metadata, labels={**pod.labels, **labels})
    return msgspec.structs.replace(pod, metadata=metadata)


def a_pod_group(name: str, minimum: int, **spec: Any) -> SigsPodGroup:
    document = {"metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": minimum, **spec}}
    return kinds.convert(SigsPodGroup, document)


def a_kubernetes_group(name: str, minimum: int | None, **spec: Any) -> PodGroup:
    """Without a minimum its policy is basic."""
    policy: dict[str, Any] = {"basic": {}} if minimum is None else {"gang": {"minCount": minimum}}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    return kinds.convert(PodGroup, {"metadata": metadata, "spec": {"schedulingPolicy": policy, **spec}})


def running(world: World) -> dict[str, int]:
    """How many pods of each gang have a node."""
    found: dict[str, int] = {}
    for pod in world.pods():
        if pod.node_name:
            name = pod.labels.get(NAME, pod.name)
            found[name] = found.get(name, 0) + 1
    return found


def refuse_binding(world: World, *names: str) -> None:
    """The server refuses to bind these."""

    def answer(action: Action) -> Result | None:
        refused = isinstance(action, Bind) and action.pod.name in names
        return Result(action.id, 500, "no") if refused else Result(action.id)

    world.answers = answer


def evicted(world: World) -> list[str]:
    return sorted(action.pod.name for action in world.actions if isinstance(action, Evict))


def low(count: int, **more: Any) -> list[Pod]:
    return [a_pod(f"low-{at}", cpu=1, node=f"n{at}", priority=1, **more) for at in range(count)]


def bound_in_part(**more: Any) -> World:
    """Two of three are bound; the node of the third is empty, and kept for it."""
    world = a_world(nodes=3, **more)
    refuse_binding(world, "g-2")
    world.submit(*gang("g", 3))
    world.run()
    return world
