"""An index that finds selectors by the labels they may match, without a look at each selector.

A selector is indexed by something that labels must have to match it: one of a few values of a key, or a key. A search
looks only at the labels it is given. Selectors without such a condition are found by every search.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from stowplan.objects.selectors import LabelRequirement, Selector

Item = TypeVar("Item", bound=Hashable)


def anchor(selector: Selector) -> LabelRequirement | None:
    """Return the most selective condition: the one with the fewest values, or else a key that must exist."""
    positive = [part for part in selector if part.operator in ("In", "Exists", "Gt", "Lt")]
    return min(positive, key=lambda part: len(part.values) if part.operator == "In" else 1 << 30, default=None)


class SelectorIndex(Generic[Item]):
    """Items (counters, terms, services) by their selectors. The caller still has to check each item it finds."""

    def __init__(self) -> None:
        # (key, value) → items that need that pair; (key, None) → that need the key; (None, None) → that need nothing
        self._items: dict[tuple[str | None, str | None], dict[Item, None]] = {}

    def __bool__(self) -> bool:
        """True if there are any items."""
        return bool(self._items)

    def add(self, selector: Selector | None, item: Item) -> None:
        """Add an item. A selector that matches nothing (None) is ignored."""
        for label in self._keys(selector):
            self._items.setdefault(label, {})[item] = None

    def remove(self, selector: Selector | None, item: Item) -> None:
        for label in self._keys(selector):
            items = self._items.get(label, {})
            items.pop(item, None)
            if not items:
                self._items.pop(label, None)

    def candidates(self, labels: Mapping[str, str]) -> Iterator[Item]:
        """Yield the items whose selectors may match these labels."""
        yield from self._items.get((None, None), ())
        yield from self.anchored(labels)

    def anchored(self, labels: Mapping[str, str]) -> Iterator[Item]:
        """Yield those of them that need one of these labels."""
        items = self._items
        for key, value in labels.items():
            yield from items.get((key, value), ())
            yield from items.get((key, None), ())

    def count_candidates(self, labels: Mapping[str, str]) -> int:
        """Return how many items `candidates` yields."""
        items = self._items
        found = len(items.get((None, None), ()))
        for key, value in labels.items():
            found += len(items.get((key, value), ())) + len(items.get((key, None), ()))
        return found

    def _keys(self, selector: Selector | None) -> Iterator[tuple[str | None, str | None]]:
        if selector is None:
            return
        best = anchor(selector)
        if best is None:
            yield (None, None)
        elif best.operator == "In":
            yield from ((best.key, value) for value in best.values)
        else:
            yield (best.key, None)
