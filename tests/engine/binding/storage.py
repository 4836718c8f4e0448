"""Claims, volumes and a fake volume controller, for tests of pods that wait for their volumes; and two such pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.unit import QueueStage
from stowplan.framework.profile import Profile
from stowplan.objects.actions import Patch
from stowplan.objects.kinds import KINDS, convert
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.storage import BIND_COMPLETED, SELECTED_NODE, PersistentVolume, PersistentVolumeClaim
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.patching import with_patch
from stowplan.testing.world import World

CLASSES = {"local": "kubernetes.io/no-provisioner", "made": "csi.example.com"}


def named(kind: str, name: str, /, meta: Mapping[str, Any] = {}, **fields: Any) -> Object:
    return convert(KINDS[kind], {"metadata": {"name": name, "uid": f"uid-of-{name}", **meta}, **fields})


def a_claim(name: str = "data", storage_class: str = "local", *, uid: str = "", **annotations: str) -> Object:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    meta = {"namespace": "default", "uid": uid or f"uid-of-{name}", "annotations": annotations}
    return named("PersistentVolumeClaim", name, meta, spec=spec, status={"phase": "Pending"})


def a_volume(name: str = "disk", on: str = "", **spec: Any) -> Object:
    term = {"matchExpressions": [{"key": "host", "operator": "In", "values": [on]}]}
    reach = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}} if on else {}
    filled = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local"}
    return named("PersistentVolume", name, spec={**filled, **reach, **spec}, status={"phase": "Available"})


def a_host(name: str, **fields: Any) -> Node:
    return a_node(name, labels={"host": name}, **fields)


def a_user(name: str, *claims: str, **fields: Any) -> Pod:
    mounts = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return a_pod(name, volumes=mounts, **fields)


def a_world(*nodes: Node | str, profiles: Mapping[str, Profile] | None = None, **options: Any) -> World:
    """Return a world with the storage classes `local` (volumes must exist) and `made` (they are provisioned), both with
    WaitForFirstConsumer.
    """
    hosts = [a_host(each) if isinstance(each, str) else each for each in nodes or ("a", "b")]
    world = World(nodes=hosts, profiles=profiles, **options)
    for name, provisioner in CLASSES.items():
        world.submit(named("StorageClass", name, provisioner=provisioner, volumeBindingMode="WaitForFirstConsumer"))
    return world


# -- what the volume controller and the provisioner do


def change(world: World, kind: str, key: str, body: Mapping[str, Any]) -> None:
    """Patch an object, as another client does."""
    found = world.objects[kind, key]
    world.submit(with_patch(found, body))


def bind(world: World, claim: str, volume: str) -> None:
    """Bind a claim, as the volume controller does."""
    status = {"phase": "Bound"}
    change(world, "PersistentVolume", volume, {"status": status})
    annotations = {"annotations": {BIND_COMPLETED: "yes"}}
    body = {"metadata": annotations, "spec": {"volumeName": volume}, "status": status}
    change(world, "PersistentVolumeClaim", f"default/{claim}", body)


def provision(world: World, claim: str, on: str) -> None:
    """Provision a volume on the claim's selected node, and bind the claim to it."""
    meant = {"namespace": "default", "name": claim, "uid": f"uid-of-{claim}"}
    world.submit(a_volume(f"made-for-{claim}", on, storageClassName="made", claimRef=meant))
    bind(world, claim, f"made-for-{claim}")


def control(world: World) -> None:
    """Do what the scheduler's patches ask the volume controller for, and run the scheduler."""
    for claim in [each for each in world.objects.values() if isinstance(each, PersistentVolumeClaim)]:
        node = claim.annotations.get(SELECTED_NODE)
        if not claim.bound and node:
            provision(world, claim.name, node)
        for volume in [each for each in world.objects.values() if isinstance(each, PersistentVolume)]:
            if not claim.bound and volume.spec.claim_ref is not None and volume.spec.claim_ref.uid == claim.uid:
                bind(world, claim.name, volume.name)
    world.run()


def patches(world: World) -> list[Patch]:
    return [each for each in world.actions if isinstance(each, Patch)]


def body(patch: Patch) -> dict[str, Any]:
    """Return the body of a merge patch."""
    assert isinstance(patch.body, dict)
    return patch.body


def claim(world: World, name: str = "data") -> PersistentVolumeClaim:
    found = world.objects["PersistentVolumeClaim", f"default/{name}"]
    assert isinstance(found, PersistentVolumeClaim)
    return found


def volume(world: World, name: str = "disk") -> PersistentVolume:
    found = world.objects["PersistentVolume", name]
    assert isinstance(found, PersistentVolume)
    return found


# -- a pod that waits


def static() -> World:
    """Return a world with a pod whose claim was given the only volume, on node a. The claim is not bound yet."""
    world = a_world()
    world.submit(a_claim(), a_volume("disk", "a"), a_user("web", "data"))
    world.run()
    return world


def dynamic() -> World:
    """Return a world with a pod whose claim has a selected node. The volume is not provisioned yet."""
    world = a_world("a")
    world.submit(a_claim("data", "made"), a_user("web", "data"))
    world.run()
    return world


BOTH = pytest.mark.parametrize("begin", [static, dynamic], ids=lambda each: each.__name__)


def step(world: World, name: str = "web") -> BindStep | None:
    placing = world.scheduler.assumed_pods.get(world.pod(name).uid)
    return None if placing is None else placing.step


def stage(world: World, name: str = "web") -> QueueStage:
    return world.scheduler.queue.units[world.pod(name).uid].stage


def reason(world: World, name: str = "web") -> str:
    condition = world.pod(name).condition("PodScheduled")
    return "" if condition is None else condition.reason
