"""Finding selectors by the labels they match, without asking each selector.

Every selector is filed under something that labels must have to match it: one of a few values of a key, or a key.
Asking with some labels looks only under those labels; what asks for nothing positive is looked at every time.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from stowplan.objects.selectors import LabelRequirement, Selector

Item = TypeVar("Item", bound=Hashable)


def anchor(selector: Selector) -> LabelRequirement | None:
    """The most telling condition of a selector: fewest values first, then a key that must be there."""
    positive = [part for part in selector if part.operator in ("In", "Exists", "Gt", "Lt")]
    return min(positive, key=lambda part: len(part.values) if part.operator == "In" else 1 << 30, default=None)


class SelectorIndex(Generic[Item]):
    """Items (counters, terms, services) by their selectors. The finder still has to check each item it is given."""

    def __init__(self) -> None:
        # (key, value) → items that need that pair; (key, None) → that need the key; (None, None) → that need nothing
        self._shelves: dict[tuple[str | None, str | None], dict[Item, None]] = {}

    def __bool__(self) -> bool:
        """Is anything filed here?"""
        return bool(self._shelves)

    def add(self, selector: Selector | None, item: Item) -> None:
        """A selector that matches nothing (None) is not filed at all."""
        for label in self._places(selector):
            self._shelves.setdefault(label, {})[item] = None

    def remove(self, selector: Selector | None, item: Item) -> None:
        for label in self._places(selector):
            items = self._shelves.get(label, {})
            items.pop(item, None)
            if not items:
                self._shelves.pop(label, None)

    def candidates(self, labels: Mapping[str, str]) -> Iterator[Item]:
        """Everything whose selector could match these labels."""
        shelves = self._shelves
        yield from shelves.get((None, None), ())
        for key, value in labels.items():
            yield from shelves.get((key, value), ())
            yield from shelves.get((key, None), ())

    def _places(self, selector: Selector | None) -> Iterator[tuple[str | None, str | None]]:
        if selector is None:
            return
        best = anchor(selector)
        if best is None:
            yield (None, None)
        elif best.operator == "In":
            yield from ((best.key, value) for value in best.values)
        else:
            yield (best.key, None)
