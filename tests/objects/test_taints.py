"""When a toleration tolerates a taint."""

from __future__ import annotations

import pytest

from stowplan.objects.taints import Taint, Toleration, has_untolerated

TAINT = Taint("k", "NoSchedule", "v")


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        pytest.param(Toleration("k", "Equal", "v", "NoSchedule"), True, id="all equal"),
        pytest.param(Toleration("k", "", "v", "NoSchedule"), True, id="no operator is Equal"),
        pytest.param(Toleration("k", "Equal", "w", "NoSchedule"), False, id="another value"),
        pytest.param(Toleration("l", "Equal", "v", "NoSchedule"), False, id="another key"),
        pytest.param(Toleration("k", "Equal", "v", "NoExecute"), False, id="another effect"),
        pytest.param(Toleration("k", "Equal", "v", ""), True, id="any effect"),
        pytest.param(Toleration("k", "Exists"), True, id="any value"),
        pytest.param(Toleration("", "Exists"), True, id="anything"),
        pytest.param(Toleration("", "", "v"), True, id="any key with this value"),
        pytest.param(Toleration("", "", ""), False, id="any key with an empty value"),
        pytest.param(Toleration("k", "Gt", "0"), False, id="an operator behind a gate that is off"),
    ],
)
def test_tolerates(toleration: Toleration, tolerates: bool) -> None:
    assert toleration.tolerates(TAINT) == tolerates


MOST, LEAST = "9223372036854775807", "-9223372036854775808"


@pytest.mark.parametrize(
    ("taint", "operator", "toleration", "tolerates"),
    [
        pytest.param("11", "Gt", "10", True, id="a greater number"),
        pytest.param("10", "Gt", "10", False, id="not greater, but the same"),
        pytest.param("9", "Gt", "10", False, id="not greater, but less"),
        pytest.param("9", "Lt", "10", True, id="numbers are compared, not texts"),
        pytest.param("10", "Lt", "10", False, id="not less, but the same"),
        pytest.param("-1", "Lt", "0", True, id="a negative number"),
        pytest.param(MOST, "Gt", LEAST, True, id="the most and the least that 64 bits hold"),
        pytest.param("9223372036854775808", "Gt", "1", False, id="a taint of more than 64 bits"),
        pytest.param("1", "Lt", "9223372036854775808", False, id="a toleration of more than 64 bits"),
        pytest.param("9" * 5000, "Gt", "1", False, id="a number of 5,000 digits"),
        pytest.param("v", "Gt", "1", False, id="a taint that is no number"),
        pytest.param("", "Lt", "1", False, id="a taint without a value"),
        pytest.param("5", "Gt", "", False, id="a toleration without a value"),
        pytest.param("007", "Gt", "1", False, id="leading zeros"),
        pytest.param("-0", "Lt", "1", False, id="minus zero"),
        pytest.param("+5", "Gt", "1", False, id="a plus sign"),
        pytest.param("1.5", "Gt", "1", False, id="a fraction"),
        pytest.param("5\n", "Gt", "1", False, id="a line's end"),
        pytest.param("٥", "Gt", "1", False, id="another script's digit"),
        pytest.param("5", "Ge", "1", False, id="an operator that does not exist"),
    ],
)
def test_comparison_of_numbers(taint: str, operator: str, toleration: str, tolerates: bool) -> None:
    found, given = Taint("k", "NoSchedule", taint), Toleration("k", operator, toleration, "NoSchedule")
    assert given.tolerates(found, compares=True) == tolerates
    assert not given.tolerates(found)
    assert not Toleration("other", operator, toleration).tolerates(found, compares=True)


@pytest.mark.parametrize(
    ("effects", "out"),
    [
        pytest.param((), False, id="no taint"),
        pytest.param(("PreferNoSchedule",), False, id="a soft one"),
        pytest.param(("NoSchedule",), True, id="a hard one"),
        pytest.param(("PreferNoSchedule", "NoExecute"), True, id="one of two"),
    ],
)
def test_untolerated(effects: tuple[str, ...], out: bool) -> None:
    assert has_untolerated([Taint("k", effect) for effect in effects], [Toleration("other", "Exists")]) == out
