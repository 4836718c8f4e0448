"""The canonical form of quantities: one spelling for each amount.

"1000m" becomes "1", "1024Mi" becomes "1Gi", "0.5" becomes "500m": the largest suffix that leaves a whole number, in the
format (binary, decimal, exponent) of the given quantity.
"""

from __future__ import annotations

import re
from functools import lru_cache

from stowplan.objects import quantity

BINARY, EXPONENT, DECIMAL = "i", "e", ""
_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_SMALL = {-9: "n", -6: "u", -3: "m"}
_DECIMAL = {0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_EXPONENT = re.compile(r"[0-9.][eE][+-]?[0-9]+$")


@lru_cache(maxsize=16384)
def canonical(text: str) -> str:
    """The canonical form of a quantity. Raises `ValueError` for a text that is not a quantity."""
    return written(quantity.nanos(text), form_of(text))


def form_of(text: str) -> str:
    """The format of a quantity: BINARY, EXPONENT or DECIMAL."""
    if text.endswith("i"):
        return BINARY
    return EXPONENT if _EXPONENT.search(text) is not None else DECIMAL


def written(nanos: int, form: str) -> str:
    """An amount in nano-units as the text of a quantity."""
    if form == BINARY and nanos % quantity.NANO == 0 and abs(nanos) >= 1024 * quantity.NANO:
        return _binary(nanos // quantity.NANO)
    return _decimal(nanos, exponent=form == EXPONENT)


def _binary(units: int) -> str:
    power = 0
    while units % 1024 == 0 and power < len(_SUFFIXES) - 1:
        units //= 1024
        power += 1
    return f"{units}{_SUFFIXES[power]}"


def _decimal(nanos: int, *, exponent: bool) -> str:
    power = -9
    while nanos and nanos % 1000 == 0 and power < 18:
        nanos //= 1000
        power += 3
    if nanos == 0:
        return "0"
    if exponent:
        return f"{nanos}e{power}" if power else str(nanos)
    return f"{nanos}{_SMALL.get(power) or _DECIMAL.get(power, '')}"
