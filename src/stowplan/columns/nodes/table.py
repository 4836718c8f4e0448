"""Nodes as rows with stable numbers.

A row belongs to a node's name while there is a node or a pod with this name; then it is reused. A pod may name a node
that does not exist: the row of such a node is not *live*, and no view shows it.

Resources are int64 columns, one per resource that a node offers or a pod takes. Taints and declared features are
interned. A label column is made for the first question about a key, and kept up to date from then on.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from stowplan.columns.arrays import Bools, Codes, Ints, Rows
from stowplan.columns.rows import NamedRows, longer
from stowplan.columns.vocabulary import Vocabulary
from stowplan.objects import quantity, requests
from stowplan.objects.nodes import Node
from stowplan.objects.taints import Taint

ABSENT = 0  # the code of a label that a node does not have
MOST_LABEL_COLUMNS = 256
MOST_CHANGES = 4096  # of which the order is known
FEW_CHANGES = 64  # if there are more, a look at all versions is faster
_NO_NODE = Node()


class LabelColumn:
    """One label key: the code of each row's value, `ABSENT` for rows without the label."""

    __slots__ = ("codes", "labelled", "values", "version")

    def __init__(self, capacity: int) -> None:
        self.version = 0  # grows with every change
        self.codes: Codes = np.zeros(capacity, np.int64)
        self.values: Vocabulary[str | None] = Vocabulary(None)
        self.labelled = 0  # rows that have the label

    @property
    def distinct(self) -> bool:
        """True if no two nodes have the same value, as with hostnames."""
        return self.labelled == len(self.values.codes) - 1

    def put(self, row: int, value: str | None) -> None:
        old = int(self.codes[row])
        self.version += 1
        self.codes[row] = ABSENT if value is None else self.values.hold(value)
        self.labelled += (value is not None) - (old != ABSENT)
        if old != ABSENT:
            self.values.release(old)


class Image:
    """An image on nodes: its size, as the first node reported it, and the rows that have it."""

    __slots__ = ("rows", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: dict[int, None] = {}


class LiveNames:
    """The names of the rows that are live now. They are looked up when needed, and copied before they change."""

    def __init__(self, table: NodeTable) -> None:
        self._table, self._rows = table, table.live_rows()
        self._names: list[str] | None = None

    @property
    def rows(self) -> Rows:
        """The rows that these are the names of."""
        return self._rows

    def copy(self) -> None:
        """Copy the names, if that was not done before."""
        if self._names is None:
            names = self._table.names
            self._names = [names[row] for row in self._rows.tolist()]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, position: int) -> str:
        return self._table.names[int(self._rows[position])] if self._names is None else self._names[position]

    def __iter__(self) -> Iterator[str]:
        self.copy()
        return iter(self._names or ())

    def position(self, name: str) -> int | None:
        """Return where a name is; None if it is not one of these."""
        if self._names is not None:
            return self._names.index(name) if name in self._names else None
        row = self._table.row_of.get(name, -1)
        found = (self._rows == row).nonzero()[0].tolist()
        return found[0] if found else None


class NodeTable(NamedRows):
    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[Node | None] = [None] * self.capacity
        self.live: Bools = np.zeros(self.capacity, np.bool_)
        self.allocatable: dict[str, Ints] = {}
        self.requested: dict[str, Ints] = {}
        self.presumed: dict[str, Ints] = {name: np.zeros(self.capacity, np.int64) for name in ("cpu", "memory")}
        self.unschedulable: Bools = np.zeros(self.capacity, np.bool_)
        self.taint_code: Codes = np.zeros(self.capacity, np.int64)
        self.feature_code: Codes = np.zeros(self.capacity, np.int64)
        self.version: Ints = np.zeros(self.capacity, np.int64)
        self.node_version: Ints = np.zeros(self.capacity, np.int64)  # the same of the node object alone
        self.taints: Vocabulary[tuple[Taint, ...]] = Vocabulary(())
        self.features: Vocabulary[frozenset[str]] = Vocabulary(frozenset())
        self.images: dict[str, Image] = {}
        self.row_columns: dict[Hashable, Any] = {}  # see the module of that name
        self.labels: OrderedDict[str, LabelColumn] = OrderedDict()
        self.label_keys: Counter[str] = Counter()  # how many nodes have each label
        self.live_count = 0
        self.clock = 0  # counts changes; a row's version is the clock of its last change
        self.node_clock = 0  # the same of node objects alone: the last time that one of them changed
        self._changed: list[int] = []  # the rows of the latest changes, in their order
        self._live_rows: Rows | None = None
        self._positions: Rows = np.zeros(0, np.int64)
        self._same = np.zeros(0, np.int32)
        self._live_names: LiveNames | None = None
        for resource in ("pods", "cpu", "memory", "ephemeral-storage"):
            self.resource(resource)

    # -- rows

    def live_rows(self) -> Rows:
        """Return the rows that views show, in ascending order."""
        if self._live_rows is None:
            self._live_rows = np.flatnonzero(self.live[: self.size])
            self._live_rows.flags.writeable = False
        return self._live_rows

    def positions(self, number: int) -> Rows:
        """Return 0 … number-1, read-only: the positions of a view in which every node is meant."""
        if len(self._positions) != number:
            self._positions = np.arange(number)
            self._positions.flags.writeable = False
        return self._positions

    def same_for_all(self, number: int, code: int) -> npt.NDArray[np.int32]:
        """Return so many times the same code, read-only."""
        if len(self._same) != number or (number and self._same[0] != code):
            self._same = np.full(number, code, np.int32)
            self._same.flags.writeable = False
        return self._same

    def live_names(self) -> LiveNames:
        """Return their names. The value does not change when the rows do."""
        if self._live_names is None:
            self._live_names = LiveNames(self)
        return self._live_names

    def _before_live_changes(self) -> None:
        """Call this before a row becomes live, or is no longer live."""
        if self._live_names is not None:
            self._live_names.copy()
        self._live_names = self._live_rows = None

    @property
    def gapless(self) -> bool:
        """True if every row is live. Then views need not select rows."""
        return self.live_count == self.size

    def touch(self, row: int) -> None:
        self.clock += 1
        self.version[row] = self.clock
        self._changed.append(row)
        if len(self._changed) > MOST_CHANGES:
            del self._changed[: MOST_CHANGES // 2]

    def few_changed_since(self, clock: int) -> list[int] | None:
        """Return the live rows that changed since then, in ascending order; None if that may be many."""
        number = self.clock - clock
        changed = self._changed
        if number > FEW_CHANGES or number >= len(changed):
            return None
        if number == 1:
            return [changed[-1]] if self.live[changed[-1]] else []
        return sorted({row for row in changed[len(changed) - number :] if self.live[row]})

    def changed_since(self, clock: int) -> Rows:
        """Return the live rows that changed since then, in ascending order."""
        few = self.few_changed_since(clock)
        if few is not None:
            return np.array(few, np.int64)
        changed: Rows = (self.version[: self.size] > clock).nonzero()[0]
        return changed[self.live[changed]]

    def _grow(self) -> None:
        for group in (self.allocatable, self.requested, self.presumed):
            for name, column in group.items():
                group[name] = longer(column, self.capacity)
        for name in ("live", "unschedulable", "taint_code", "feature_code", "version", "node_version"):
            setattr(self, name, longer(getattr(self, name), self.capacity))
        for label in self.labels.values():
            label.codes = longer(label.codes, self.capacity)
        self.nodes += [None] * (self.capacity - len(self.nodes))

    # -- resources

    def resource(self, name: str) -> None:
        """Make columns for a resource, if there are none."""
        if name not in self.allocatable:
            self.allocatable[name] = np.zeros(self.capacity, np.int64)
            self.requested[name] = np.zeros(self.capacity, np.int64)

    def take(self, row: int, amounts: tuple[tuple[str, int], ...], presumed: tuple[int, int], sign: int) -> None:
        """Add (sign 1) or subtract (sign -1) the amounts that a pod takes."""
        requested = self.requested
        for name, amount in amounts:
            column = requested.get(name)
            if column is None:
                self.resource(name)
                column = requested[name]
            # Through Python's integers and back into 64 bits: sums too large wrap around, as they do in Go.
            column[row] = _wrapped(int(column[row]) + sign * amount)
        for name, amount in zip(("cpu", "memory"), presumed, strict=True):
            column = self.presumed[name]
            column[row] = _wrapped(int(column[row]) + sign * amount)
        self.touch(row)

    def free_in_all(self, name: str) -> int:
        """Return the free amount of a resource on all nodes together."""
        if name not in self.allocatable:
            return 0
        free = (self.allocatable[name] - self.requested[name])[: self.size][self.live[: self.size]]
        return int(np.maximum(free, 0).sum())

    def shift(self, rows: Rows, amounts: Mapping[str, Ints], presumed: Mapping[str, Ints], sign: int) -> None:
        """Change the requested amounts of many rows at once; no row may occur twice."""
        for name, amount in amounts.items():
            self.requested[name][rows] += sign * amount
        for name, amount in presumed.items():
            self.presumed[name][rows] += sign * amount

    # -- the node object

    def put(self, row: int, node: Node | None) -> None:
        """Set the node of a row; None: the node is deleted. A heartbeat changes no column.

        Annotations and conditions are in no column, but a plugin whose answers are kept for the row may have read them.
        """
        old = self.nodes[row]
        if old is not None and node is not None and _same(old, node):
            self.nodes[row] = node
            if old.annotations != node.annotations or old.status.conditions != node.status.conditions:
                self.touch(row)
                self.node_version[row] = self.node_clock = self.clock
            return
        if old is not None:
            self._remove_images(row, old)
        was_live, is_live = old is not None, node is not None
        if was_live != is_live:
            self._before_live_changes()
        self.nodes[row] = node
        self.live[row] = is_live
        self.live_count += is_live - was_live
        shown = node if node is not None else _NO_NODE
        self._put_allocatable(row, shown)
        self._put_interned(row, shown)
        self.unschedulable[row] = shown.spec.unschedulable
        for key, column in self.labels.items():
            column.put(row, shown.labels.get(key))
        self._count_label_keys(_NO_NODE if old is None else old, shown)
        if node is not None:
            self._add_images(row, node)
        self.touch(row)
        self.node_version[row] = self.node_clock = self.clock

    def _put_allocatable(self, row: int, node: Node) -> None:
        offered = _offered(node.status.allocatable)
        for name in offered.keys() - self.allocatable.keys():
            self.resource(name)
        for name, column in self.allocatable.items():
            column[row] = offered.get(name, 0)

    def _count_label_keys(self, old: Node, new: Node) -> None:
        if old.labels.keys() == new.labels.keys():
            return
        self.label_keys.update(new.labels.keys())
        for key in old.labels:
            self.label_keys[key] -= 1
            if not self.label_keys[key]:
                del self.label_keys[key]

    def _put_interned(self, row: int, node: Node) -> None:
        taints, features = int(self.taint_code[row]), int(self.feature_code[row])
        self.taint_code[row] = self.taints.hold(node.taints)
        self.feature_code[row] = self.features.hold(frozenset(node.status.declared_features))
        if taints:
            self.taints.release(taints)
        if features:
            self.features.release(features)

    def _add_images(self, row: int, node: Node) -> None:
        for image in node.status.images:
            for name in image.names:
                self.images.setdefault(name, Image(image.size_bytes)).rows[row] = None

    def _remove_images(self, row: int, node: Node) -> None:
        for image in node.status.images:
            for name in image.names:
                held = self.images.get(name)
                if held is not None:
                    held.rows.pop(row, None)
                    if not held.rows:
                        del self.images[name]

    # -- labels

    def label_of(self, name: str, key: str) -> str:
        """Return the value of one node's label; empty without the label, or without the node."""
        row = self.row_of.get(name)
        node = None if row is None else self.nodes[row]
        return "" if node is None else node.labels.get(key, "")

    def label(self, key: str) -> LabelColumn:
        """Return the column of a label key. The first question about a key makes the column."""
        column = self.labels.get(key)
        if column is None:
            column = LabelColumn(self.capacity)
            for row in self.live_rows().tolist():
                node = self.nodes[row]
                if node is not None and (value := node.labels.get(key)) is not None:
                    column.put(row, value)
            self.labels[key] = column
            if len(self.labels) > MOST_LABEL_COLUMNS:
                self.labels.popitem(last=False)[1].version += 1  # it is no longer kept up to date
        else:
            self.labels.move_to_end(key)
        return column


def _same(old: Node, new: Node) -> bool:
    """True if the columns of both are the same."""
    before, after = old.status, new.status
    return (
        old.labels == new.labels
        and old.spec == new.spec
        and before.allocatable == after.allocatable
        and before.images == after.images
        and before.declared_features == after.declared_features
    )


def _wrapped(number: int) -> int:
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def _offered(allocatable: Mapping[str, str]) -> dict[str, int]:
    return {
        name: quantity.of(name, text)
        for name, text in allocatable.items()
        if name == "pods" or requests.is_counted(name)
    }
