"""The annotation that SPPriority keeps: how it is read, changed and written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stowplan.objects.meta import Object
from stowplan.plugins.nodes.sp_priority import history as sp_history
from stowplan.plugins.nodes.sp_priority.history import History, read
from stowplan.plugins.nodes.sp_priority.plugin import STATE
from stowplan.plugins.nodes.sp_priority.unconfirmed import patch
from stowplan.testing import patching
from stowplan.testing.builders import a_cluster
from tests.plugins.nodes.sp_priority.replicas import an_owner


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(None, History(), id="none"),
        pytest.param(" \n", History(), id="blank"),
        pytest.param("{}", History(), id="nothing in it"),
        pytest.param('{"latest": "a", "node_count": {"a": 2}}', History("a", {"a": 2}), id="the seed's fields"),
        pytest.param('{"last": "a"}', History("a", more={"last": "a"}), id="last for latest"),
        pytest.param('{"latest": "a", "last": "b"}', History("a", more={"last": "b"}), id="both: latest counts"),
        pytest.param('{"pending": {"u": "a"}}', History(pending={"u": "a"}), id="a pod that is not counted yet"),
        pytest.param('{"since_halving": 3, "mine": [1]}', History("", {}, {}, 3, {"mine": [1]}), id="others' fields"),
        pytest.param("latest: a", None, id="no JSON"),
        pytest.param("[1]", None, id="no object"),
        pytest.param('{"latest": 5}', None, id="a node that is a number"),
        pytest.param('{"node_count": {"a": -1}}', None, id="less than nothing"),
        pytest.param('{"node_count": {"a": 1.5}}', None, id="half a pod"),
        pytest.param('{"node_count": ["a"]}', None, id="counts of nothing"),
        pytest.param('{"pending": {"u": 1}}', None, id="a pod on no node"),
        pytest.param('{"latest": "a"', None, id="cut off"),
        pytest.param("[" * 100_000, None, id="deeper than anybody writes"),
    ],
)
def test_reading(text: str | None, expected: History | None) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("history", "written"),
    [
        pytest.param(History("a", {"a": 1}), {"latest": "a", "node_count": {"a": 1}}, id="what the seed has, no more"),
        pytest.param(
            History("a", {"a": 1}, {"u": "b"}, 4),
            {"latest": "a", "node_count": {"a": 1}, "pending": {"u": "b"}, "since_halving": 4},
            id="all of it",
        ),
        pytest.param(
            History("a", more={"mine": 1, "last": "old"}),
            {"latest": "a", "node_count": {}, "mine": 1, "last": "a"},
            id="others' fields are kept, last is kept in step",
        ),
    ],
)
def test_writing(history: History, written: dict[str, Any]) -> None:
    text = history.text()
    assert json.loads(text) == written and list(json.loads(text))[:2] == ["latest", "node_count"]
    again = read(text)
    assert again is not None and again.text() == text


def test_a_pods_way_through_a_history() -> None:
    start = History("a", {"a": 1})
    noted = start.recorded({"u": "b"})
    assert noted == History("a", {"a": 1}, {"u": "b"}), "noted, not counted"
    assert noted.recorded({"u": "c"}).pending == {"u": "c"}, "a second decision takes the first one's place"
    assert noted.settled({"u": "b"}) == History("b", {"a": 1, "b": 1})
    assert noted.settled({"u": "c"}) == History("c", {"a": 1, "c": 1}), "it was bound elsewhere"
    assert noted.settled({"u": ""}) == start, "it never was"
    several = start.recorded({"u": "b", "v": "c", "w": "d"}).settled({"u": "b", "v": ""})
    assert several == History("b", {"a": 1, "b": 1}, {"w": "d"}), "of several each by itself"


@pytest.mark.parametrize(
    ("half_life", "bound", "expected"),
    [
        pytest.param(0, "aaab", History("b", {"a": 3, "b": 1}), id="none"),
        pytest.param(4, "aaa", History("a", {"a": 3}, since_halving=3), id="not yet"),
        pytest.param(4, "aaab", History("b", {"a": 1}), id="halved and rounded down; one pod is forgotten"),
        pytest.param(4, "aaabbb", History("b", {"a": 1, "b": 2}, since_halving=2), id="and on it goes"),
        pytest.param(1, "ab", History("b"), id="a half-life of one pod: only the last is known"),
    ],
)
def test_half_life(half_life: int, bound: str, expected: History) -> None:
    history = History()
    for node in bound:
        history = history.counted([node], half_life)
    assert history == expected == History().counted(bound, half_life), "one by one, or at once"


def test_a_half_life_keeps_the_counts_small() -> None:
    history = History()
    for number in range(1000):
        history = history.counted(["ab"[number % 2]], 10)
    assert sum(history.counts.values()) < 20


def test_nodes_that_are_gone_are_dropped_but_for_the_latest() -> None:
    history = History("gone", {"gone": 1, "lost": 5, "a": 2})
    assert history.limited(a_cluster(nodes=["a", "b"]).nodes, 9).counts == {"gone": 1, "a": 2}


@pytest.mark.parametrize(
    ("latest", "counts", "kept"),
    [
        pytest.param("a", {"a": 1, "b": 1}, {"a": 1, "b": 1}, id="no more than there may be"),
        pytest.param("a", {"a": 1, "b": 2, "c": 3}, {"a": 1, "c": 3}, id="the latest and the highest"),
        pytest.param("c", {"a": 1, "b": 2, "c": 3}, {"b": 2, "c": 3}, id="the latest is the highest"),
        pytest.param("c", {"a": 1, "b": 1, "c": 1}, {"b": 1, "c": 1}, id="of equals those that came last"),
        pytest.param("gone", {"gone": 1, "a": 2, "b": 3}, {"gone": 1, "b": 3}, id="the latest, although it is gone"),
        pytest.param("", {"a": 2, "b": 1, "c": 2}, {"a": 2, "c": 2}, id="no latest"),
    ],
)
def test_a_history_has_counts_of_so_many_nodes(latest: str, counts: dict[str, int], kept: dict[str, int]) -> None:
    assert History(latest, counts).limited(a_cluster(nodes=[*"abc"]).nodes, 2) == History(latest, kept)


def test_so_many_pods_are_noted_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sp_history, "MOST_PENDING", 3)
    two = History(pending={"u": "a", "v": "b"})
    full = two.recorded({"w": "c", "x": "d", "v": "c"})
    assert full.pending == {"u": "a", "v": "c", "w": "c"}, "who is there already may be given another node"
    assert (two.full, full.full) == (False, True)
    assert full.recorded({"x": "d", "u": "b"}).pending == {"u": "b", "v": "c", "w": "c"}


def test_a_full_history_is_what_a_server_takes() -> None:
    """All annotations of an object together may have 256 KiB; with the longest names that machines have it fits."""
    name, uid = "n" * 59, "0" * 32
    history = History(f"{name}0000", {f"{name}{number:04}": 10**6 for number in range(5000)})
    history = history.recorded({f"{uid}{number:04}": f"{name}0000" for number in range(5000)})
    nodes = a_cluster(nodes=[*history.counts][:2000]).nodes
    assert len(history.limited(nodes, 1000).text()) < 256 * 1024 / 2


# -- writing to the server

NAME = "example.com/a~b"


def written(owner: Object, to: Object, text: str = "new") -> dict[str, str] | None:
    """The annotations after a patch made for one version of an owner was sent to another; None if it is refused."""
    found = patching.patched(to, patch(owner, NAME, text).body)
    return None if found is None else found.annotations


@pytest.mark.parametrize("annotations", [{}, {"other": "x"}, {NAME: "old"}, {NAME: "old", "other": "x"}])
def test_one_annotation_is_written_and_no_other(annotations: dict[str, str]) -> None:
    owner = an_owner(annotations=annotations)
    assert written(owner, owner) == annotations | {NAME: "new"}


@pytest.mark.parametrize(
    ("seen", "there", "refused"),
    [
        pytest.param({}, {NAME: "theirs"}, True, id="somebody was first"),
        pytest.param({"other": "x"}, {"other": "x", NAME: "theirs"}, True, id="somebody was first, beside another"),
        pytest.param({NAME: "old"}, {NAME: "theirs"}, True, id="somebody changed it"),
        pytest.param({NAME: "old"}, {"other": "x"}, True, id="somebody took it away"),
        pytest.param({NAME: "old"}, {NAME: "old", "other": "new"}, False, id="what others annotate is their business"),
        pytest.param({}, {"other": "new"}, True, id="but for the very first annotation"),
    ],
)
def test_only_on_top_of_what_was_seen(seen: dict[str, str], there: dict[str, str], refused: bool) -> None:
    after = written(an_owner(annotations=seen), an_owner(annotations=there))
    assert after == (None if refused else there | {NAME: "new"})


def test_not_to_a_later_owner_of_the_same_name() -> None:
    first, later = an_owner(), an_owner(name="other")
    assert patching.patched(later, patch(first, STATE, "{}").body) is None
