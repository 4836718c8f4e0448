"""Amounts of resources that can be added up, and written as the API server writes them.

A sum has the format of its first part that is not zero: "1Gi" and "500M" add up to a binary quantity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from stowplan.embedded.schema import quantities
from stowplan.objects import quantity


class Amount(msgspec.Struct, frozen=True, gc=False):
    """A number of nano-units, and the format in which it is written."""

    nanos: int
    form: str = quantities.DECIMAL

    def __str__(self) -> str:
        return quantities.written(self.nanos, self.form)

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.nanos + other.nanos, self.form if self.nanos else other.form)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.nanos - other.nanos, self.form)

    def __gt__(self, other: Amount) -> bool:
        return self.nanos > other.nanos

    def rounded_up(self) -> Amount:
        """The amount as a whole number of units."""
        return Amount(-(-self.nanos // quantity.NANO) * quantity.NANO, self.form)


Amounts: TypeAlias = dict[str, Amount]  # by the name of a resource

ZERO, ONE = Amount(0), Amount(quantity.NANO)


def whole(number: int) -> Amount:
    return Amount(number * quantity.NANO)


def parsed(text: str) -> Amount:
    return Amount(quantity.nanos(text), quantities.form_of(text))


def read(texts: Mapping[str, str]) -> Amounts:
    return {name: parsed(text) for name, text in texts.items()}


def written(amounts: Mapping[str, Amount]) -> dict[str, str]:
    """The amounts as a document has them, sorted by name."""
    return {name: str(amounts[name]) for name in sorted(amounts)}


def add(total: Amounts, more: Mapping[str, Amount]) -> None:
    """Add amounts to a total, in place."""
    for name, amount in more.items():
        found = total.get(name)
        total[name] = amount if found is None else found + amount


def raise_to(total: Amounts, least: Mapping[str, Amount]) -> None:
    """Make each amount of a total at least as large as another, in place."""
    for name, amount in least.items():
        if name not in total or amount > total[name]:
            total[name] = amount
