"""Spreading the chosen clusters over domains: hard and soft, by label and by claim."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.framework.placement.choice import PlacementChoice
from tests.placement.fleets import a_cluster, a_placement, a_score, chosen


def over(key: str, *, skew: int = 1, hard: bool = False, kind: str = "Label") -> dict[str, Any]:
    unsatisfiable = "DoNotSchedule" if hard else "ScheduleAnyway"
    return {"topologyKey": key, "topologyKeyType": kind, "maxSkew": skew, "whenUnsatisfiable": unsatisfiable}


def in_zone(name: str, zone: str, region: str = "", cloud: str = "") -> Any:
    labels = {"zone": zone, "region": region, "cloud": cloud}
    return a_cluster(name, labels={key: value for key, value in labels.items() if value})


def spread(number: int | None, objects: list[Any], *constraints: dict[str, Any], **spec: Any) -> PlacementChoice:
    if number is not None:
        spec["numberOfClusters"] = number
    return chosen(a_placement(spreadPolicy={"spreadConstraints": list(constraints)}, **spec), objects, ocm=False)


def counts(choice: PlacementChoice) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in choice.names:
        place = name.rpartition("/")[0]
        found[place] = found.get(place, 0) + 1
    return found


EVEN = [in_zone(f"{zone}/{n}", zone) for zone in ("1a", "1b") for n in range(3)]
UNEVEN = [in_zone(f"1a/{n}", "1a") for n in range(3)] + [in_zone("1b/0", "1b")]
AWS = [
    in_zone(f"{region}-{zone}/{n}", zone, region)
    for region, zone in (("east", "1a"), ("east", "1b"), ("west", "1a"))
    for n in range(3)
]


@pytest.mark.parametrize(
    ("number", "objects", "constraints", "expected"),
    [
        pytest.param(4, EVEN, [over("zone")], {"1a": 2, "1b": 2}, id="four over two zones"),
        pytest.param(4, UNEVEN, [over("zone", hard=True)], {"1a": 2, "1b": 1}, id="within the skew"),
        pytest.param(4, UNEVEN, [over("zone")], {"1a": 3, "1b": 1}, id="as even as possible"),
        pytest.param(4, UNEVEN, [over("zone", skew=2, hard=True)], {"1a": 3, "1b": 1}, id="a wider skew"),
        pytest.param(
            4,
            AWS,
            [over("region"), over("zone")],
            {"east-1a": 1, "east-1b": 1, "west-1a": 2},
            id="regions first, then zones within each",
        ),
        pytest.param(None, UNEVEN, [over("zone", hard=True)], {"1a": 2, "1b": 1}, id="all clusters within the skew"),
        pytest.param(
            2, [*EVEN[:2], a_cluster("none/0")], [over("zone", hard=True)], {"1a": 1}, id="a cluster without a zone"
        ),
        pytest.param(0, EVEN, [over("zone")], {}, id="none wanted"),
    ],
)
def test_spread(number: int | None, objects: list[Any], constraints: list[Any], expected: dict[str, int]) -> None:
    assert counts(spread(number, objects, *constraints)) == expected


def test_clusters_beyond_the_skew_are_unscheduled() -> None:
    assert spread(4, UNEVEN, over("zone", hard=True)).unscheduled == 1


def test_spread_by_claim() -> None:
    objects = [a_cluster(f"{zone}/{n}", claims={"zone": zone}) for zone in ("1a", "1b") for n in range(3)]
    assert counts(spread(4, objects, over("zone", kind="Claim"))) == {"1a": 2, "1b": 2}


def test_the_example_of_the_proposal() -> None:
    """c1 is first; then c2 is not feasible, and c3 has 0 - 200, c4 0 + 200, c5 50 + 200."""
    clusters = [
        in_zone("c1", "1a", "us-east"),
        in_zone("c2", "1a", "us-east"),
        in_zone("c3", "1b", "us-east"),
        in_zone("c4", "1a", "us-west"),
        in_zone("c5", "1a", "us-west"),
    ]
    scores = [a_score(name, "demo", s=50) for name in ("c1", "c2", "c5")]
    coordinate = {"type": "AddOn", "addOn": {"resourceName": "demo", "scoreName": "s"}}
    policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate, "weight": 1}]}
    terms = (over("region"), over("zone", hard=True))
    assert spread(1, [*clusters, *scores], *terms, prioritizerPolicy=policy).names == ["c1"]
    assert spread(2, [*clusters, *scores], *terms, prioritizerPolicy=policy).names == ["c1", "c5"]


def test_spread_is_ignored_in_compatibility() -> None:
    placement = a_placement(numberOfClusters=2, spreadPolicy={"spreadConstraints": [over("zone", hard=True)]})
    assert chosen(placement, EVEN, ocm=True).names == ["1a/0", "1a/1"]
    assert chosen(placement, EVEN, ocm=False).names == ["1a/0", "1b/0"]
