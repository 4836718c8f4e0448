"""The comparison with the study's published means."""

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.fgd import problems

PUBLISHED: dict[str, Any] = {
    "policies": {"FGD": {"mean": [60.0, 95.4], "sd": [0.0, 0.1]}, "BestFit": {"mean": [60.0, 93.1], "sd": [0.0, 0.2]}},
    "separated": {"130": [["BestFit", "FGD"]]},
}


@pytest.mark.parametrize(
    ("means", "told"),
    [
        pytest.param({"FGD": [60.0, 95.4], "BestFit": [60.0, 93.1]}, [], id="the same"),
        pytest.param({"FGD": [60.1, 95.65], "BestFit": [59.9, 92.6]}, [], id="within three deviations, or the floor"),
        pytest.param({"FGD": [60.2, 95.4]}, ["FGD at 60 %: 60.200"], id="outside of the floor"),
        pytest.param({"FGD": [60.0, 95.0]}, ["FGD at 130 %: 95.000"], id="outside of the deviations"),
        pytest.param({"FGD": [60.0, float("nan")]}, ["FGD at 130 %: nan"], id="nothing at a point"),
        pytest.param(
            {"FGD": [60.0, 92.0], "BestFit": [60.0, 93.1]},
            ["FGD at 130 %", "BestFit is not below FGD at 130 %"],
            id="in another order",
        ),
    ],
)
def test_differences_are_told(means: dict[str, list[float]], told: list[str]) -> None:
    found = list(problems(PUBLISHED, means, [60, 130], 0.05))
    assert len(found) == len(told) and all(each.startswith(part) for each, part in zip(found, told, strict=True))
