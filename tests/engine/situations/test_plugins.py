"""One plugin at each point of the decision: queue sort, pre-filter, filter, post-filter, score."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from stowplan.columns.nodes.views import Nodes
from stowplan.engine.unit import QueueStage
from stowplan.framework.decision import Only, PostFilterResult, Reject, RejectPod
from stowplan.framework.interfaces import Wake
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_pod, scores
from stowplan.testing.world import World
from tests.engine.situations.recorders import Asked, only, reason, rejectors, where
from tests.engine.small_plugins import profiles

WHEN_A_POD_GOES = [Wake("Pod", ("Delete",))]


def everywhere(text: str) -> Callable[[Pod, Nodes], list[Reject]]:
    """A filter that rejects every node."""
    return lambda _, nodes: [Reject(np.ones(len(nodes), np.bool_), text)]


def names(number: int) -> list[str]:
    return [f"node-{each}" for each in range(number)]


# -- pre-filter


@pytest.mark.parametrize(
    ("answer", "stage", "told"),
    [
        pytest.param(None, "", "", id="it has no objection"),
        pytest.param(KeyError("oops"), QueueStage.BACKOFF, "SchedulerError", id="it raises"),
        pytest.param(RejectPod(("no",)), QueueStage.UNSCHEDULABLE, "Unschedulable", id="it refuses the pod"),
        pytest.param(Only(frozenset({"node-0", "node-1"})), "", "", id="it names the nodes there are"),
        pytest.param(Only(frozenset({"node-0", "ghost"})), "node-0", "", id="it names a node that does not exist, too"),
    ],
)
def test_pre_filter(answer: Any, stage: QueueStage | str, told: str) -> None:
    plugin = Asked(pre_filter=answer, wakes=[])
    world = World(nodes=names(2), profiles=profiles(preFilter=[plugin]))
    world.submit(a_pod("web"))
    world.run()
    assert plugin.count("pre_filter") == 1
    assert reason(world, "web") == told
    if told:
        assert where(world, "web") is stage and not world.bindings
    else:
        assert where(world, "web") in ([stage] if stage else names(2))


# -- queue sort


class Oldest:
    def sort_key(self, pod: Pod, queued_at: float) -> Any:
        return queued_at


class Important:
    def sort_key(self, pod: Pod, queued_at: float) -> Any:
        return -pod.priority, queued_at


@pytest.mark.parametrize(
    ("plugin", "order"),
    [
        pytest.param(Oldest(), ["pod-1", "pod-2", "pod-3"], id="the oldest first"),
        pytest.param(Important(), ["pod-3", "pod-2", "pod-1"], id="the highest priority first, then the oldest"),
    ],
)
def test_queue_sort(plugin: Any, order: list[str]) -> None:
    world = World(nodes=["a"], profiles=only(queueSort=[plugin]))
    for number in (1, 2, 3):
        world.submit(a_pod(f"pod-{number}", priority=number))
        world.now += 1
    assert {where(world, name) for name in order} == {QueueStage.ACTIVE}
    world.run()
    assert [each.removeprefix("uid-of-default-") for each in world.bound] == order


# -- filter


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        pytest.param(KeyError("oops"), "SchedulerError", id="it raises"),
        pytest.param(None, "", id="it has no objection"),
    ],
)
def test_filter(answer: Any, told: str) -> None:
    plugin = Asked(filter=answer)
    world = World(nodes=["a"], profiles=profiles(filter=[plugin]))
    world.submit(a_pod("web"))
    world.run()
    assert plugin.count("filter") == 1
    assert reason(world, "web") == told
    assert where(world, "web") == (QueueStage.BACKOFF if told else "a")


# -- post-filter

NOTHING = PostFilterResult(("no room",))
SETTLED = PostFilterResult(("that is that",), settles=True)
ROOM = PostFilterResult(("room is being made",), settles=True)


@pytest.mark.parametrize(
    ("first", "second", "asked", "told"),
    [
        pytest.param(ROOM, NOTHING, ["one post_filter"], "room is being made", id="the first preempts"),
        pytest.param(
            NOTHING,
            ROOM,
            ["one post_filter", "two post_filter"],
            "room is being made",
            id="the first finds none, the second does",
        ),
        pytest.param(
            NOTHING,
            NOTHING,
            ["one post_filter", "two post_filter"],
            "no room, no room",
            id="neither finds any, and both are in the message",
        ),
        pytest.param(SETTLED, NOTHING, ["one post_filter"], "that is that", id="the first ends it"),
        pytest.param(
            NOTHING,
            SETTLED,
            ["one post_filter", "two post_filter"],
            "that is that",
            id="the first finds none, the second ends it",
        ),
    ],
)
def test_post_filters_are_called_until_one_answers(
    first: PostFilterResult, second: PostFilterResult, asked: list[str], told: str
) -> None:
    log: list[str] = []
    filters = Asked(filter=everywhere("no"), wakes=WHEN_A_POD_GOES)
    plugins = [Asked("one", log, post_filter=first), Asked("two", log, post_filter=second)]
    scorer = Asked(score=0)
    world = World(
        nodes=["a"], profiles=only(profiles(filter=[filters])["default-scheduler"], postFilter=plugins, score=[scorer])
    )
    world.submit(a_pod("web"))
    world.run()
    assert where(world, "web") is QueueStage.UNSCHEDULABLE and rejectors(world, "web") == {"Asked"}
    assert log == asked and scorer.count("score") == 0
    assert world.explain("web").full_message == f"0/1 nodes are available: 1 no. {told}"


def test_post_filters_are_not_called_if_a_node_is_feasible() -> None:
    plugin, log = Asked(), list[str]()
    world = World(nodes=names(30), profiles=only(filter=[plugin], score=[plugin], postFilter=[Asked("one", log)]))
    world.submit(a_pod("web"))
    world.run()
    assert where(world, "web") in names(30)
    assert plugin.log == ["filter web", "score web"] and not log


def test_a_post_filter_may_run_the_filters_again() -> None:
    """A dry run uses the evaluator that the plugin gets."""
    verdicts: list[Any] = []

    def again(pod: Pod, decision: Any, evaluator: Any) -> PostFilterResult:
        verdicts.extend(evaluator.verdicts(evaluator.nodes.rows))
        return NOTHING

    filters = Asked(filter=everywhere("no"), wakes=WHEN_A_POD_GOES)
    world = World(nodes=names(1), profiles=only(filter=[filters], postFilter=[Asked("one", post_filter=again)]))
    world.submit(a_pod("web"))
    world.run()
    assert [verdict.reasons for verdict in verdicts] == [("no",)]
    assert filters.count("filter") == 2


def test_a_post_filter_that_raises_ends_the_attempt_as_an_error() -> None:
    """kube-scheduler only logs it; here a plugin that raises is named in the pod's condition, whatever its point."""
    filters = Asked(filter=everywhere("no"), wakes=WHEN_A_POD_GOES)
    world = World(nodes=["a"], profiles=only(filter=[filters], postFilter=[Asked("one", post_filter=KeyError("oops"))]))
    world.submit(a_pod("web"))
    world.run()
    assert where(world, "web") is QueueStage.BACKOFF and reason(world, "web") == "SchedulerError"
    assert 'plugin "one" failed at post_filter' in world.event_notes("web", "FailedScheduling")[0]


# -- score


def best(wanted: str) -> Callable[[Pod, Nodes], Any]:
    return lambda _, nodes: np.where(nodes.name == wanted, 100, 1).astype(np.int64)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        pytest.param(KeyError("oops"), "SchedulerError", id="it raises"),
        pytest.param(best("node-7"), "", id="it likes one node best"),
    ],
)
def test_score(answer: Any, told: str) -> None:
    plugin = Asked(score=answer)
    world = World(nodes=names(10), profiles=profiles(score=[plugin]))
    world.submit(a_pod("web"))
    world.run()
    assert plugin.count("score") == 1 and reason(world, "web") == told
    assert where(world, "web") == (QueueStage.BACKOFF if told else "node-7")


class Normalised:
    """Returns scores from 0 to 100: what kube-scheduler splits into PreScore, Score and NormalizeScore."""

    configurable_at = ("preScore",)

    def score(self, pod: Pod, nodes: Nodes) -> Any:
        raw = np.array([int(name.removeprefix("node-")) for name in nodes.names], np.int64)
        return raw * 100 // int(raw.max())

    def wakes_on(self) -> Iterable[Wake]:
        return ()


def test_scores_are_normalised_by_the_plugin() -> None:
    world = World(nodes=names(10), profiles=only(preScore=[Normalised()], score=[Normalised()]))
    world.submit(a_pod("web"))
    world.run()
    assert scores(world.explain("web"), "Normalised")["node-3"] == 33
    assert where(world, "web") == "node-9"
