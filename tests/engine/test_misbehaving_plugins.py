"""Plugins that raise or give wrong answers at any point: the pod's event names the plugin, the engine continues."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from stowplan.engine.unit import QueueStage
from stowplan.framework.decision import Candidate, PostFilterResult, Reject
from stowplan.framework.interfaces import Wake
from stowplan.objects.actions import Bind, Nominate, PodRef
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.engine.small_plugins import profiles

UID = "uid-of-default-web"


class Odd:
    """A plugin with one method that gives the answer of a test. An exception is raised; one in a list is raised by a
    generator.
    """

    name = "Odd"

    def __init__(self, method: str, answer: Any) -> None:
        setattr(self, method, lambda *_: self._give(answer))

    def _give(self, answer: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, list) and answer and isinstance(answer[0], Exception):
            return self._generate(answer[0])
        return answer

    @staticmethod
    def _generate(error: Exception) -> Iterable[Any]:
        yield from ()
        raise error

    def unreserve(self, *_: Any) -> None:
        return


POINTS = {
    "pre_enqueue": "preEnqueue", "group_of": "postBind", "pre_filter": "preFilter", "filter": "filter",
    "post_filter": "postFilter", "score": "score", "reserve": "reserve", "permit": "permit", "pre_bind": "preBind",
    "bind": "bind", "post_bind": "postBind", "siblings": "reserve",
}  # fmt: skip
OOPS = KeyError("oops")
NONSENSE: list[Any] = [
    pytest.param(method, answer, id=f"{method} answers {text}")
    for method, answers in {
        "pre_enqueue": {"raises": OOPS, "true": True, "a text": "no"},
        "group_of": {"raises": OOPS, "a text": "group", "a number": 7},
        "reserve": {"raises": OOPS, "true": True, "a text": "no"},
        "permit": {
            "raises": OOPS,
            "a text": "x",
            "a list": [1],
            "nan": float("nan"),
            "true": True,
            "inf": float("inf"),
        },
        "pre_bind": {"raises": OOPS, "raises late": [OOPS], "a number": 7, "numbers": [1, 2], "texts": ["x"]},
        "bind": {"raises": OOPS, "a text": "x", "a number": 7},
    }.items()
    for text, answer in answers.items()
]


@pytest.mark.parametrize(("method", "answer"), NONSENSE)
def test_a_wrong_answer_before_the_binding_is_an_error_of_the_pod(method: str, answer: Any) -> None:
    odd = Odd(method, answer)
    world = World(nodes=["a"], profiles=profiles(**{POINTS[method]: [odd]}))
    world.submit(a_pod("web", cpu=1))
    world.run()
    assert not world.bindings and not world.scheduler.state.pods
    assert world.scheduler.queue.units[UID].stage is QueueStage.BACKOFF
    condition = world.pod("web").condition("PodScheduled")
    assert condition is not None and condition.reason == "SchedulerError"
    assert f'plugin "Odd" failed at {method}' in condition.message
    setattr(odd, method, lambda *_: () if method == "pre_bind" else None)
    world.advance(20)
    assert world.bindings == {"web": "a"}, "it is well again, and so is the pod"


@pytest.mark.parametrize("method", ["post_bind", "siblings"])
@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(OOPS, id="it raises"),
        pytest.param([OOPS], id="a list of an error"),
        pytest.param(7, id="a number"),
        pytest.param([1, 2], id="a list of numbers"),
        pytest.param([object()], id="a list of an object"),
    ],
)
def test_a_wrong_answer_that_cannot_stop_a_pod(method: str, answer: Any) -> None:
    world = World(nodes=["a"], profiles=profiles(**{POINTS[method]: [Odd(method, answer)]}))
    world.submit(a_pod("web", cpu=1))
    world.run()
    assert world.bindings == {"web": "a"}
    assert world.event_notes("web") == ["Successfully assigned default/web to a"]


@pytest.mark.parametrize("seconds", [0, -5, 0.0])
def test_a_permit_of_no_time_is_a_refusal(seconds: float) -> None:
    world = World(nodes=["a"], profiles=profiles(permit=[Odd("permit", seconds)]))
    world.submit(a_pod("web", cpu=1), a_pod("other", cpu=1))
    world.run()
    assert not world.bindings and not world.scheduler.assumed_pods
    assert "rejected due to timeout after waiting 0s at plugin Odd" in world.event_notes("web")[0]


def test_an_unreserve_that_raises_does_not_block_the_rollback() -> None:
    class Sticky:
        def reserve(self, *_: Any) -> None:
            return

        def unreserve(self, *_: Any) -> None:
            raise OOPS

    log: list[str] = []

    class Tidy(Sticky):
        def unreserve(self, *_: Any) -> None:
            log.append("given back")

    world = World(nodes=["a"], profiles=profiles(reserve=[Tidy(), Sticky()]))
    world.answers = lambda action: None if isinstance(action, Bind) else world.succeed(action)
    world.submit(pod := a_pod("web", cpu=1))
    world.run()
    world.delete(pod)
    assert log == ["given back"] and not world.scheduler.state.pods
    world.check()


class Rejecting:
    """Rejects every node, until a test changes that."""

    name = "Rejecting"
    refuses = True

    def filter(self, pod: Any, nodes: Any) -> Iterable[Reject]:
        if self.refuses:
            yield Reject(nodes.name != "", "no")


@pytest.mark.parametrize(
    "wakes", [OOPS, [OOPS], 7, ["Node"], [Wake("Node", ("Add",), hint="no_such_method")]], ids=str
)  # fmt: skip
def test_wakes_that_cannot_be_read_requeue_always(wakes: Any) -> None:
    rejecting = Rejecting()
    rejecting.wakes_on = Odd("wakes_on", wakes).wakes_on  # type: ignore[attr-defined]
    world = World(nodes=["a"], profiles=profiles(filter=[rejecting]))
    world.submit(a_pod("web"))
    world.run()
    rejecting.refuses = False
    world.submit(a_node("b"))
    world.run()
    assert "web" in world.bindings


@pytest.mark.parametrize(("keys", "bound"), [([OOPS], 0), (["x", 1, (2,), None], 2), ([(1, "x"), OOPS], 4)], ids=str)
def test_pods_with_an_unusable_sort_key_fail_until_it_is_usable(keys: list[Any], bound: int) -> None:
    class Sort:
        name = "Sort"

        def sort_key(self, pod: Any, queued_at: float) -> Any:
            key = keys[int(pod.name[1:]) % len(keys)]
            if isinstance(key, Exception):
                raise key
            return key

    world = World(nodes=["a"], profiles=profiles(queueSort=[Sort()]))
    world.submit(*(a_pod(f"p{number}") for number in range(8)))
    world.run()
    assert len(world.bindings) == bound
    failed = [pod.condition("PodScheduled") for pod in world.pods() if not pod.node_name]
    assert all(each is not None and 'plugin "Sort" failed at sort_key' in each.message for each in failed)
    keys[:] = [keys[0] if bound else 1]
    world.advance(20)
    assert len(world.bindings) == 8


@pytest.mark.parametrize("victims", ["all", (1, 2), None])
def test_a_post_filter_with_unusable_victims(victims: Any) -> None:
    odd = Odd("post_filter", PostFilterResult(candidate=Candidate("a", victims, 0)))
    world = World(nodes=[a_node("a", cpu=1)], profiles=profiles(postFilter=[odd]))
    world.submit(a_pod("web", cpu=2))
    world.run()
    condition = world.pod("web").condition("PodScheduled")
    assert condition is not None and condition.reason == "SchedulerError"


def test_actions_of_post_bind_plugins_before_one_that_raises_are_sent() -> None:
    class First:
        def post_bind(self, pod: Pod, *_: Any) -> list[Nominate]:
            return [Nominate(pod=PodRef(pod.namespace, pod.name, pod.uid), node_name="")]

    world = World(nodes=["a"], profiles=profiles(postBind=[First(), Odd("post_bind", OOPS)]))
    world.submit(a_pod("web", cpu=1))
    world.run()
    assert world.bindings == {"web": "a"} and [type(each) for each in world.actions][-1] is Nominate
