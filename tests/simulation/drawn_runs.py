"""Runs that are drawn: a cluster and a stream, with the same objects as the scenarios for kube-scheduler's recorder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stowplan.apps import profile_loader
from stowplan.apps.parity.node_records import LISTS
from stowplan.framework.filtering import HIGHEST_USER_PRIORITY
from stowplan.kube.resources import RESOURCES
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.run import Simulation
from stowplan.simulation.settings import RunSettings
from stowplan.simulation.simulated_cluster import SimulatedCluster
from stowplan.simulation.stream_events import (
    Arrival,
    DeletedObject,
    NodeCordon,
    NodeFailure,
    NodeRecovery,
    StreamEvent,
)
from tests.oracle.draw.categories import CATEGORIES
from tests.oracle.draw.scenario import Draw, Obj, Scenario

WORLDS = (
    "everything-mixed", "resources", "taints", "node-affinity", "node-name-ports", "inter-pod-affinity",
    "topology-spread", "image-locality", "volumes", "preemption", "pending",
)  # fmt: skip
ARRIVING = ("everything-mixed", "inter-pod-affinity", "topology-spread", "resources", "taints", "preemption")
LONGEST = 60.0  # seconds that pods arrive
PODS = 10


def a_drawn_run(seed: int) -> Simulation:
    """Return a run of default plugins that has not begun. What the API server would refuse is left out."""
    draw = Draw(f"run/{seed}")
    world = _scenario(WORLDS[seed % len(WORLDS)], draw)
    arriving = [world.pod, *(_scenario(draw.choice(ARRIVING), draw).pod for _ in range(PODS))]
    settings = RunSettings(
        seed=seed, until=600, bind_seconds=draw.choice((0, 3)), start_seconds=draw.choice((0, 2)),
        stop_seconds=draw.choice((0, 5)), sample_seconds=0,
    )  # fmt: skip
    problems = InputProblems(skip=True)
    cluster = SimulatedCluster(settings)
    cluster.load([("drawn", each) for each in (*_classes(world, arriving), *_objects(world))], problems)
    stream = [*_arrivals(arriving, draw), *_events_of_nodes(world.node_names(), draw)]
    return Simulation(cluster, stream, profile_loader.defaults()[1], settings, problems=problems)


def _scenario(category: str, draw: Draw) -> Scenario:
    found = Scenario(category, category, 0, draw)
    CATEGORIES[category](found)
    return found


def _objects(world: Scenario) -> Iterator[Obj]:
    """The objects of a scenario, as a manifest has them."""
    for name, kind in LISTS.items():
        resource = RESOURCES[kind]
        version = "/".join(filter(None, (resource.group, resource.versions[0])))
        for found in world.cluster.get(name, ()):
            yield {"apiVersion": version, "kind": kind, **(_of_class(found) if kind == "Pod" else found)}


def _of_class(pod: Obj) -> Obj:
    """The pod with the class of its priority: a server takes no other."""
    spec = dict(pod["spec"])
    if (priority := spec.pop("priority", None)) is not None:
        spec["priorityClassName"] = _class_of(priority)
    return {**pod, "spec": spec}


def _class_of(priority: int) -> str:
    return f"is-{priority}".replace("--", "-minus-")


def _classes(world: Scenario, arriving: list[Obj]) -> Iterator[Obj]:
    found = {each["spec"].get("priority") for each in (*world.cluster["pods"], *arriving)} - {None}
    for value in sorted(found):
        if value <= HIGHEST_USER_PRIORITY:
            metadata = {"name": _class_of(value)}
            yield {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": value}


def _arrivals(pods: list[Obj], draw: Draw) -> Iterator[StreamEvent]:
    for number, pod in enumerate(pods):
        found = _of_class(pod)
        metadata = {key: value for key, value in found["metadata"].items() if key != "uid"} | {"name": f"new-{number}"}
        document: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": found["spec"]}
        lasts = draw.choice((None, draw.uniform(5, LONGEST)))
        yield Arrival(at=draw.uniform(0, LONGEST), duration=lasts, document=document, file="drawn", place=f"{number}")


def _events_of_nodes(names: list[str], draw: Draw) -> Iterator[StreamEvent]:
    """A node is cordoned for a while, one fails for a while, one goes for ever."""
    if not names:
        return
    cordoned, failing, going = (draw.choice(names) for _ in range(3))
    yield NodeCordon(at=10, node=cordoned)
    yield NodeCordon(at=30, node=cordoned, cordoned=False)
    yield NodeFailure(at=20, node=failing)
    yield NodeRecovery(at=40, node=failing)
    if len(names) > 2:
        yield DeletedObject(at=50, api_version="v1", kind="Node", name=going)
