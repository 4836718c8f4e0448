"""What the engine adds to a decision: queue, reserving, binding, messages. All sides of a comparison run by turns.

engine-step      one `step` against the bare decision and the pod assumed, in yardstick passes more, pod by pod in
                 turns; on both sides the server's news of the bound pod come in between, off the clock
engine-pending   a pod's whole way through the engine, beside 20,000 pods that have no place and beside none
engine-group     a group of 1,000 of which the last finds no node, against one that fits
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import object_templates, workload
from benchmarks.figures import Comparison
from benchmarks.interleaving import compared
from benchmarks.workload import CreateNodes, Template
from stowplan.apps.plugin_kit.interleaving import Measurement, interleave
from stowplan.apps.plugin_kit.yardstick import Yardstick
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine.pods import assumed
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.group import Group
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.actions import Action, Bind
from stowplan.objects.changes import Gone, Put, Result
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

NODES, PENDING, GROUP, BATCH = 5000, 20_000, 1000, 50
NAMES = ("engine-step", "engine-pending", "engine-group")


def run(name: str, profile: Profile, rounds: int) -> Comparison:
    return {"engine-step": _step, "engine-pending": _pending, "engine-group": _group}[name](profile, rounds)


class EngineDriver:
    """An engine with 5,000 nodes, and an API server that does whatever it is asked."""

    def __init__(self, profile: Profile, nodes: Iterator[Node] | None = None) -> None:
        self.scheduler = Scheduler({profile.scheduler_name: profile}, np.random.default_rng(0))
        self.now = 0.0
        for node in nodes or _nodes():
            self.scheduler.handle(Put(node), self.now)

    def submit(self, pod: Pod) -> None:
        self.scheduler.handle(Put(pod), self.now)

    def step(self) -> list[Action]:
        self.now += 0.001
        return self.scheduler.step(self.now)

    def answer(self, actions: list[Action], pods: dict[str, Pod]) -> list[Pod]:
        """The server binds pods and says so; the pods as they are then."""
        bound = []
        for action in actions:
            if isinstance(action, Bind):
                bound.append(assumed(pods[action.pod.uid], action.node_name))
                self.scheduler.handle(Put(bound[-1]), self.now)
                self.scheduler.handle(Result(action.id), self.now)
        return bound

    def refuse(self, actions: list[Action]) -> int:
        """The server answers all bindings with an error; how many there were."""
        bindings = [action for action in actions if isinstance(action, Bind)]
        for action in bindings:
            self.scheduler.handle(Result(action.id, 500, "the server is out of order"), self.now)
        return len(bindings)

    def remove(self, pods: list[Pod]) -> None:
        for pod in pods:
            self.scheduler.handle(Gone(pod), self.now)


# -- one step


def _step(profile: Profile, rounds: int) -> Comparison:
    pods = _endless({"containers": [_container()]})
    driver, state = EngineDriver(profile), ClusterState()
    for node in _nodes():
        state.apply(Put(node))
    generator = np.random.default_rng(0)

    def bare(pod: Pod) -> float:
        start = perf_counter()
        decision = schedule_one(pod, state, profile, generator, gate=False)
        assert decision.node is not None
        state.add_pod(pod, decision.node)
        seconds = perf_counter() - start
        state.apply(Put(assumed(pod, decision.node)))
        return seconds

    def stepped(pod: Pod) -> float:
        driver.submit(pod)
        start = perf_counter()
        actions = driver.step()
        seconds = perf_counter() - start
        driver.answer(actions, {pod.uid: pod})
        return seconds

    # Pod by pod in turns: both sides then find the caches as the other one left them, and not one side its own.
    sides = Turns(pods, bare, stepped)
    measurements = [Measurement(sides.first, Yardstick(state)), Measurement(sides.second, Yardstick(state))]
    interleave(measurements, rounds)
    more = median(_differences(*measurements))
    return compared(
        "engine-step",
        "one step",
        measurements,
        f"{more:.2f} yardsticks more than the bare decision",
        nodes=NODES,
        pods=BATCH,
        yardsticks=more,
    )


class Turns:
    """Two ways to deal with a pod, in turns; `first` runs a batch of both, `second` tells of the same batch.

    A batch counts as often its median pod. A sum would be decided by a few garbage collections, and these fall on the
    side that happens to reach the collector's threshold.
    """

    def __init__(self, pods: Iterator[Pod], *ways: Callable[[Pod], float]) -> None:
        self._pods, self._ways = pods, ways
        self._seconds: tuple[list[float], ...] = ()

    def first(self) -> tuple[float, int]:
        self._seconds = tuple([] for _ in self._ways)
        for number in range(BATCH):
            for side in (0, 1) if number % 2 else (1, 0):
                self._seconds[side].append(self._ways[side](next(self._pods)))
        return BATCH * median(self._seconds[0]), BATCH

    def second(self) -> tuple[float, int]:
        return BATCH * median(self._seconds[1]), BATCH


def _differences(bare: Measurement, stepped: Measurement) -> Iterator[float]:
    return ((mine - its) / one for its, mine, one in zip(bare.costs, stepped.costs, stepped.passes, strict=True))


# -- many that wait


def _pending(profile: Profile, rounds: int) -> Comparison:
    alone, crowded = EngineDriver(profile), EngineDriver(profile)
    for pod in _some(PENDING, {"containers": [_container(cpu="64")]}):
        crowded.submit(pod)
    for _ in range(PENDING):
        crowded.step()
    pods = _endless({"containers": [_container()]})

    def through(driver: EngineDriver) -> tuple[float, int]:
        seconds, gone = 0.0, []
        for pod in (next(pods) for _ in range(BATCH)):
            start = perf_counter()
            driver.submit(pod)
            gone += driver.answer(driver.step(), {pod.uid: pod})
            seconds += perf_counter() - start
        assert len(gone) == BATCH
        return seconds, BATCH

    yardstick = Yardstick(alone.scheduler.state)
    measurements = [Measurement(lambda: through(alone), yardstick), Measurement(lambda: through(crowded), yardstick)]
    interleave(measurements, rounds)
    return compared(
        "engine-pending", f"{PENDING:,} pods without a place", measurements, "against none", nodes=NODES, pods=BATCH
    )


# -- groups


class Gang:
    """All pods with the label `gang` are one group."""

    def group_of(self, pod: Pod, cluster: Cluster) -> Group | None:  # noqa: ARG002
        return Group(pod.labels["gang"], GROUP) if "gang" in pod.labels else None

    def post_bind(self, *_: Any) -> tuple[()]:
        return ()


def _group(profile: Profile, rounds: int) -> Comparison:
    points = {**profile.points, "postBind": (EnabledPlugin("Gang", Gang()),)}
    with_gangs = Profile(profile.scheduler_name, points)
    measurements = []
    for room in (GROUP, GROUP - 1):
        driver = EngineDriver(with_gangs, _with_pool(room))
        measurements.append(Measurement(_whole_group(driver, fits=room == GROUP), Yardstick(driver.scheduler.state)))
    interleave(measurements, max(rounds // 4, 3))
    return compared(
        "engine-group",
        f"a group of {GROUP:,} that does not fit",
        measurements,
        "against one that does",
        nodes=NODES,
        pods=BATCH,
    )


def _whole_group(driver: EngineDriver, *, fits: bool) -> Any:
    spec = {"containers": [_container(cpu="3")], "nodeSelector": {"pool": "of-the-group"}}
    numbers = count()

    def batch() -> tuple[float, int]:
        name = f"gang-{next(numbers)}"
        pods = list(_some(GROUP, spec, {"gang": name}, prefix=name))
        for pod in pods:
            driver.submit(pod)
        start = perf_counter()
        actions = driver.step()
        seconds = perf_counter() - start
        assert sum(isinstance(action, Bind) for action in actions) == (GROUP if fits else 0)
        driver.answer(actions, {pod.uid: pod for pod in pods})
        driver.remove(pods)
        return seconds, 1

    return batch


def _with_pool(size: int) -> Iterator[Node]:
    """The first so many nodes are labelled for the group, each with room for one of its pods."""
    plan = next(step for step in workload.every()["basic"].workload_template if isinstance(step, CreateNodes))
    for at, node in enumerate(object_templates.nodes(plan, NODES)):
        if at < size:
            node.metadata.labels["pool"] = "of-the-group"
        yield node


# -- pods and nodes


def _nodes() -> Iterator[Node]:
    plan = next(step for step in workload.every()["basic"].workload_template if isinstance(step, CreateNodes))
    return iter(object_templates.nodes(plan, NODES))


def _container(cpu: str = "100m") -> Template:
    return {"name": "main", "image": "registry.example/main:1", "resources": {"requests": {"cpu": cpu}}}


def _some(
    number: int, spec: Template, labels: dict[str, str] | None = None, prefix: str = "some"
) -> Iterator[Pod]:  # fmt: skip
    template = {"metadata": {"generateName": f"{prefix}-", "labels": labels or {}}, "spec": spec}
    return iter(object_templates.pods([template], number, "default", prefix))


def _endless(spec: Template) -> Iterator[Pod]:
    for number in count():
        yield from _some(1000, spec, prefix=f"lot{number}")
