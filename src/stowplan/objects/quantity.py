"""Exact arithmetic on Kubernetes quantities ("500m", "1.5Gi", "1e3").

A quantity is the text of the API. `value` and `milli` return whole units or thousandths, rounded up as in Go. Results
are cached: a cluster has millions of quantities but few different texts.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_FORM = re.compile(r"([+-]?)([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)?")
_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_LARGEST = (1 << 63) - 1
NANO = 10**9  # nano-units in a unit
_MILLI_NANOS = 10**6


class Quantity(str):
    """The text of a valid quantity."""

    __slots__ = ()


@lru_cache(maxsize=65536)
def quantity(text: str | int | float) -> Quantity:
    """Return `text` as a quantity; ValueError if it is none. Numbers, as in YAML, are accepted."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"expected a quantity such as 500m or 1Gi, found {text!r}")
    nanos(str(text))
    return Quantity(text)


@lru_cache(maxsize=65536)
def nanos(text: str) -> int:
    """Return the number in nano-units, the finest unit in Go; smaller fractions are rounded up."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise ValueError(f"expected a quantity such as 500m or 1Gi, found {text!r}")
    sign, digits, suffix = form.groups(default="")
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
    exponent = int(suffix[1:])
    return Fraction(10) ** max(-100, min(exponent, 100))  # larger exponents would only cost time


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


@lru_cache(maxsize=65536)
def of(resource: str, text: str) -> int:
    """Return a resource's amount in the unit of decisions: of("cpu", "2") == 2000, of("memory", "1Ki") == 1024."""
    return whole(nanos(text), resource)


@lru_cache(maxsize=65536)
def approximate(text: str) -> float:
    """Return a float as Go's AsApproximateFloat64: the digits times a power of ten, each rounded before."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise ValueError(f"expected a quantity such as 500m or 1Gi, found {text!r}")
    sign, digits, suffix = form.groups(default="")
    before, _, after = digits.partition(".")
    number, exponent = _short(before.lstrip("0"), after, suffix) or (abs(nanos(text)), -9)
    found = float(number) * (10.0**exponent if exponent >= 0 else 1 / 10.0**-exponent)
    return -found if sign == "-" else found


def _short(before: str, after: str, suffix: str) -> tuple[int, int] | None:
    """Return the digits as one number and a power of ten, if Go can use 64 bits for it; otherwise None."""
    if suffix in _BINARY:
        power = _BINARY[suffix].bit_length() - 1
        fits = not after and 15 - len(before) - int(power * 3 / 10) - 1 >= 0
        return (int(before or "0") * _BINARY[suffix], 0) if fits else None
    exponent = _DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:])
    fits = len(before) + len(after) <= 18 and exponent - len(after) >= -9
    return (int(before + after or "0"), exponent - len(after)) if fits else None


@lru_cache(maxsize=65536)
def canonical(text: str) -> str:
    """Return the text as Go writes it: without a fraction, with the largest suffix that allows it."""
    form = _FORM.fullmatch(text)
    if form is None:
        raise ValueError(f"expected a quantity such as 500m or 1Gi, found {text!r}")
    amount, suffix = nanos(text), form[3] or ""
    if suffix in _BINARY and abs(amount) >= 1024 * NANO and not amount % NANO:
        return _binary(amount // NANO)
    return _decimal(amount, suffix[:1] in ("e", "E") and len(suffix) > 1)


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
