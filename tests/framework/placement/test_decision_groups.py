"""Decision groups, and which object holds which clusters."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.framework.placement import decision_groups
from stowplan.framework.placement.decision_groups import ChosenGroup
from stowplan.placement.slices import ExistingSlice, layout
from tests.placement.fleets import a_cluster, a_placement, a_score, chosen

AZURE = [a_cluster(f"c{n}", labels={"vendor": "Azure" if n in (2, 4) else "other"}) for n in range(1, 5)]


def strategy(size: int | str | None = None, *groups: tuple[str, dict[str, str]]) -> dict[str, Any]:
    listed = [
        {"groupName": name, "groupClusterSelector": {"labelSelector": {"matchLabels": labels}}}
        for name, labels in groups
    ]
    given: dict[str, Any] = {"decisionGroups": listed}
    return {"groupStrategy": given if size is None else given | {"clustersPerDecisionGroup": size}}


def grouped(decision_strategy: dict[str, Any], objects: list[Any], **spec: Any) -> list[tuple[str, list[str]]]:
    choice = chosen(a_placement(decisionStrategy=decision_strategy, **spec), objects, ocm=False)
    groups, status = decision_groups.grouped(choice)
    assert not status.failed
    return [(group.name, list(group.clusters)) for group in groups]


CANARY = ("canary", {"vendor": "Azure"})


@pytest.mark.parametrize(
    ("decision_strategy", "objects", "expected"),
    [
        pytest.param(strategy(), AZURE, [("", ["c1", "c2", "c3", "c4"])], id="one group of all"),
        pytest.param(
            strategy(1, CANARY),
            AZURE,
            [("canary", ["c2"]), ("canary", ["c4"]), ("", ["c1"]), ("", ["c3"])],
            id="canaries first, one by one",
        ),
        pytest.param(
            strategy(None, ("group1", {"vendor": "Azure"}), ("group2", {"vendor": "other"})),
            AZURE[:3],
            [("group1", ["c2"]), ("group2", ["c1", "c3"])],
            id="two named groups leave no tail",
        ),
        pytest.param(strategy("25%"), AZURE[:3], [("", ["c1"]), ("", ["c2"]), ("", ["c3"])], id="25% of three"),
        pytest.param(
            strategy(None, ("canary", {"vendor": "nobody"})), AZURE, [("", ["c1", "c2", "c3", "c4"])], id="no canary"
        ),
        pytest.param(
            strategy(2, CANARY, ("again", {"vendor": "Azure"})),
            AZURE,
            [("canary", ["c2", "c4"]), ("", ["c1", "c3"])],
            id="nobody is claimed twice",
        ),
        pytest.param(strategy(9), AZURE, [("", ["c1", "c2", "c3", "c4"])], id="more than there are"),
        pytest.param(strategy(-1), AZURE, [("", ["c1", "c2", "c3", "c4"])], id="less than one"),
        pytest.param(strategy("28%"), [a_cluster(f"c{n:02}") for n in range(25)],
                     [("", [f"c{n:02}" for n in range(at, min(at + 8, 25))]) for at in (0, 8, 16, 24)],
                     id="28% of 25 is a little more than 7"),
        pytest.param(strategy(2, CANARY), [], [("", [])], id="nobody chosen"),
    ],
)  # fmt: skip
def test_groups(decision_strategy: dict[str, Any], objects: list[Any], expected: list[Any]) -> None:
    assert grouped(decision_strategy, objects) == expected


def test_by_score_the_best_comes_first() -> None:
    scores = [a_score(f"c{n}", "demo", s=value) for n, value in ((1, 5), (2, 50), (3, 20), (4, 50))]
    coordinate = {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "s"}}
    policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate, "weight": 1}]}
    found = grouped(strategy(3), [*AZURE, *scores], prioritizerPolicy=policy, sortBy="Score")
    assert found == [("", ["c2", "c4", "c3"]), ("", ["c1"])]
    assert grouped(strategy(3), [*AZURE, *scores], prioritizerPolicy=policy)[0] == ("", ["c1", "c2", "c3"])


@pytest.mark.parametrize(
    ("decision_strategy", "before", "path"),
    [
        pytest.param(strategy("10"), [], "clustersPerDecisionGroup", id="a number as a text"),
        pytest.param(strategy("ten%"), [], "clustersPerDecisionGroup", id="no number"),
        pytest.param(
            strategy(None, CANARY, ("odd", {"bad key!": "x"})),
            [("canary", ["c2", "c4"])],
            "decisionGroups[1].groupClusterSelector.labelSelector",
            id="a selector that cannot be used, after one that can",
        ),
    ],
)
def test_a_group_that_cannot_be_made(decision_strategy: Any, before: list[Any], path: str) -> None:
    groups, status = decision_groups.grouped(chosen(a_placement(decisionStrategy=decision_strategy), AZURE))
    assert [(group.name, list(group.clusters)) for group in groups] == before
    assert (status.code, status.plugin) == ("Misconfigured", "")
    assert status.path == f"spec.decisionStrategy.groupStrategy.{path}"


# -- slices


def names(count: int, start: int = 0) -> tuple[str, ...]:
    return tuple(f"c{number:04}" for number in range(start, start + count))


def laid_out(
    groups: list[ChosenGroup], current: dict[int, ExistingSlice]
) -> tuple[dict[int, tuple[int, int]], list[int]]:
    """For each object, its group and how many it has; and those that go."""
    found = layout(groups, current)
    return {slot.number: (slot.index, len(slot.clusters)) for slot in found.slices}, found.surplus


ONE = ExistingSlice("0", "", names(100))
TWO = ExistingSlice("0", "", names(28, 100))


@pytest.mark.parametrize(
    ("groups", "current", "slots", "surplus"),
    [
        pytest.param([ChosenGroup("", names(10))], {}, {1: (0, 10)}, [], id="10 clusters"),
        pytest.param([ChosenGroup("", names(101))], {}, {1: (0, 100), 2: (0, 1)}, [], id="101 clusters"),
        pytest.param([ChosenGroup("", ())], {}, {1: (0, 0)}, [], id="none"),
        pytest.param([ChosenGroup("", names(128))], {1: ONE, 2: TWO}, {1: (0, 100), 2: (0, 28)}, [], id="128 kept"),
        pytest.param([ChosenGroup("", names(10))], {1: ONE, 2: TWO}, {1: (0, 10)}, [2], id="128, then 10"),
        pytest.param([ChosenGroup("", ())], {1: ONE, 2: TWO}, {1: (0, 0)}, [2], id="128, then none"),
        pytest.param(
            [ChosenGroup("a", names(2)), ChosenGroup("", names(3, 2))], {}, {1: (0, 2), 2: (1, 3)}, [], id="two groups"
        ),
        pytest.param(
            [ChosenGroup("", names(128))], {1: ExistingSlice("7", "odd", names(100))}, {1: (0, 100), 2: (0, 28)}, [],
            id="labels of another group are put right, and the rest is made",
        ),
        pytest.param(
            [ChosenGroup("", names(99) + names(1, 500))], {1: ONE}, {1: (0, 100)}, [], id="one goes and one comes"
        ),
        pytest.param(
            [ChosenGroup("", names(100, 1) + names(1, 500))], {1: ONE, 2: ExistingSlice("0", "", names(1, 100))},
            {1: (0, 100), 2: (0, 1)}, [], id="who stays, stays where it is",
        ),
    ],
)  # fmt: skip
def test_layout(
    groups: list[ChosenGroup], current: dict[int, ExistingSlice], slots: dict[int, Any], surplus: list[int]
) -> None:
    assert laid_out(groups, current) == (slots, surplus)


def test_a_new_cluster_that_sorts_first_moves_nobody() -> None:
    found = layout([ChosenGroup("", ("a", *names(128)))], {1: ONE, 2: TWO})
    assert [slot.clusters for slot in found.slices] == [list(names(100)), ["a", *names(28, 100)]]
    assert not any(planned.leaving for planned in found.slices)
