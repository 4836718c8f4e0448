"""Rows of a table: existing objects, pods that are rejected, a change, and which pods are requeued."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stowplan.engine.unit import QueueStage
from stowplan.framework.profile import Profile
from stowplan.objects.changes import Gone
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.testing.builders import REQUIRED, a_profile
from stowplan.testing.world import World
from tests.engine.situations.recorders import where

NOT_READY = "node.kubernetes.io/not-ready:NoSchedule"


def enabling(plugins: str) -> dict[str, Profile]:
    """Return a profile of these plugins (names with spaces between), at every point that they have; all plugins by
    default.
    """
    if not plugins:
        return {"default-scheduler": a_profile()}
    enabled = [{"name": name} for name in ("PrioritySort", "DefaultBinder", *plugins.split())]
    multi_point = {"multiPoint": {"enabled": enabled, "disabled": [{"name": "*"}]}}
    return {"default-scheduler": a_profile({"profiles": [{"plugins": multi_point}]})}


def rejected(plugins: str, there: Iterable[Object], pods: Iterable[Pod]) -> World:
    """Return a world in which each of these pods was attempted once and rejected."""
    world = World(profiles=enabling(plugins), initial_backoff=0, max_backoff=0)
    world.submit(*there)
    world.submit(*pods)
    world.run()
    assert {pod.name: where(world, pod.name) for pod in pods} == {pod.name: QueueStage.UNSCHEDULABLE for pod in pods}
    return world


def queued_again(world: World, pods: Iterable[Pod], happens: Iterable[Object | Gone]) -> set[str]:
    """Return the pods that are requeued after these changes."""
    for each in happens:
        if isinstance(each, Gone):
            world.delete(each.object)
        else:
            world.submit(each)
    stages = {pod.name: where(world, pod.name) for pod in pods}
    assert set(stages.values()) <= {QueueStage.ACTIVE, QueueStage.UNSCHEDULABLE}
    return {name for name, stage in stages.items() if stage is QueueStage.ACTIVE}


# -- wishes of pods


def in_group(value: str) -> dict[str, Any]:
    """Return the affinity to nodes whose label `group` has this value."""
    term = {"matchExpressions": [{"key": "group", "operator": "In", "values": [value]}]}
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}


def called(name: str) -> dict[str, Any]:
    """Return the affinity to the node of this name."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}}


def _near(label: str, key: str) -> dict[str, Any]:
    selector = {"matchExpressions": [{"key": label, "operator": "Exists"}]}
    return {REQUIRED: [{"topologyKey": key, "labelSelector": selector}]}


def near(label: str, key: str, **others: Any) -> dict[str, Any]:
    """Return the affinity to pods with this label."""
    return {"affinity": {"podAffinity": _near(label, key), **others.get("affinity", {})}}


def away(label: str, key: str) -> dict[str, Any]:
    """Return the anti-affinity to pods with this label."""
    return {"affinity": {"podAntiAffinity": _near(label, key)}}


def spread(label: str, key: str, domains: int | None = None) -> dict[str, Any]:
    """Return the constraint to spread pods with this label over at least so many domains."""
    selector = {"matchExpressions": [{"key": label, "operator": "Exists"}]}
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"topologySpreadConstraints": [{**constraint, "minDomains": domains}]}
