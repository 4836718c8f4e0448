"""Gated pods: by gates in their spec, or by a plugin at pre-enqueue."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.engine.unit import QueueStage
from stowplan.framework.decision import RejectPod
from stowplan.framework.interfaces import Wake
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.default.scheduling_gates import SchedulingGates
from stowplan.testing.builders import HOSTNAME, REQUIRED, a_node, a_pod
from stowplan.testing.world import World
from tests.engine.situations.recorders import Asked, changed, only, where
from tests.engine.small_plugins import profiles

BESIDE = {"podAffinity": {REQUIRED: [{"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"foo": "bar"}}}]}}


def gated(name: str, *gates: str, **spec: Any) -> Pod:
    return a_pod(name, schedulingGates=[{"name": gate} for gate in gates], **spec)


@pytest.mark.parametrize(
    ("gates", "bound", "gone", "opened"),
    [
        pytest.param({"p1": [], "p2": []}, {"p1", "p2"}, set(), set(), id="pods without gates are bound"),
        pytest.param({"p1": ["foo"], "p2": []}, {"p2"}, set(), set(), id="a pod with a gate stays out"),
        pytest.param(
            {"p1": ["foo"], "p2": ["bar"], "p3": []},
            {"p3"},
            set(),
            {"p2"},
            id="of two pods with gates the one whose gates are removed is bound",
        ),
        pytest.param(
            {"p1": ["foo"], "p2": []},
            {"p2"},
            {"p2"},
            {"p1"},
            id="a gated pod is not requeued by a deleted pod, but when its gates are removed",
        ),
    ],
)
def test_gates_in_the_spec(gates: dict[str, list[str]], bound: set[str], gone: set[str], opened: set[str]) -> None:
    world = World(nodes=["node"], initial_backoff=0, max_backoff=0)
    world.submit(*(gated(name, *each) for name, each in gates.items()))
    world.run()
    assert set(world.bindings) == bound
    world.delete(*(world.pod(name) for name in gone))
    held = set(gates) - bound
    assert {where(world, name) for name in held} <= {QueueStage.GATED}
    world.submit(*(a_pod(name) for name in opened))
    assert {name for name in held if where(world, name) is QueueStage.ACTIVE} == opened
    world.run()
    assert set(world.bindings) == bound - gone | opened


@pytest.mark.parametrize(
    ("pod", "answer", "admitted"),
    [
        pytest.param(a_pod("p"), None, True, id="the plugin admits it"),
        pytest.param(gated("p", "foo"), RejectPod(("not ready",), resolvable=False), False, id="the plugin gates it"),
    ],
)
def test_a_pre_enqueue_plugin(pod: Pod, answer: RejectPod | None, admitted: bool) -> None:
    plugin = Asked(pre_enqueue=answer)
    world = World(nodes=["a"], profiles=profiles(preEnqueue=[plugin], preFilter=[plugin]))
    world.submit(pod)
    world.run()
    assert plugin.count("pre_enqueue") >= 1
    assert plugin.count("pre_filter") == int(admitted)
    assert where(world, "p") == ("a" if admitted else QueueStage.GATED)
    assert bool(world.actions) is admitted, "nothing is said about a pod that is held back"


class Gatekeeper(SchedulingGates):
    """SchedulingGates that records its calls and registers for the events of a test."""

    def __init__(self, *wakes: Wake) -> None:
        self.asked: list[str] = []
        self._wakes = wakes

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> RejectPod | None:
        self.asked.append(pod.name)
        return super().pre_enqueue(pod, cluster)

    def wakes_on(self) -> Iterable[Wake]:
        return self._wakes


@pytest.mark.parametrize(
    ("wakes", "asked", "opens"),
    [
        pytest.param(
            [], ["p", "other"], False, id="registered for nothing: even the pod's own update does not open it"
        ),
        pytest.param(
            [Wake("Pod", ("Update",))],
            ["p", "other", "p"],
            True,
            id="registered for updates of pods: asked again at any of them",
        ),
    ],
)
def test_pre_enqueue_is_called_again_for_events_that_its_plugin_registered_for(
    wakes: list[Wake], asked: list[str], opens: bool
) -> None:
    keeper = Gatekeeper(*wakes)
    world = World(nodes=[a_node("a", labels={HOSTNAME: "a"})], profiles=only(preEnqueue=[keeper]))
    world.submit(gated("p", "foo", affinity=BESIDE))
    world.run()
    assert where(world, "p") is QueueStage.GATED and keeper.asked == ["p"]
    world.submit(a_pod("other", labels={"foo": "bar"}))
    world.run()
    assert world.bindings == {"other": "a"}
    world.submit(changed(world.pod("other"), annotations={"foo": "bar"}))
    world.run()
    assert where(world, "p") is QueueStage.GATED and keeper.asked == asked
    world.submit(a_pod("p", affinity=BESIDE))
    world.run()
    assert where(world, "p") == ("a" if opens else QueueStage.GATED)
