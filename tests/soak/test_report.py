"""What a soak's table says, and what it calls wrong."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.controlplane.stowplan_process import Stowplan
from tests.soak.programs import Life
from tests.soak.report import SoakResult


def a_life(*samples: tuple[float, int]) -> Life:
    return Life("scheduler-1", cast(Stowplan, None), 0.0, "the end", list(samples))


def a_result(**more: Any) -> SoakResult:
    given: dict[str, Any] = {
        "commit": "abc", "minutes": 60, "created": 216_000, "bound": 216_000, "waits": [0.1] * 100,
        "groups_in_part": [], "never_bound": [], "placements": 100, "poison": 360, "faults": {"wire: html": 6},
        "lost_leases": 0, "lives": [a_life((0, 70), (600, 100), (3500, 110))],
    }  # fmt: skip
    return SoakResult(**given | more)


def test_a_good_one() -> None:
    found = a_result()
    assert found.verdicts() == []
    assert (
        "| pods that came and went | 216000 (60 a second) |" in found.table() and "| wrong | nothing |" in found.table()
    )


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        pytest.param({"never_bound": ["p"]}, "pod p was never bound", id="lost"),
        pytest.param({"groups_in_part": ["g"]}, "group g is bound in part", id="half a group"),
        pytest.param({"problems": ["node a has 3 pods"]}, "node a has 3 pods", id="too much on a node"),
        pytest.param(
            {"lives": [a_life((0, 70), (600, 100_000_000), (900, 120_000_000), (1200, 90_000_000))]},
            "scheduler-1 grew from 100 MB to 120 MB after its first ten minutes",
            id="a process that grows",
        ),
    ],
)
def test_what_is_wrong(more: dict[str, Any], wrong: str) -> None:
    found = a_result(**more)
    assert found.verdicts() == [wrong] and wrong in found.table()
