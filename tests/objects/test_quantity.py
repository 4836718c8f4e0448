"""Quantities: every form of Kubernetes, exact, rounded up as in Go."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.objects import quantity

LARGEST = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "value", "milli"),
    [
        pytest.param("0", 0, 0, id="zero"),
        pytest.param("2", 2, 2000, id="a whole number"),
        pytest.param("500m", 1, 500, id="thousandths round up to a whole"),
        pytest.param("1500m", 2, 1500, id="one and a half is two"),
        pytest.param("0.1", 1, 100, id="a decimal fraction"),
        pytest.param("1u", 1, 1, id="a millionth is one"),
        pytest.param("1n", 1, 1, id="a billionth is one"),
        pytest.param("0.0000000001", 1, 1, id="finer than Go keeps, and still one"),
        pytest.param("1k", 1000, 10**6, id="k is lower case"),
        pytest.param("1M", 10**6, 10**9, id="mega"),
        pytest.param("1G", 10**9, 10**12, id="giga"),
        pytest.param("1T", 10**12, 10**15, id="tera"),
        pytest.param("1P", 10**15, 10**18, id="peta"),
        pytest.param("1E", 10**18, 0, id="exa, whose thousandths are too many"),
        pytest.param("1Ki", 1024, 1024000, id="kibi"),
        pytest.param("1Mi", 2**20, 2**20 * 1000, id="mebi"),
        pytest.param("1.5Gi", 1610612736, 1610612736000, id="one and a half gibi"),
        pytest.param("1Ti", 2**40, 2**40 * 1000, id="tebi"),
        pytest.param("1Pi", 2**50, 2**50 * 1000, id="pebi"),
        pytest.param("1Ei", 2**60, 0, id="exbi"),
        pytest.param("9Ei", LARGEST, -1000, id="more than there can be"),
        pytest.param("0.1Ki", 103, 102400, id="a fraction of a kibi rounds up"),
        pytest.param("1e3", 1000, 10**6, id="an exponent"),
        pytest.param("1E3", 1000, 10**6, id="a large E with digits is an exponent, not exa"),
        pytest.param("1.5e1", 15, 15000, id="a fraction with an exponent"),
        pytest.param("5e-1", 1, 500, id="a negative exponent"),
        pytest.param("1e+2", 100, 10**5, id="an exponent with a sign"),
        pytest.param("+5", 5, 5000, id="a plus"),
        pytest.param("-5", -5, -5000, id="a minus"),
        pytest.param(
            "-1500m",
            -2,
            -1500,
            id="below zero Go rounds away from zero",
        ),
        pytest.param(".5", 1, 500, id="no digit before the point"),
        pytest.param("5.", 5, 5000, id="no digit after the point"),
        pytest.param("007", 7, 7000, id="leading zeros"),
        pytest.param("1e400", 0, 0, id="far too much, which Go takes for nothing"),
        pytest.param("1e-400", 1, 1, id="hardly anything"),
        pytest.param("1e4294967297", 10, 10_000, id="an exponent of 33 bits, of which Go reads 32"),
        pytest.param("9" * 5000, 0, 0, id="5,000 digits, which are too many"),
        pytest.param("-" + "9" * 5000, 0, 0, id="5,000 digits below zero"),
        pytest.param("9" * 5000 + "Ki", LARGEST, -1000, id="5,000 digits with a binary suffix, which Go caps"),
        pytest.param("0" * 5000 + "5", 5, 5000, id="5,000 leading zeros"),
        pytest.param("5." + "0" * 5000, 5, 5000, id="5,000 zeros after the point"),
        pytest.param("5." + "0" * 5000 + "1", 6, 5001, id="hardly more than five"),
        pytest.param("0." + "0" * 5000 + "1", 1, 1, id="hardly anything, in 5,000 digits"),
        pytest.param("0." + "0" * 5000 + "1e5001", 1, 1000, id="an exponent that makes up for 5,000 zeros"),
        pytest.param("1" + "0" * 5000 + "e-5000", 1, 1000, id="an exponent that takes 5,000 zeros away"),
        pytest.param("1" * 70 + "e-69", 2, 1112, id="a fraction with more digits than count"),
        pytest.param("0." + "5" * 100 + "Ki", 569, 568889, id="a fraction of a kibi with 100 digits"),
        pytest.param("0" * 5000 + "m", 0, 0, id="5,000 zeros"),
        pytest.param("0" * 100 + "1500m", 2, 1500, id="leading zeros and a suffix"),
    ],
)
def test_the_value_of_a_quantity(text: str, value: int, milli: int) -> None:
    assert (quantity.value(text), quantity.milli(text)) == (value, milli)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param("Gi", id="no number"),
        pytest.param(".", id="a point alone"),
        pytest.param("1K", id="a large K"),
        pytest.param("1ki", id="a small ki"),
        pytest.param("1mi", id="a small mi"),
        pytest.param("1e", id="an exponent without digits"),
        pytest.param("1e1.5", id="a broken exponent"),
        pytest.param("1Gib", id="too many letters"),
        pytest.param("1 Gi", id="a space inside"),
        pytest.param(" 1", id="a space before"),
        pytest.param("1\n", id="a line end"),
        pytest.param("1,5", id="a comma"),
        pytest.param("1_000", id="an underscore"),
        pytest.param("0x10", id="hexadecimal"),
        pytest.param("--1", id="two signs"),
        pytest.param("NaN", id="not a number"),
        pytest.param(
            "٣",
            id="digits of other scripts",
        ),
    ],
)
def test_invalid_quantities(text: str) -> None:
    with pytest.raises(ValueError, match="expected a quantity such as 500m or 1Gi, found"):
        quantity.quantity(text)


@pytest.mark.parametrize("digits", ["9" * 30, "-" + "9" * 30, "9" * 5000])
def test_an_exponent_beyond_64_bits_is_none_as_in_go(digits: str) -> None:
    with pytest.raises(ValueError, match="expected an exponent of 64 bits, found"):
        quantity.nanos(f"1e{digits}")


@pytest.mark.parametrize("compute", [quantity.nanos, quantity.value, quantity.approximate, quantity.canonical])
def test_a_text_of_a_million_digits_is_read_and_forgotten(compute: Callable[[str], object]) -> None:
    assert compute("9" * 1_000_000) == compute("1" + "0" * 40)
    assert len(quantity.shortened("9" * 1_000_000)) < quantity.LONGEST


def test_5000_digits_and_a_letter_are_none() -> None:
    with pytest.raises(ValueError, match=r"expected a quantity such as 500m or 1Gi, found '9{64}…'"):
        quantity.shortened("9" * 5000 + "x")


def test_a_long_text_is_not_cached() -> None:
    with pytest.raises(quantity.LongTextError):
        quantity.quantity("9" * 5000)


@pytest.mark.parametrize(
    ("text", "about"),
    [
        pytest.param("1.5Gi", 1610612736.0, id="an ordinary one"),
        pytest.param("1e400", 1e280, id="more than a float holds"),
        pytest.param("-1e400", -1e280, id="less than a float holds"),
        pytest.param("1e-400", 1e-9, id="hardly anything"),
    ],
)
def test_a_float_is_finite(text: str, about: float) -> None:
    assert quantity.approximate(text) == pytest.approx(about)


@pytest.mark.parametrize(
    ("found", "text"),
    [
        pytest.param(10**100, "1e60", id="a number of 100 digits"),
        pytest.param(-(10**100), "-1e60", id="one below zero"),
        pytest.param(2, "2", id="YAML's integer"),
        pytest.param(0.5, "0.5", id="YAML's float"),
        pytest.param(1e-7, "1e-07", id="a float that prints with an exponent"),
        pytest.param("500m", "500m", id="a text stays as it is"),
    ],
)
def test_numbers_are_accepted(found: Any, text: str) -> None:
    made = quantity.quantity(found)
    assert made == text and isinstance(made, quantity.Quantity)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(True, id="yes"),
        pytest.param(None, id="null"),
        pytest.param(float("nan"), id="not a number"),
        pytest.param(float("inf"), id="infinity"),
    ],
)
def test_other_values_are_rejected(found: Any) -> None:
    quantity.quantity(1)  # equal to True, and must not be mistaken for it
    with pytest.raises(ValueError, match="expected a quantity"):
        quantity.quantity(found)


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        pytest.param("cpu", "2", 2000, id="cpu counts in thousandths"),
        pytest.param("cpu", "0.1m", 1, id="cpu rounds up to a thousandth"),
        pytest.param("memory", "1Ki", 1024, id="memory in bytes"),
        pytest.param("example.com/gpu", "1500m", 2, id="others in whole units"),
    ],
)
def test_each_resource_has_its_unit(resource: str, text: str, amount: int) -> None:
    assert quantity.of(resource, text) == amount


@given(st.decimals(min_value=0, max_value=10**9, places=9))
def test_no_fraction_is_lost(number: Decimal) -> None:
    assert quantity.nanos(format(number, "f")) == int(number * 10**9)
