"""Exact arithmetic on Kubernetes quantities ("500m", "1.5Gi", "1e3").

A quantity is the text of the API. `value` and `milli` return whole units or thousandths, rounded up as in Go. Results
are cached: a cluster has millions of quantities but few different texts.

A text may have any length: "999…" with 5,000 digits is a quantity for the API server, too. Such a text is read once
(`shortened`) and becomes a short one of the same meaning, so nothing else depends on its length.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, wraps
from typing import Any, TypeVar

_FORM = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?")
_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_LARGEST = (1 << 63) - 1
LONGEST = 64  # characters of a text that is used, and cached, as it is
_MOST_DIGITS = 40  # before the point: more than any amount that fits into 64 bits, in nano-units
_MOST_DECIMALS = 40
NANO = 10**9  # nano-units in a unit
_MILLI_NANOS = 10**6
_NANOS_OF: dict[str, int] = {suffix: 10 ** (9 + power) for suffix, power in _DECIMAL.items()}
_NANOS_OF |= {suffix: factor * NANO for suffix, factor in _BINARY.items()}
_MOST_POWERS = 280  # of ten in a float: Go says +Inf beyond, with which nobody can compare

Found = TypeVar("Found")


class Quantity(str):
    """The text of a valid quantity."""

    __slots__ = ()


class LongTextError(ValueError):
    """The text must be `shortened` first: a cache would keep it."""


@lru_cache(maxsize=65536)
def quantity(text: str | int | float) -> Quantity:
    """Return `text` as a quantity; ValueError if it is none. Numbers, as in YAML, are accepted."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"expected a quantity such as 500m or 1Gi, found {text!r}")
    if isinstance(text, int) and abs(text) >= 10**LONGEST:
        return Quantity("-1e60" if text < 0 else "1e60")
    if len(str(text)) > LONGEST:
        raise LongTextError(f"expected at most {LONGEST} characters")
    nanos(str(text))
    return Quantity(text)


def shortened(text: str) -> Quantity:
    """Return a long text as a short quantity of the same meaning; ValueError if it is none."""
    sign, digits, suffix = _parts(text)
    before, _, after = digits.partition(".")
    before, after = before.lstrip("0"), after.rstrip("0")
    if not before and not after:
        return Quantity("0")
    if suffix not in _BINARY:
        # The point moves: what is left is a number without a suffix.
        before, after = _moved(before, after, _exponent(suffix))
        suffix = ""
    if len(before) > _MOST_DIGITS:
        before, after = "1" + "0" * _MOST_DIGITS, ""
    if len(after) > _MOST_DECIMALS:
        after = after[:_MOST_DECIMALS] + "1"  # what is cut off is not nothing
    return Quantity(f"{sign}{before or '0'}.{after}{suffix}" if after else f"{sign}{before}{suffix}")


def _moved(before: str, after: str, exponent: int) -> tuple[str, str]:
    """Return the digits before and after the point, when the point moves to the right (or left, if negative)."""
    places = max(-2 * LONGEST - len(before), min(exponent, 2 * LONGEST + len(after)))
    if places >= 0:
        before, after = before + after[:places] + "0" * (places - len(after)), after[places:]
    else:
        padded = "0" * max(-places - len(before), 0) + before
        before, after = padded[:places], padded[places:] + after
    return before.lstrip("0"), after.rstrip("0")


def _parts(text: str) -> tuple[str, str, str]:
    """Return the sign, the digits and the suffix."""
    form = _FORM.fullmatch(text)
    if form is None:
        shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
        raise ValueError(f"expected a quantity such as 500m or 1Gi, found {shown!r}")
    sign, digits, suffix = form.groups(default="")
    return sign, digits, suffix


def _remembered(compute: Callable[[str], Found]) -> Callable[[str], Found]:
    """Decorator of a function of a quantity: its results are cached, by texts that are short."""
    cached = lru_cache(maxsize=65536)(compute)

    @wraps(compute)
    def computed(text: str) -> Found:
        return cached(text if len(text) <= LONGEST else shortened(text))

    return computed


@_remembered
def nanos(text: str) -> int:
    """Return the number in nano-units, the finest unit in Go; smaller fractions are rounded up."""
    sign, digits, suffix = _parts(text)
    if digits.isdigit() and suffix in _NANOS_OF:
        amount = int(digits) * _NANOS_OF[suffix]
    else:
        number = Fraction(digits) * _scale(suffix) * NANO
        amount = -(-number.numerator // number.denominator)
    if suffix in _BINARY:
        amount = min(amount, _LARGEST * NANO)
    return -amount if sign == "-" else amount


def _scale(suffix: str) -> Fraction:
    if suffix in _BINARY:
        return Fraction(_BINARY[suffix])
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix]
    return Fraction(10) ** max(-100, min(_exponent(suffix), 100))  # larger exponents would only cost time


def _exponent(suffix: str) -> int:
    """Return the power of ten of a decimal suffix. As in Go, an exponent is cut to 32 bits, and must fit into 64."""
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    sign, digits = (suffix[1], suffix[2:]) if suffix[1] in "+-" else ("", suffix[1:])
    digits = digits.lstrip("0") or "0"
    exponent = int(sign + digits) if len(digits) < 20 else _LARGEST + 1
    if not -_LARGEST - 1 <= exponent <= _LARGEST:
        raise ValueError(f"expected an exponent of 64 bits, found {suffix[:LONGEST]!r}")
    return (exponent + (1 << 31)) % (1 << 32) - (1 << 31)


def value(text: str) -> int:
    """Return whole units, rounded up: value("1.5Gi") == 1610612736."""
    return whole(nanos(text), "")


def milli(text: str) -> int:
    """Return thousandths, rounded up: milli("0.5") == 500."""
    return whole(nanos(text), "cpu")


def whole(amount: int, resource: str) -> int:
    """Convert nano-units to the unit of decisions, rounded up: thousandths for cpu, whole units for the rest."""
    unit = _MILLI_NANOS if resource == "cpu" else NANO
    away_from_zero = -(-abs(amount) // unit)
    if away_from_zero > _LARGEST:
        # As in Go: what does not fit into 64 bits becomes 0, but the largest binary quantity wraps around.
        away_from_zero = -1000 if abs(amount) == _LARGEST * NANO else 0
    return away_from_zero if amount >= 0 else -away_from_zero


def of(resource: str, text: str) -> int:
    """Return a resource's amount in the unit of decisions: of("cpu", "2") == 2000, of("memory", "1Ki") == 1024."""
    return _of(resource, text if len(text) <= LONGEST else shortened(text))


@lru_cache(maxsize=65536)
def _of(resource: str, text: str) -> int:
    return whole(nanos(text), resource)


@_remembered
def approximate(text: str) -> float:
    """Return a float as Go's AsApproximateFloat64: the digits times a power of ten, each rounded before."""
    sign, digits, suffix = _parts(text)
    before, _, after = digits.partition(".")
    number, exponent = _short(before.lstrip("0"), after, suffix) or (abs(nanos(text)), -9)
    found = float(number) * _power_of_ten(exponent)
    return -found if sign == "-" else found


def _power_of_ten(exponent: int) -> float:
    return 10.0 ** min(exponent, _MOST_POWERS) if exponent >= 0 else 1 / 10.0**-exponent


def _short(before: str, after: str, suffix: str) -> tuple[int, int] | None:
    """Return the digits as one number and a power of ten, if Go can use 64 bits for it; otherwise None."""
    if suffix in _BINARY:
        power = _BINARY[suffix].bit_length() - 1
        fits = not after and 15 - len(before) - int(power * 3 / 10) - 1 >= 0
        return (int(before or "0") * _BINARY[suffix], 0) if fits else None
    exponent = _exponent(suffix)
    fits = len(before) + len(after) <= 18 and exponent - len(after) >= -9
    return (int(before + after or "0"), exponent - len(after)) if fits else None


@_remembered
def canonical(text: str) -> str:
    """Return the text as Go writes it: without a fraction, with the largest suffix that allows it."""
    (_, _, suffix), amount = _parts(text), nanos(text)
    if suffix in _BINARY and abs(amount) >= 1024 * NANO and not amount % NANO:
        return _binary(amount // NANO)
    return _decimal(amount, suffix[:1] in ("e", "E") and len(suffix) > 1)


def in_binary(number: int) -> str:
    """Return a number of whole units as Go writes a quantity in the binary format: in_binary(2048) == "2Ki"."""
    return _binary(number) if abs(number) >= 1024 else str(number)


def _binary(number: int) -> str:
    suffix = ""
    for larger in _BINARY:
        if number % 1024:
            break
        number, suffix = number // 1024, larger
    return f"{number}{suffix}"


def _decimal(amount: int, exponential: bool) -> str:
    if not amount:
        return "0"
    power, names = -9, {power: name for name, power in _DECIMAL.items()}
    while not amount % 1000 and power < 18:
        amount, power = amount // 1000, power + 3
    if exponential:
        return f"{amount}e{power}" if power else str(amount)
    return f"{amount}{names[power]}"


def custom_value(kind: type, found: Any) -> Any:
    """msgspec's dec_hook: a value of a type that msgspec does not know."""
    if kind is Quantity:
        try:
            return quantity(found)
        except LongTextError:
            return shortened(found)
    raise NotImplementedError(kind)
