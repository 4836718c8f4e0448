"""Exact arithmetic on Kubernetes quantities ("500m", "1.5Gi", "1e3").

A quantity is kept as the text it came in. `value` and `milli` turn it into a whole number of units or thousandths,
rounding up as Go does, and remember the answer: a cluster has millions of quantities but few different texts.
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
    """The text of a quantity that is known to be well formed."""

    __slots__ = ()


@lru_cache(maxsize=65536)
def quantity(text: str | int | float) -> Quantity:
    """Check `text` and mark it as a quantity; bare numbers, as YAML gives them, are taken too."""
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"expected a quantity such as 500m or 1Gi, found {text!r}")
    nanos(str(text))
    return Quantity(text)


@lru_cache(maxsize=65536)
def nanos(text: str) -> int:
    """The exact number, in nano-units: Go keeps nothing finer, and rounds what is finer up to one."""
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
    return Fraction(10) ** max(-100, min(exponent, 100))  # beyond that nothing changes but the digits to carry


def value(text: str) -> int:
    """Whole units, rounded up: value("1.5Gi") == 1610612736."""
    return whole(nanos(text), "")


def milli(text: str) -> int:
    """Thousandths, rounded up: milli("0.5") == 500."""
    return whole(nanos(text), "cpu")


def whole(amount: int, resource: str) -> int:
    """Nano-units in the unit that decisions use, rounded up: thousandths for cpu, whole units for the rest."""
    unit = _MILLI_NANOS if resource == "cpu" else NANO
    away_from_zero = -(-abs(amount) // unit)
    if away_from_zero > _LARGEST:
        # What Go makes of what does not fit into 64 bits: nothing; but the cap of binary quantities wraps around.
        away_from_zero = -1000 if abs(amount) == _LARGEST * NANO else 0
    return away_from_zero if amount >= 0 else -away_from_zero


@lru_cache(maxsize=65536)
def of(resource: str, text: str) -> int:
    """A resource's amount as decisions use it: of("cpu", "2") == 2000, of("memory", "1Ki") == 1024."""
    return whole(nanos(text), resource)
