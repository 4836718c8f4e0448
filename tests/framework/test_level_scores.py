"""Scores by levels: the wish where it fits, the order of levels always, steps within a level while there is room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.framework.level_scores import ranked


def scores(level: list[int], wishes: list[int], behind: list[int] | None = None, split: int = 0) -> list[int]:
    """Of nodes on these levels, each so far behind the best of its level."""
    behind = [0] * len(level) if behind is None else behind
    furthest = [0] * len(wishes)
    for each, steps in zip(level, behind, strict=True):
        furthest[each] = max(furthest[each], steps)
    found = ranked(wishes, furthest, split=split)
    return [found[each][0] - min(steps, found[each][1]) for each, steps in zip(level, behind, strict=True)]


@pytest.mark.parametrize(
    ("level", "wishes", "behind", "expected"),
    [
        pytest.param([], [], None, [], id="no level"),
        pytest.param([0, 1, 2], [0, 50, 75], None, [0, 50, 75], id="wishes that fit"),
        pytest.param([0, 1, 2], [0, 0, 0], None, [0, 1, 2], id="equal wishes are lifted"),
        pytest.param([0, 0], [40], [0, 0], [40, 40], id="nodes that are alike"),
        pytest.param([0, 0, 0], [40], [0, 1, 3], [40, 39, 37], id="a step behind costs a point"),
        pytest.param([0, 0], [0], [0, 1], [1, 0], id="the lowest level is lifted to have room"),
        pytest.param([0, 1, 1], [49, 50], [0, 0, 1], [49, 51, 50], id="a level is lifted above the steps of the next"),
        pytest.param([0, 0, 1], [99, 100], [0, 1, 0], [99, 98, 100], id="steps go down, not up"),
        pytest.param([0, 1, 1], [99, 100], [0, 0, 1], [99, 100, 100], id="no room, no steps"),
        pytest.param([0, 0], [50], [0, 100], [50, 43], id="only so many steps are told apart"),
    ],
)
def test_scores(level: list[int], wishes: list[int], behind: list[int] | None, expected: list[int]) -> None:
    assert scores(level, wishes, behind) == expected


@st.composite
def situations(draw: st.DrawFn, most_levels: int = 90) -> tuple[list[int], list[int], list[int]]:
    wishes = sorted(draw(st.lists(st.integers(0, 100), min_size=1, max_size=most_levels)))
    nodes = draw(st.lists(st.tuples(st.integers(0, len(wishes) - 1), st.integers(0, 50)), min_size=1, max_size=60))
    return [level for level, _ in nodes], wishes, [behind for _, behind in nodes]


@given(situations())
def test_nothing_outweighs_a_level(situation: tuple[list[int], list[int], list[int]]) -> None:
    level, wishes, behind = situation
    found = scores(level, wishes, behind)
    assert min(found) >= 0 and max(found) <= 100
    for mine, my_way, my_score in zip(level, behind, found, strict=True):
        for other, other_way, other_score in zip(level, behind, found, strict=True):
            if mine > other:
                assert my_score > other_score
            elif mine == other and my_way < other_way:
                assert my_score >= other_score


@given(st.sets(st.integers(0, 100), min_size=1), st.data())
def test_distinct_wishes_of_nodes_that_are_alike_are_their_scores(wishes: set[int], data: st.DataObject) -> None:
    ordered = sorted(wishes)
    level = data.draw(st.lists(st.integers(0, len(ordered) - 1), min_size=1, max_size=40))
    assert scores(level, ordered) == [ordered[each] for each in level]


@given(st.integers(102, 400), st.data())
def test_too_many_levels_keep_their_order_and_the_split(number: int, data: st.DataObject) -> None:
    split = data.draw(st.integers(0, number))
    found = scores(list(range(number)), [0] * split + [100] * (number - split), split=split)
    assert found == sorted(found) and found[0] >= 0 and found[-1] <= 100
    if 0 < split < number:
        assert found[split - 1] < found[split]


def test_a_hundred_and_one_levels_still_fit() -> None:
    assert scores(list(range(101)), [0] * 101) == list(range(101))
