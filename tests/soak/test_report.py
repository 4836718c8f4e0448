"""What a soak's table says, and what it calls wrong."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.controlplane.stowplan_process import Stowplan
from tests.soak.programs import Life
from tests.soak.report import SoakResult


def a_life(*samples: tuple[float, int], leads_from: float | None = 0.0) -> Life:
    return Life("scheduler-1", cast(Stowplan, None), 0.0, "the end", list(samples), leads_from)


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


def test_ten_minutes_to_settle_after_a_process_took_over() -> None:
    waited = ((600, 80_000_000), (890, 81_000_000))
    found = a_result(
        lives=[a_life(*waited, (900, 110_000_000), (1500, 180_000_000), (3000, 181_000_000), leads_from=900)]
    )
    assert found.verdicts() == []
    assert (
        "| memory of scheduler-1, waiting (ended by the end) | 80 MB after ten minutes, 81 MB at most" in found.table()
    )
    assert "| memory of scheduler-1, leading (ended by the end) | 180 MB after ten minutes, 181 MB at" in found.table()


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        pytest.param({"never_bound": ["p"]}, "pod p was never bound", id="lost"),
        pytest.param({"groups_in_part": ["g"]}, "group g is bound in part", id="half a group"),
        pytest.param({"problems": ["node a has 3 pods"]}, "node a has 3 pods", id="too much on a node"),
        pytest.param(
            {"lives": [a_life((0, 70), (600, 100_000_000), (900, 120_000_000), (1200, 90_000_000))]},
            "scheduler-1 leading grew from 100 MB to 120 MB after its first ten minutes",
            id="a process that grows",
        ),
        pytest.param(
            {"lives": [a_life((600, 100_000_000), (900, 120_000_000), leads_from=None)]},
            "scheduler-1 waiting grew from 100 MB to 120 MB after its first ten minutes",
            id="a process that grows while it waits",
        ),
        pytest.param(
            {
                "lives": [
                    a_life(
                        (700, 80_000_000), (900, 170_000_000), (1550, 180_000_000), (1600, 210_000_000), leads_from=900
                    )
                ]
            },
            "scheduler-1 leading grew from 180 MB to 210 MB after its first ten minutes",
            id="a process that grows after it took over",
        ),
    ],
)
def test_what_is_wrong(more: dict[str, Any], wrong: str) -> None:
    found = a_result(**more)
    assert found.verdicts() == [wrong] and wrong in found.table()
