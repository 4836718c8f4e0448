"""Decision groups: how the chosen clusters are split."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.framework.placement import decision_groups
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
            id="no cluster is in two groups",
        ),
        pytest.param(strategy(9), AZURE, [("", ["c1", "c2", "c3", "c4"])], id="more than there are"),
        pytest.param(strategy(-1), AZURE, [("", ["c1", "c2", "c3", "c4"])], id="less than one"),
        pytest.param(strategy("28%"), [a_cluster(f"c{n:02}") for n in range(25)],
                     [("", [f"c{n:02}" for n in range(at, min(at + 8, 25))]) for at in (0, 8, 16, 24)],
                     id="28% of 25 is a little more than 7"),
        pytest.param(strategy(2, CANARY), [], [("", [])], id="no cluster chosen"),
    ],
)  # fmt: skip
def test_groups(decision_strategy: dict[str, Any], objects: list[Any], expected: list[Any]) -> None:
    assert grouped(decision_strategy, objects) == expected


def test_groups_by_score() -> None:
    scores = [a_score(f"c{n}", "demo", s=value) for n, value in ((1, 5), (2, 50), (3, 20), (4, 50))]
    coordinate = {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "s"}}
    policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate, "weight": 1}]}
    found = grouped(strategy(3), [*AZURE, *scores], prioritizerPolicy=policy, sortBy="Score")
    assert found == [("", ["c2", "c4", "c3"]), ("", ["c1"])]
    assert grouped(strategy(3), [*AZURE, *scores], prioritizerPolicy=policy)[0] == ("", ["c1", "c2", "c3"])


@pytest.mark.parametrize(
    ("decision_strategy", "before", "path"),
    [
        pytest.param(strategy("10"), [], "clustersPerDecisionGroup", id="a number as a string"),
        pytest.param(strategy("ten%"), [], "clustersPerDecisionGroup", id="no number"),
        pytest.param(
            strategy(None, CANARY, ("odd", {"bad key!": "x"})),
            [("canary", ["c2", "c4"])],
            "decisionGroups[1].groupClusterSelector.labelSelector",
            id="an invalid selector after a valid one",
        ),
    ],
)
def test_misconfigured_groups(decision_strategy: Any, before: list[Any], path: str) -> None:
    groups, status = decision_groups.grouped(chosen(a_placement(decisionStrategy=decision_strategy), AZURE))
    assert [(group.name, list(group.clusters)) for group in groups] == before
    assert (status.code, status.plugin) == ("Misconfigured", "")
    assert status.path == f"spec.decisionStrategy.groupStrategy.{path}"
