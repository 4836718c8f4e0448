"""The columns of a view: names, resources, labels, and values that many nodes share. All are read-only.

Names, labels and shared values are columns of clusters, too (`columns.fleet.views`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

import numpy as np

from stowplan.columns.arrays import Bools, Codes, Ints
from stowplan.columns.nodes.table import ABSENT, LabelColumn
from stowplan.columns.vocabulary import Vocabulary
from stowplan.objects.selectors import LabelRequirement

if TYPE_CHECKING:
    from stowplan.columns.nodes.views import Nodes

Value = TypeVar("Value", bound=Hashable)
Part = TypeVar("Part", bound=Hashable)


class ColumnView(Protocol):
    """What a column needs to know of its view: of nodes, or of clusters."""

    def __len__(self) -> int: ...

    @property
    def total(self) -> int:
        """The number of all nodes (or clusters), in this view or not."""

    def position(self, name: str) -> int | None: ...

    def pick(self, column: Any) -> Any: ...


class NameColumn:
    """Names; a comparison does not look at each name."""

    def __init__(self, view: ColumnView) -> None:
        self._view = view

    def __eq__(self, name: object) -> Bools:  # type: ignore[override]
        found = np.zeros(len(self._view), np.bool_)
        position = self._view.position(name) if isinstance(name, str) else None
        if position is not None:
            found[position] = True
        return found

    def __ne__(self, name: object) -> Bools:  # type: ignore[override]
        return ~(self == name)

    __hash__ = None  # type: ignore[assignment]


class Resources:
    """A column per resource: `nodes.allocatable["cpu"]`. An unknown resource is a column of zeros."""

    def __init__(self, nodes: Nodes, columns: Mapping[str, Ints]) -> None:
        self._nodes, self._columns = nodes, columns

    def __getitem__(self, resource: str) -> Ints:
        column = self._columns.get(resource)
        if column is None:
            return np.zeros(len(self._nodes), np.int64)
        return self._nodes.pick(column)  # type: ignore[no-any-return]

    def __contains__(self, resource: str) -> bool:
        return resource in self._columns


class Free:
    """The free amounts of each node: allocatable minus requested."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def __getitem__(self, resource: str) -> Ints:
        return self._nodes.allocatable[resource] - self._nodes.requested[resource]


class Interned(Generic[Value]):
    """A column of values that many nodes share. Each distinct value is looked at once."""

    def __init__(self, view: ColumnView, codes: Codes, vocabulary: Vocabulary[Value]) -> None:
        self._view, self._codes, self._vocabulary = view, codes, vocabulary

    def all_empty(self) -> bool:
        """True if no node of the cluster has a value."""
        return len(self._vocabulary.codes) == 1

    @property
    def values(self) -> Iterable[Value]:
        """The distinct values of the cluster's nodes, in this view or not."""
        return self._vocabulary.codes

    def where(self, function: Callable[[Value], bool]) -> Bools:
        """True for nodes whose value meets a condition."""
        return self._answers(function, np.bool_)  # type: ignore[no-any-return]

    def number(self, function: Callable[[Value], int]) -> Ints:
        """Return a number for each node, computed from its value."""
        return self._answers(function, np.int64)  # type: ignore[no-any-return]

    def having(self, parts: Callable[[Value], Iterable[Part]]) -> Iterator[tuple[Part, Bools]]:
        """Yield each part of the values of these nodes (one taint of a set of taints, say), and the nodes with it."""
        codes, values = self._view.pick(self._codes), self._vocabulary.values
        found: dict[Part, list[int]] = {}
        for code in np.unique(codes).tolist():
            for part in parts(cast("Value", values[code])):
                found.setdefault(part, []).append(code)
        for part, with_it in found.items():
            table = np.zeros(len(self._vocabulary), np.bool_)
            table[with_it] = True
            yield part, table[codes]

    def _answers(self, function: Callable[[Value], Any], kind: type) -> Any:
        table: Any = np.zeros(len(self._vocabulary), kind)
        for value, code in self._vocabulary.codes.items():
            table[code] = function(value)
        return table[self._view.pick(self._codes)]


class Labels:
    """The values of one label: `nodes.label("zone") == "a"`. A node without the label is not equal to any value."""

    def __init__(self, view: ColumnView, key: str, column: LabelColumn) -> None:
        self.key = key
        self._view, self._column = view, column

    @property
    def codes(self) -> Codes:
        """A number per node: equal for equal values, 0 for nodes without the label."""
        return self._view.pick(self._column.codes)  # type: ignore[no-any-return]

    @property
    def all_codes(self) -> Codes:
        """The same over all rows of the table, for `Tally.by_code`."""
        codes = self._column.codes[:]
        codes.flags.writeable = False
        return codes

    @property
    def size(self) -> int:
        """A number that is larger than any code."""
        return len(self._column.values)

    @property
    def present(self) -> Bools:
        return np.asarray(self.codes != ABSENT)

    @property
    def anywhere(self) -> bool:
        """True if any node of the cluster has the label, in this view or not."""
        return self._column.labelled > 0

    @property
    def everywhere(self) -> bool:
        """True if every node of the cluster has the label."""
        return self._column.labelled == self._view.total

    @property
    def distinct(self) -> bool:
        """True if no two nodes of the cluster have the same value."""
        return self._column.distinct

    @property
    def value_count(self) -> int:
        """The number of distinct values in the cluster."""
        return len(self._column.values.codes) - 1

    @property
    def values(self) -> list[str | None]:
        """Each node's value, None for nodes without the label."""
        return [self._column.values.values[code] for code in self.codes.tolist()]

    def numbers(self) -> dict[str, int]:
        """Return how many of these nodes have each value, the most frequent one first."""
        codes, counts = np.unique(self.codes, return_counts=True)
        values = self._column.values.values
        named = [(values[code], count) for code, count in zip(codes.tolist(), counts.tolist(), strict=True)]
        return {value: count for value, count in sorted(named, key=lambda each: -each[1]) if value is not None}

    def code(self, value: str) -> int | None:
        """Return the number of a value in `codes`; None if no node has the value."""
        return self._column.values.codes.get(value)

    def __eq__(self, value: object) -> Bools:  # type: ignore[override]
        code = self.code(value) if isinstance(value, str) else None
        return np.zeros(len(self._view), np.bool_) if code is None else np.asarray(self.codes == code)

    def __ne__(self, value: object) -> Bools:  # type: ignore[override]
        return ~(self == value)

    __hash__ = None  # type: ignore[assignment]

    def isin(self, values: Iterable[str]) -> Bools:
        """True for nodes whose value is one of these: `nodes.label("zone").isin(["a", "b"])`."""
        if isinstance(values, str):
            raise TypeError(f"isin({values!r}) is one text; give a list: isin([{values!r}])")
        known = self._column.values.codes
        named = np.zeros(self.size, np.bool_)
        named[[known[value] for value in values if value in known]] = True
        named[ABSENT] = False
        return named[self.codes]

    def meets(self, requirement: LabelRequirement) -> Bools:
        """True for nodes whose value meets a condition on this label."""
        return self._meeting(requirement)[self.codes]

    def _meeting(self, requirement: LabelRequirement) -> Bools:
        """Return for each code if its value meets the condition."""
        known = self._column.values.codes
        match requirement.operator:
            case "In" | "NotIn":
                named = np.zeros(self.size, np.bool_)
                named[[known[value] for value in requirement.values if value in known]] = True
                return named if requirement.operator == "In" else ~named
            case "Exists" | "DoesNotExist":
                present = np.ones(self.size, np.bool_)
                present[ABSENT] = False
                return present if requirement.operator == "Exists" else ~present
            case _:
                compared = np.zeros(self.size, np.bool_)
                for value, code in known.items():
                    compared[code] = value is not None and requirement.compares(value)
                return compared
