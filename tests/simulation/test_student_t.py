"""Student's t, beside a published table and beside its own density."""

from __future__ import annotations

import math

import pytest

from stowplan.simulation import student_t

TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 10: 2.228, 29: 2.045, 30: 2.042, 120: 1.980}


@pytest.mark.parametrize(("freedom", "t"), TABLE.items())
def test_quantiles_are_those_of_the_table(freedom: int, t: float) -> None:
    assert student_t.quantile(0.05, freedom) == pytest.approx(t, abs=0.0005)


@pytest.mark.parametrize("freedom", [1, 2, 3, 8, 9])
@pytest.mark.parametrize("t", [0.1, 1.0, 2.5])
def test_the_probability_is_the_area_under_the_density(freedom: int, t: float) -> None:
    gammas = math.gamma((freedom + 1) / 2) / math.gamma(freedom / 2) / math.sqrt(freedom * math.pi)
    step = t / 2000
    points = ((at + 0.5) * step for at in range(2000))
    area = sum(gammas * (1 + x * x / freedom) ** (-(freedom + 1) / 2) * step for x in points)
    assert student_t.two_sided(t, freedom) == pytest.approx(1 - 2 * area, abs=1e-6)


def test_the_ends() -> None:
    assert student_t.two_sided(0, 4) == 1 and student_t.two_sided(math.inf, 4) == 0
