"""Spark-like pods, their rivals and reservations for tests, and worlds whose profile has the plugin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from stowplan.framework.profile import Profile
from stowplan.objects import kinds
from stowplan.objects.meta import ObjectMeta
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import ResourceReservation
from stowplan.testing.builders import a_pod, a_profile
from stowplan.testing.world import World

APP, ROLE = "spark-app-selector", "spark-role"


def annotated(pod: Pod, created: str = "", **annotations: Any) -> Pod:
    """Underscores in names stand for hyphens."""
    texts = {name.replace("_", "-"): str(value) for name, value in annotations.items()}
    known = {**msgspec.to_builtins(pod.metadata), "annotations": texts}
    if created:
        known["creationTimestamp"] = created
    return msgspec.structs.replace(pod, metadata=msgspec.convert(known, ObjectMeta))


def needs(
    count: int | None = None, *, least: int | None = None, most: int | None = None, cpu: Any = 1, memory: Any = "1Gi"
) -> dict[str, Any]:
    """A driver's annotations: so many executors, or dynamically between two numbers."""
    found = {"spark_executor_cpu": cpu, "spark_executor_mem": memory}
    if count is not None:
        return {**found, "spark_executor_count": count}
    dynamic = "spark_dynamic_allocation"
    return {
        **found, f"{dynamic}_enabled": "true", f"{dynamic}_min_executor_count": least,
        f"{dynamic}_max_executor_count": most,
    }  # fmt: skip


def a_driver(app: str = "app", created: str = "", *, annotations: Mapping[str, Any] | None = None, **pod: Any) -> Pod:
    made = a_pod(f"{app}-driver", labels={APP: app, ROLE: "driver"}, **{"cpu": 1, "memory": "1Gi", **pod})
    return annotated(made, created, **(needs(4) if annotations is None else annotations))


def an_executor(number: int, app: str = "app", **pod: Any) -> Pod:
    labels = {APP: app, ROLE: "executor"}
    return a_pod(f"{app}-{number}", labels=labels, **{"cpu": 1, "memory": "1Gi", **pod})


def a_reservation(name: str = "kept", ttl: int = 0, **slots: Any) -> ResourceReservation:
    """Each slot as (node, resources)."""
    places = {slot.replace("_", "-"): {"node": node, "resources": amounts} for slot, (node, amounts) in slots.items()}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-of-{name}"}
    return kinds.convert(
        ResourceReservation, {"metadata": metadata, "spec": {"reservations": places, "ttlSeconds": ttl}}
    )


def profiles(**arguments: Any) -> dict[str, Profile]:
    document = {
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {"multiPoint": {"enabled": [{"name": "ResourceReservation"}]}},
                "pluginConfig": [{"name": "ResourceReservation", "args": arguments}],
            }
        ]
    }
    return {"default-scheduler": a_profile(document)}


def a_world(*nodes: Node | str, args: Mapping[str, Any] | None = None, **options: Any) -> World:
    return World(nodes=nodes, profiles=profiles(**(args or {})), **options)


def a_running_app(*nodes: Any, annotations: Any = None, **options: Any) -> World:
    world = a_world(*(nodes or ("a", "b")), **options)
    world.submit(a_driver(annotations=annotations))
    world.run()
    assert "app-driver" in world.bindings
    return world


def rivals(number: int, **pod: Any) -> list[Pod]:
    return [a_pod(f"rival-{each}", **{"cpu": 1, **pod}) for each in range(number)]


def bound(world: World, prefix: str) -> set[str]:
    return {name for name in world.bindings if name.startswith(prefix)}


def reservation(world: World, name: str = "app") -> ResourceReservation | None:
    found = world.objects.get(("ResourceReservation", f"default/{name}"))
    assert found is None or isinstance(found, ResourceReservation)
    return found


def places(world: World, name: str = "app") -> Counter[str]:
    """How many places each node has, the driver's included."""
    found = reservation(world, name)
    return Counter() if found is None else Counter(slot.node for slot in found.slots.values())


def held(world: World) -> Counter[str]:
    """How many places are held on each node."""
    return Counter(node for node, _ in world.scheduler.state.held.values())


def told(world: World, name: str) -> str:
    """What the pod's condition says."""
    found = world.pod(name).condition("PodScheduled")
    return "" if found is None else found.message
