"""The feed of decisions: from changes of pods, from reports of a Stowplan, from events."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowplan.apps.run.streamed_decisions import entry_of
from stowplan.apps.ui.feed import MOST, DecisionFeed, DecisionFilter
from stowplan.engine import reports
from stowplan.objects.placements import ClusterDecision, PlacementDecision, PlacementDecisionStatus
from stowplan.objects.pod_parts import PodCondition, PodStatus
from stowplan.objects.pods import Pod
from stowplan.testing import a_pod


def failing(message: str, **status: Any) -> Pod:
    conditions = (PodCondition("PodScheduled", "False", "Unschedulable", message),)
    return msgspec.structs.replace(a_pod("web"), status=PodStatus(conditions=conditions, **status))


def told(feed: DecisionFeed) -> list[tuple[str, str, str]]:
    return [(each.event, each.node, each.message) for each in feed.since(0)]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, a_pod("web"), [], id="a new pod says nothing"),
        pytest.param(None, a_pod("web", node="n"), [], id="a pod that had a node before it was seen"),
        pytest.param(a_pod("web"), a_pod("web", node="n"), [("bound", "n", "")], id="it got a node"),
        pytest.param(a_pod("web"), failing("too small"), [("failed", "", "too small")], id="it found no node"),
        pytest.param(failing("too small"), failing("too small"), [], id="the same again is no news"),
        pytest.param(
            failing("a"), failing("a", nominated_node_name="n"),
            [("preempting", "n", "is nominated: pods there are evicted for it")], id="others are evicted for it",
        ),
    ],
)  # fmt: skip
def test_changes_of_a_pod_tell_of_decisions(old: Pod | None, new: Pod, expected: list[tuple[str, str, str]]) -> None:
    feed = DecisionFeed()
    feed.changed(old, new)
    assert told(feed) == expected


def test_a_scheduler_that_reports_itself_is_not_told_twice() -> None:
    feed = DecisionFeed()
    feed.reporting = ("default-scheduler",)
    report = reports.PodBound("default/web", "n", "default-scheduler", 2, 1.5, False)
    entry = entry_of(report)
    assert entry is not None
    feed.reported(entry)
    feed.changed(a_pod("web"), a_pod("web", node="n"))
    assert [(each.event, each.node, each.more["attempts"]) for each in feed.since(0)] == [("bound", "n", 2)]


@pytest.mark.parametrize("entry", [{}, {"event": "decided"}, {"event": 7}, {"event": "bound", "pod": 1, "node": []}])
def test_whatever_a_scheduler_sends_the_feed_can_be_shown(entry: dict[str, Any]) -> None:
    feed = DecisionFeed()
    feed.reported(entry)
    for each in feed.since(0):
        assert isinstance(each.pod, str) and isinstance(each.node, str)


def test_entries_are_filtered_and_bounded() -> None:
    feed = DecisionFeed()
    for at in range(MOST + 10):
        feed.add("bound" if at % 2 else "failed", f"{'ab'[at % 3 == 0]}/p-{at}", node=f"n{at}")
    assert len(feed.since(0, most=10**6)) == MOST and feed.last == MOST + 10
    assert len(feed.since(feed.last - 3)) == 3
    assert {each.event for each in feed.since(0, DecisionFilter(event="failed"))} == {"failed"}
    assert {each.pod[0] for each in feed.since(0, DecisionFilter(namespace="b"))} == {"b"}
    assert [each.node for each in feed.since(0, DecisionFilter(text="P-5008"))] == ["n5008"]


def test_a_placement_says_which_clusters_came_and_went() -> None:
    def decided(*names: str) -> PlacementDecision:
        status = PlacementDecisionStatus(tuple(ClusterDecision(each) for each in names))
        labels = {"cluster.open-cluster-management.io/placement": "front"}
        made = msgspec.convert({"metadata": {"name": "d", "namespace": "shop", "labels": labels}}, PlacementDecision)
        return msgspec.structs.replace(made, status=status)

    feed = DecisionFeed()
    feed.placed(decided("a", "b"), decided("b", "c"))
    feed.placed(decided("b"), decided("b"))
    (entry,) = feed.since(0)
    assert (entry.pod, entry.message) == ("shop/front", "2 clusters: +c, \u2212a")


def test_events_from_before_are_in_the_order_of_time() -> None:
    feed = DecisionFeed()
    feed.remember([
        (20.0, "FailedScheduling", "a/x", "no room", "s"),
        (10.0, "Scheduled", "a/y", "Successfully assigned a/y to n1", "s"),
        (15.0, "Pulled", "a/y", "image", "kubelet"),
    ])  # fmt: skip
    assert [(each.at, each.event, each.pod, each.node) for each in feed.since(0)] == [
        (20.0, "failed", "a/x", ""), (10.0, "bound", "a/y", "n1"),
    ]  # fmt: skip
