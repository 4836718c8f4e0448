"""Preemption: which pods are evicted, which pods may preempt, and which pod gets the room."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.pods import assumed
from stowplan.engine.unit import QueueStage
from stowplan.framework.decision import Reject, RejectPod
from stowplan.objects.actions import Evict, Patch
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PriorityClass
from stowplan.testing.builders import REQUIRED, a_budget, a_node, a_pod, from_yaml
from stowplan.testing.world import World
from tests.engine.situations.recorders import HIGH, LOW, MEDIUM, Asked, Held, of, only, reason, uid, where
from tests.engine.small_plugins import profiles
from tests.plugins.nodes.default.volumes import claim, mount, volume

SMALL: dict[str, Any] = {"cpu": "100m", "memory": 100}


def half_node(name: str = "node1") -> Any:
    return a_node(name, cpu="500m", memory=500, pods=32, labels={"node": name})


def evicted(world: World) -> list[str]:
    return sorted(action.pod.name for action in of(world, Evict))


# -- one pod that needs room


class OnePodPerNode:
    """Allows one pod per node; its `pre_filter` also rejects, where it is enabled."""

    def __init__(self, resolvable: bool = True) -> None:
        self._resolvable = resolvable

    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | None:
        return RejectPod(("all taken",)) if (cluster.nodes.requested["pods"] >= 1).all() else None

    def filter(self, pod: Pod, nodes: Nodes) -> list[Reject]:
        taken = nodes.requested["pods"] >= 1
        return [Reject(taken, f"can't fit {pod.name}", resolvable=self._resolvable)] if taken.any() else []


def away_from(label: str) -> dict[str, Any]:
    selector = {"matchExpressions": [{"key": "pod", "operator": "In", "values": [label]}]}
    return {"affinity": {"podAntiAffinity": {REQUIRED: [{"topologyKey": "node", "labelSelector": selector}]}}}


BIG_VICTIM = a_pod("victim", priority=LOW, cpu="400m", memory=200)
VICTIM = a_pod("victim", priority=LOW, cpu="200m", memory=200)
PREEMPTOR = a_pod("preemptor", priority=HIGH, cpu="200m", memory=200)
LONER = a_pod("preemptor", priority=HIGH, labels={"pod": "preemptor"}, **SMALL, **away_from("p0"))
DISLIKED = a_pod("pod-0", priority=MEDIUM, labels={"pod": "p0"}, **SMALL)


def one_that_dislikes_it(priority: int) -> Pod:
    return a_pod("pod-1", priority=priority, labels={"pod": "p1"}, **SMALL, **away_from("preemptor"))


@pytest.mark.parametrize(
    ("at", "there", "pod", "victims"),
    [
        pytest.param(
            {},
            [BIG_VICTIM],
            a_pod("preemptor", priority=HIGH, cpu="300m", memory=200),
            ["victim"],
            id="a pod that takes too much is evicted",
        ),
        pytest.param({"filter": OnePodPerNode()}, [VICTIM], PREEMPTOR, ["victim"], id="a filter of one's own"),
        pytest.param(
            {"filter": OnePodPerNode(), "preFilter": OnePodPerNode()},
            [VICTIM],
            PREEMPTOR,
            ["victim"],
            id="a pre-filter of one's own that eviction can help",
        ),
        pytest.param(
            {"filter": OnePodPerNode(resolvable=False)},
            [VICTIM],
            PREEMPTOR,
            [],
            id="a filter that eviction cannot help",
        ),
        pytest.param(
            {},
            [DISLIKED, one_that_dislikes_it(LOW)],
            LONER,
            ["pod-0", "pod-1"],
            id="one pod it avoids and one that avoids it",
        ),
        pytest.param(
            {}, [DISLIKED, one_that_dislikes_it(HIGH)], LONER, [], id="the one that avoids it has the same priority"
        ),
    ],
)
def test_which_pods_are_evicted(at: dict[str, Any], there: list[Pod], pod: Pod, victims: list[str]) -> None:
    named = profiles(**{point: [plugin] for point, plugin in at.items()})
    world = World(nodes=[half_node()], profiles=named, graceful=True)
    world.submit(*(assumed(each, "node1") for each in there))
    world.submit(pod)
    world.run()
    assert where(world, "preemptor") is QueueStage.UNSCHEDULABLE
    assert evicted(world) == victims
    assert [each.name for each in world.pods() if each.terminating] == victims
    assert all(world.pod(name).condition("DisruptionTarget") is not None for name in victims)
    assert world.pod("preemptor").nominated_node == ("node1" if victims else "")
    world.delete(*(world.pod(name) for name in victims))
    world.run()
    assert where(world, "preemptor") == ("node1" if victims else QueueStage.UNSCHEDULABLE)


# -- who may evict


@pytest.mark.parametrize(
    ("policy", "switched_off", "nominated"),
    [
        pytest.param(None, False, "node1", id="by default it preempts"),
        pytest.param("Never", False, "", id="its policy is never to preempt"),
        pytest.param(None, True, "", id="preemption is switched off"),
    ],
)
def test_which_pods_may_preempt(policy: str | None, switched_off: bool, nominated: str) -> None:
    named = only(postFilter=[]) if switched_off else profiles()
    world = World(nodes=[half_node()], profiles=named, graceful=True)
    world.submit(BIG_VICTIM)
    world.run()
    world.submit(a_pod("preemptor", priority=HIGH, cpu="300m", memory=200, preemptionPolicy=policy))
    world.run()
    assert where(world, "preemptor") is QueueStage.UNSCHEDULABLE and reason(world, "preemptor") == "Unschedulable"
    assert world.pod("preemptor").nominated_node == nominated
    assert evicted(world) == (["victim"] if nominated else [])


@pytest.mark.parametrize(
    ("name", "priority"),
    [
        pytest.param("system-node-critical", 2_000_001_000, id="the class of what a node needs"),
        pytest.param("system-cluster-critical", 2_000_000_000, id="the class of what a cluster needs"),
        pytest.param("mine", 5, id="a class of one's own"),
        pytest.param("foo", 0, id="no such class: an API server would not have let the pod in"),
    ],
)
def test_priorities_come_from_classes(name: str, priority: int) -> None:
    world = World(
        nodes=["a"], checks=False
    )  # the server's objects do not have the priority, so columns differ from them
    world.submit(from_yaml(PriorityClass, "{metadata: {name: mine}, value: 5}"))
    world.submit(a_pod("web", priorityClassName=name))
    assert world.scheduler.queue.units[uid("web")].lead.priority == priority
    world.run()
    assert world.bindings == {"web": "a"}
    assert world.scheduler.state.pods[uid("web")].pod.priority == priority


# -- who gets the room


def test_pending_pods_do_not_take_the_room_nominated_for_a_higher_priority() -> None:
    world = World(nodes=[half_node()])
    world.submit(*(a_pod(f"running-{number}", priority=MEDIUM, **SMALL) for number in range(5)))
    world.run()
    assert len(world.bindings) == 5
    world.submit(*(a_pod(f"pending-{number}", priority=MEDIUM, **SMALL) for number in range(5)))
    world.run()
    assert {where(world, f"pending-{number}") for number in range(5)} == {QueueStage.UNSCHEDULABLE}
    held = Held(world, Evict)
    world.submit(a_pod("preemptor", priority=HIGH, cpu="300m", memory=200))
    world.run()
    assert len(held.actions) == 3 and world.pod("preemptor").nominated_node == "node1"
    held.let_go()
    world.advance(60)
    assert where(world, "preemptor") == "node1" and len(world.bindings) == 3
    assert not any(name.startswith("pending") for name in world.bindings)
    assert world.pod("preemptor").nominated_node == "", "cleared by the binding"


@pytest.mark.parametrize("graceful", [pytest.param(True, id="who take their time"), pytest.param(False, id="at once")])
def test_later_pods_do_not_take_the_room_of_terminating_victims(graceful: bool) -> None:
    world = World(nodes=[a_node("node1", cpu=5, memory=5000, pods=100)], graceful=graceful)
    world.submit(*(a_pod(f"running-{number}", priority=MEDIUM, **SMALL) for number in range(2)))
    world.run()
    world.submit(a_pod("preemptor", priority=HIGH, cpu="4900m", memory=4900))
    world.submit(*(a_pod(f"later-{number}", priority=MEDIUM, **SMALL) for number in range(20)))
    world.run()
    later = [f"later-{number}" for number in range(20)]
    if graceful:
        assert where(world, "preemptor") is QueueStage.UNSCHEDULABLE
        assert {where(world, name) for name in later} == {QueueStage.UNSCHEDULABLE}
        world.delete(*(pod for pod in world.pods() if pod.terminating))
    world.advance(60)
    assert where(world, "preemptor") == "node1"
    assert len(world.bindings) == 2, "one victim was enough, and the other pod stayed"
    assert {where(world, name) for name in later} == {QueueStage.UNSCHEDULABLE}
    assert {reason(world, name) for name in later} == {"Unschedulable"}


# -- disruption budgets and volumes


def labelled(name: str, priority: int, node: str = "", **labels: str) -> Pod:
    return a_pod(name, priority=priority, node=node, labels=labels, **SMALL)


@pytest.mark.parametrize(
    ("nodes", "budgets", "there", "cpu", "victims"),
    [
        pytest.param(
            1,
            [a_budget("b", allowed=0, foo="bar")],
            [
                labelled("low-1", LOW, "node-1", foo="bar"),
                labelled("low-2", LOW, "node-1", foo="bar"),
                labelled("mid-3", MEDIUM, "node-1"),
            ],
            "300m",
            ["mid-3"],
            id="a pod that no budget protects is evicted, though its priority is higher",
        ),
        pytest.param(
            2,
            [a_budget("b", allowed=0, foo="bar")],
            [labelled("low-1", LOW, "node-1", foo="bar"), labelled("mid-2", MEDIUM, "node-2")],
            "500m",
            ["mid-2"],
            id="a node where no budget is violated is preferred",
        ),
        pytest.param(
            3,
            [a_budget("b1", allowed=0, foo1="bar"), a_budget("b2", allowed=3, foo2="bar")],
            [
                labelled("low-1", LOW, "node-1", foo1="bar"),
                labelled("mid-1", MEDIUM, "node-1"),
                labelled("low-2", LOW, "node-2", foo2="bar"),
                labelled("mid-2", MEDIUM, "node-2", foo2="bar"),
                *(labelled(f"low-{number}", LOW, "node-3", foo2="bar") for number in (4, 5, 6)),
            ],
            "500m",
            ["low-4", "low-5", "low-6"],
            id="budgets first, then the priority of the victims, then their number",
        ),
    ],
)
def test_disruption_budgets(nodes: int, budgets: list[Object], there: list[Pod], cpu: str, victims: list[str]) -> None:
    world = World(nodes=[half_node(f"node-{number + 1}") for number in range(nodes)])
    world.submit(*budgets, *there)
    world.submit(a_pod("preemptor", priority=HIGH, cpu=cpu, memory=200))
    world.run()
    assert evicted(world) == victims
    world.advance(5)
    assert where(world, "preemptor") == next(pod.node_name for pod in there if pod.name in victims)
    assert {pod.name for pod in world.pods()} == {pod.name for pod in there} - set(victims) | {"preemptor"}


def using(name: str, priority: int, *claims: str) -> Pod:
    return a_pod(name, priority=priority, volumes=[{"name": each, **mount(each)} for each in claims])


@pytest.mark.parametrize(
    ("there", "pod", "victims"),
    [
        pytest.param([using("v", LOW, "one")], using("preemptor", HIGH, "one"), ["v"], id="a claim that one pod has"),
        pytest.param(
            [using("v1", LOW, "one"), using("v2", LOW, "two")],
            using("preemptor", HIGH, "one", "two"),
            ["v1", "v2"],
            id="two claims that two pods have",
        ),
        pytest.param(
            [using("v", LOW, "one", "two")],
            using("preemptor", HIGH, "one", "two"),
            ["v"],
            id="two claims that one pod has",
        ),
    ],
)
def test_claims_that_only_one_pod_may_use(there: list[Pod], pod: Pod, victims: list[str]) -> None:
    world = World(nodes=[half_node()])
    for name in ("one", "two"):
        world.submit(volume(f"pv-{name}", accessModes=["ReadWriteOncePod"], storageClassName=""))
        world.submit(claim(name, f"pv-{name}", accessModes=["ReadWriteOncePod"]))
    world.submit(*there)
    world.run()
    assert set(world.bindings) == {each.name for each in there}
    world.submit(pod)
    world.run()
    assert evicted(world) == victims
    world.advance(5)
    assert world.bindings == {"preemptor": "node1"}


# -- victims that are being bound


@pytest.mark.parametrize(
    "step", [pytest.param(BindStep.WAITING, id="waits"), pytest.param(BindStep.PRE_BINDING, id="pre-binds")]
)
def test_a_victim_that_is_not_bound_yet_gets_another_node(step: BindStep) -> None:
    """A small node is added while the victim is being bound to the big one, which only the preemptor needs."""
    once = {"victim": 60.0 if step is BindStep.WAITING else [Patch(kind="ConfigMap", key="default/x", body={})]}
    plugin = Asked(permit=lambda pod, *_: once.pop(pod.name, None), pre_bind=lambda pod, *_: once.pop(pod.name, None))
    point = "permit" if step is BindStep.WAITING else "preBind"
    world = World(nodes=[a_node("big", cpu=2, memory="2Gi")], profiles=profiles(**{point: [plugin]}))
    held = Held(world, Patch) if step is BindStep.PRE_BINDING else None
    world.submit(a_pod("victim", priority=LOW, cpu=1, memory="1Gi"))
    world.run()
    assert where(world, "victim") is step and (held is None or len(held.actions) == 1)
    world.submit(a_node("small", cpu=1, memory="1Gi"))
    world.submit(a_pod("preemptor", priority=HIGH, cpu="1500m", memory="1536Mi"))
    world.run()
    assert where(world, "preemptor") == "big" and where(world, "victim") is QueueStage.BACKOFF
    assert not of(world, Evict) and "(in kube-scheduler memory)" in world.event_notes("victim", "Preempted")[0]
    world.advance(2)
    assert world.bindings == {"preemptor": "big", "victim": "small"}
