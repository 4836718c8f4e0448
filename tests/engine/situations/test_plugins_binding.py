"""One plugin at each point after the decision: reserve, permit, pre-bind, bind, post-bind; and the rollback."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from stowplan.engine.binding.assumed_pod import BindStep
from stowplan.engine.unit import QueueStage
from stowplan.framework.decision import Reject, RejectPod
from stowplan.framework.interfaces import Wake
from stowplan.framework.profile import Profile
from stowplan.objects.actions import Bind, Patch, PodRef
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.situations.recorders import Asked, Held, attempts, of, only, reason, uid, where
from tests.engine.small_plugins import profiles

OOPS = KeyError("oops")
NO = RejectPod(("no",))
PATCH = Patch(kind="PersistentVolumeClaim", key="default/data", body={})


def a_world(**at: Iterable[Any]) -> World:
    world = World(nodes=["a", "b"], profiles=profiles(**at))
    world.submit(a_pod("web", cpu=1))
    return world


# -- reserve


@pytest.mark.parametrize(
    ("answer", "told"), [pytest.param(OOPS, "SchedulerError", id="it raises"), pytest.param(None, "", id="it reserves")]
)
def test_reserve(answer: Any, told: str) -> None:
    plugin = Asked(reserve=answer)
    world = a_world(reserve=[plugin])
    world.run()
    assert plugin.count("reserve") == 1 and reason(world, "web") == told
    assert bool(world.bindings) is not bool(told)
    assert where(world, "web") is QueueStage.BACKOFF if told else where(world, "web") in ("a", "b")


@pytest.mark.parametrize(
    ("failing", "reserved"),
    [
        pytest.param(["one", "three"], ["one"], id="the first fails"),
        pytest.param(["two"], ["one", "two"], id="the one in the middle fails"),
        pytest.param(["three"], ["one", "two", "three"], id="the last fails"),
        pytest.param([], ["one", "two", "three"], id="none fails"),
    ],
)
def test_unreserve_after_reserve(failing: list[str], reserved: list[str]) -> None:
    log: list[str] = []
    names = ("one", "two", "three")
    world = a_world(reserve=[Asked(name, log, reserve=OOPS if name in failing else None) for name in names])
    world.run()
    given_back = [f"{name} unreserve" for name in reversed(names)] if failing else []
    assert log == [f"{name} reserve" for name in reserved] + given_back
    assert reason(world, "web") == ("SchedulerError" if failing else "")
    assert bool(world.scheduler.state.pods) is not bool(failing)


# -- permit


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        pytest.param(None, "", id="it permits"),
        pytest.param(OOPS, "SchedulerError", id="it raises"),
        pytest.param(NO, "Unschedulable", id="it refuses"),
        pytest.param(3.0, "Unschedulable", id="it makes the pod wait, and nothing permits it"),
    ],
)
def test_permit(answer: Any, told: str) -> None:
    plugin = Asked(permit=answer, wakes=[])
    world = a_world(permit=[plugin], reserve=[plugin])
    world.run()
    waits = isinstance(answer, float)
    assert (where(world, "web") is BindStep.WAITING) is waits
    assert plugin.count("unreserve") == int(bool(told) and not waits)
    world.advance(0.5 if told == "SchedulerError" else 3.5)
    assert plugin.count("permit") == 1 and plugin.count("unreserve") == int(bool(told))
    assert reason(world, "web") == told and bool(world.bindings) is not bool(told)
    assert bool(world.scheduler.state.pods) is not bool(told)
    stages: dict[str, list[Any]] = {"SchedulerError": [QueueStage.BACKOFF], "Unschedulable": [QueueStage.UNSCHEDULABLE]}
    assert where(world, "web") in stages.get(told, ["a", "b"])


def test_several_permits_are_all_needed() -> None:
    plugins = [Asked("one", permit=3.0), Asked("two", permit=3.0)]
    world = a_world(permit=plugins)
    world.run()
    placing = world.scheduler.assumed_pods[uid("web")]
    assert placing.step is BindStep.WAITING and set(placing.permits) == {"one", "two"}
    world.allow(uid("web"), "one")
    assert placing.step is BindStep.WAITING and set(placing.permits) == {"two"}
    world.allow(uid("web"), "two")
    assert list(world.bindings) == ["web"]
    assert [plugin.count("permit") for plugin in plugins] == [1, 1]


def test_a_rejected_pod_no_longer_waits_for_a_permit() -> None:
    plugins = [Asked("one", permit=3.0, wakes=[]), Asked("two", permit=3.0, wakes=[])]
    world = a_world(permit=plugins)
    world.run()
    assert world.scheduler.next_deadline() == 3.0
    world.reject(uid("web"), "one", "go away")
    assert where(world, "web") is QueueStage.UNSCHEDULABLE and not world.scheduler.assumed_pods
    assert world.scheduler.next_deadline() == 300.0, "nothing but the flush of old pods is due"
    world.allow(uid("web"), "two")
    world.advance(10)
    assert len(world.event_notes("web", "FailedScheduling")) == 1 and not world.bindings


@pytest.mark.parametrize(
    "wakes",
    [
        pytest.param([], id="a plugin that registered for nothing"),
        pytest.param([Wake("Pod", ("Delete",))], id="a plugin that registered for pods that go"),
    ],
)
def test_a_pod_rejected_while_it_waits_does_not_requeue_itself(wakes: list[Wake]) -> None:
    world = a_world(permit=[Asked(permit=60.0, wakes=wakes)])
    world.run()
    world.reject(uid("web"), "Asked", "go away")
    assert where(world, "web") is QueueStage.UNSCHEDULABLE


@pytest.mark.parametrize("allowed", [pytest.param(True, id="allows it"), pytest.param(False, id="rejects it")])
def test_a_pod_waits_for_another_one_that(allowed: bool) -> None:
    """The first pod waits; the permit of the second decides about both. The caller allows or rejects a waiting pod."""

    def second_decides(pod: Pod, *_: Any) -> Any:
        if not world.scheduler.assumed_pods:
            return 30.0
        return None if allowed else NO

    plugin = Asked(permit=second_decides, wakes=[])
    world = World(nodes=["a", "b"], profiles=profiles(permit=[plugin]))
    world.submit(a_pod("pod-a"))
    world.run()
    assert where(world, "pod-a") is BindStep.WAITING
    world.submit(a_pod("pod-b"))
    world.run()
    if allowed:
        world.allow(uid("pod-a"), "Asked")
        assert set(world.bindings) == {"pod-a", "pod-b"}
    else:
        world.reject(uid("pod-a"), "Asked", "reject pod-a")
        assert {where(world, name) for name in ("pod-a", "pod-b")} == {QueueStage.UNSCHEDULABLE}
        assert {reason(world, name) for name in ("pod-a", "pod-b")} == {"Unschedulable"}
    assert plugin.log == ["permit pod-a", "permit pod-b"]


# -- pre-bind


def fails_once() -> Callable[..., Any]:
    tried: set[str] = set()

    def pre_bind(pod: Pod, *_: Any) -> tuple[()]:
        if pod.uid not in tried:
            tried.add(pod.uid)
            raise OOPS
        return ()

    return pre_bind


@pytest.mark.parametrize(
    ("answer", "told", "bound_after"),
    [
        pytest.param((), "", 0.0, id="it has nothing to do"),
        pytest.param([PATCH], "", 0.0, id="what it wants done is done"),
        pytest.param(OOPS, "SchedulerError", None, id="it raises, again and again"),
        pytest.param(
            fails_once(), "SchedulerError", 1.0, id="it raises the first time, and the second attempt succeeds"
        ),
    ],
)
def test_pre_bind(answer: Any, told: str, bound_after: float | None) -> None:
    plugin = Asked(pre_bind=answer)
    world = a_world(preBind=[plugin], reserve=[plugin], postBind=[plugin])
    world.run()
    assert plugin.count("pre_bind") == 1 and reason(world, "web") == told
    assert plugin.count("unreserve") == int(bool(told))
    assert plugin.count("post_bind") == int(bound_after == 0.0), "asked only once the pod is bound"
    if bound_after != 0.0:
        assert where(world, "web") is QueueStage.BACKOFF and not world.scheduler.state.pods
        world.advance(bound_after or 10.0)
    assert bool(world.bindings) is (bound_after is not None)
    assert plugin.count("post_bind") == int(bound_after is not None)


def test_a_failed_pre_bind_requeues_other_pods() -> None:
    """A pod of another profile is requeued if the filter that rejected it registered for deleted pods."""
    picky = Asked(
        filter=lambda _, nodes: [Reject(np.ones(len(nodes), np.bool_), "no")], wakes=[Wake("Pod", ("Delete",))]
    )
    first = profiles(preBind=[Asked(pre_bind=OOPS)])["default-scheduler"]
    second = only(filter=[picky])["default-scheduler"]
    named = {"default-scheduler": first, "2nd-scheduler": Profile("2nd-scheduler", second.points)}
    world = World(nodes=["a", "b"], profiles=named)
    world.submit(a_pod("stuck", schedulerName="2nd-scheduler"))
    world.run()
    assert where(world, "stuck") is QueueStage.UNSCHEDULABLE and attempts(world, "stuck") == 1
    world.submit(a_pod("web"))
    world.run()
    assert where(world, "web") is QueueStage.BACKOFF
    assert attempts(world, "stuck") == 2 and picky.count("filter", "stuck") == 2


def test_a_pod_that_failed_at_pre_bind_must_pass_pre_enqueue_again() -> None:
    plugin = Asked(pre_bind=OOPS)
    gate = Asked("Gate", pre_enqueue=lambda *_: NO if plugin.count("pre_bind") else None, wakes=[])
    world = a_world(preEnqueue=[gate], preBind=[plugin], reserve=[plugin])
    world.run()
    assert where(world, "web") is QueueStage.GATED
    world.advance(30)
    assert plugin.count("pre_bind") == plugin.count("unreserve") == 1


# -- bind


def binds(pod: Pod, node_name: str) -> Bind:
    return Bind(pod=PodRef(pod.namespace, pod.name, pod.uid), node_name=node_name)


@pytest.mark.parametrize(
    ("first", "second", "default", "asked", "told"),
    [
        pytest.param(None, None, True, ["1 bind", "2 bind", "post post_bind"], "", id="both leave it to the default"),
        pytest.param(None, binds, True, ["1 bind", "2 bind", "post post_bind"], "", id="the second binds"),
        pytest.param(binds, binds, True, ["1 bind", "post post_bind"], "", id="the first binds"),
        pytest.param(OOPS, binds, True, ["1 bind", "post unreserve"], "SchedulerError", id="the first fails"),
        pytest.param(None, None, False, ["1 bind", "2 bind", "post unreserve"], "SchedulerError", id="no plugin binds"),
    ],
)
def test_bind(first: Any, second: Any, default: bool, asked: list[str], told: str) -> None:
    log: list[str] = []
    binders = [Asked("1", log, bind=first), Asked("2", log, bind=second)]
    post = Asked("post", log)
    named = profiles(reserve=[post], postBind=[post], **({"bind": binders} if default else {}))
    world = World(nodes=["a"], profiles=named if default else only(named["default-scheduler"], bind=binders))
    world.submit(a_pod("web"))
    world.run()
    assert log == ["post reserve", *asked] and reason(world, "web") == told
    assert where(world, "web") == (QueueStage.BACKOFF if told else "a")
    assert len(of(world, Bind)) == int(not told)


@pytest.mark.parametrize(
    "status", [pytest.param(200, id="the server binds the pod"), pytest.param(500, id="the server refuses")]
)
def test_unreserve_after_bind(status: int) -> None:
    plugin = Asked()
    world = a_world(reserve=[plugin])
    world.answers = lambda action: Result(action.id, status if isinstance(action, Bind) else 200, "no")
    world.run()
    assert len(of(world, Bind)) == plugin.count("reserve") == 1
    assert plugin.count("unreserve") == int(status != 200)
    assert reason(world, "web") == ("" if status == 200 else "SchedulerError")


# -- waiting pods and preemption


@pytest.mark.parametrize(
    ("running", "priority", "deleted", "tried"),
    [
        pytest.param(True, 300, False, 2, id="a waiting pod is not deleted when it is preempted with a running one"),
        pytest.param(False, 300, False, 2, id="a waiting pod alone is preempted, and requeued itself"),
        pytest.param(False, 100, True, 1, id="a waiting pod that is deleted frees its room at once"),
    ],
)
def test_preempting_a_pod_that_waits_for_its_permit(running: bool, priority: int, deleted: bool, tried: int) -> None:
    plugin = Asked(permit=lambda pod, *_: 30.0 if pod.name == "waiting" else None)
    world = World(nodes=[a_node("a", cpu="500m", pods=32)], profiles=profiles(permit=[plugin], preFilter=[plugin]))
    if running:
        world.submit(a_pod("running", cpu="200m", priority=100))
        world.run()
        assert where(world, "running") == "a"
    world.submit(a_pod("waiting", cpu="200m", priority=100))
    world.run()
    assert where(world, "waiting") is BindStep.WAITING
    world.submit(a_pod("preemptor", cpu="400m", priority=priority))
    if deleted:
        world.run()
        assert where(world, "preemptor") is QueueStage.UNSCHEDULABLE
        world.delete(world.pod("waiting"))
    world.advance(5)
    assert world.bindings == {"preemptor": "a"} and not world.scheduler.assumed_pods
    assert plugin.count("pre_filter", "waiting") <= tried
    assert ("waiting" in [pod.name for pod in world.pods()]) is not deleted, "only the test deletes it"
    assert "running" not in [pod.name for pod in world.pods()]
    if not deleted:
        assert where(world, "waiting") is QueueStage.UNSCHEDULABLE


# -- pods that another pod activates


class Job:
    """Executors need a driver, and are activated as soon as the driver has a node."""

    def pre_filter(self, pod: Pod, cluster: Any) -> RejectPod | None:
        if "driver" in pod.labels or uid("driver") in {each.uid for each in cluster.pods_on("a")}:
            return None
        return RejectPod(("unable to find driver pod",), resolvable=False)

    def siblings(self, pod: Pod, cluster: Any) -> list[str]:
        return [uid("executor-1"), uid("executor-2")] if "driver" in pod.labels else []

    def wakes_on(self) -> Iterable[Wake]:
        return ()


def test_a_driver_that_gets_a_node_activates_its_executors() -> None:
    world = World(nodes=["a"], profiles=profiles(preFilter=[Job()]), initial_backoff=1000, max_backoff=1000)
    world.submit(*(a_pod(name, labels={"executor": ""}) for name in ("executor-1", "executor-2")))
    world.run()
    assert {where(world, name) for name in ("executor-1", "executor-2")} == {QueueStage.UNSCHEDULABLE}
    held = Held(world, Bind)
    world.submit(a_pod("driver", labels={"driver": ""}))
    world.run()
    assert set(held.names()) == {"driver", "executor-1", "executor-2"}, "activated before the driver is even bound"
    held.let_go()
    assert set(world.bindings) == {"driver", "executor-1", "executor-2"}
