"""What plugins see: read-only columns of some rows, and the cluster around them. Good for one decision.

`Nodes` covers the rows that a plugin is asked about, all its columns in the same order. `nodes.cluster` answers for the
whole cluster, so that a score of a few rows can be relative to all. Row numbers never leave this room: inside a view,
rows are positions 0 … len(nodes)-1.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from stowplan.columns.arrays import Bools, Ints, Rows
from stowplan.columns.assumed_objects import AssumedObjects
from stowplan.columns.held.held_room import HeldRoom
from stowplan.columns.nodes.column_types import Free, Interned, Labels, NameColumn, Resources
from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.table import ABSENT
from stowplan.columns.pods.match_counts import Settled
from stowplan.columns.state import ClusterState, Placed
from stowplan.columns.tally import DomainOrder, Tally
from stowplan.objects.affinity import AffinityTerm, PodQuery, WeightedTerm
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import NodeTerm, Selector, field_matches
from stowplan.objects.taints import Taint
from stowplan.objects.workloads import Namespace, Service

AnyObject = TypeVar("AnyObject", bound=Object)
Value = TypeVar("Value", bound=Hashable)


class Nodes:
    """Some nodes as columns."""

    def __init__(self, state: ClusterState, rows: Rows, whole: bool, cluster: Cluster) -> None:
        self.cluster = cluster
        self.rows = rows  # for the columns room; plugins have no use for them
        self._state = state
        self._table = state.table
        self._whole = whole
        self._gathered: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self.rows)

    # -- columns

    @property
    def name(self) -> NameColumn:
        return NameColumn(self)

    @cached_property
    def names(self) -> list[str]:
        names = self._table.names
        return [names[row] for row in self.rows.tolist()]

    @property
    def allocatable(self) -> Resources:
        """What each node offers, by resource."""
        return Resources(self, self._table.allocatable)

    @property
    def requested(self) -> Resources:
        """What pods on each node (and reservations) take, by resource; `pods` counts them."""
        return Resources(self, self._table.requested)

    @property
    def presumed(self) -> Resources:
        """cpu and memory taken, with something presumed for containers that request nothing."""
        return Resources(self, self._table.presumed)

    @property
    def free(self) -> Free:
        return Free(self)

    @property
    def unschedulable(self) -> Bools:
        return self.pick(self._table.unschedulable)  # type: ignore[no-any-return]

    @property
    def taints(self) -> Interned[tuple[Taint, ...]]:
        return Interned(self, self._table.taint_code, self._table.taints)

    @property
    def features(self) -> Interned[frozenset[str]]:
        return Interned(self, self._table.feature_code, self._table.features)

    def label(self, key: str) -> Labels:
        """A label's values, one per node."""
        return Labels(self, key, self._table.label(key))

    # -- questions about labels

    def matching(self, selector: Selector) -> Bools:
        """Nodes whose labels meet every condition."""
        met = np.ones(len(self), np.bool_)
        for requirement in selector:
            met &= self.label(requirement.key).meets(requirement)
        return met

    def matching_any(self, terms: Iterable[NodeTerm]) -> Bools:
        """Nodes that meet at least one node-selector term."""
        met = np.zeros(len(self), np.bool_)
        for term in terms:
            met |= self.matching_term(term)
        return met

    def matching_term(self, term: NodeTerm) -> Bools:
        met = self.matching(term.labels)
        for field in term.named:
            if field.key == "metadata.name":
                met &= (self.name == field.values[0]) == (field.operator == "In")
            elif not field_matches(field, {}):
                met[:] = False
        return met

    # -- questions about pods

    def count(self, *queries: PodQuery, settled: Settled = False) -> Ints:
        """How many pods on each node match all of these; `settled` leaves out those on their way out."""
        return self.of(self._state.count(*queries, settled=settled))

    def of(self, tally: Tally) -> Ints:
        """A tally's count for each node."""
        counts = tally.on(slice(0, len(self)) if self._whole else self.rows, self._table.capacity)
        counts.flags.writeable = False
        return counts

    def used(self, use: Hashable) -> Tally | None:
        """How many pods use a thing (a port, a claim, a disk); None if nobody does."""
        return self._state.uses.get(use)

    def image(self, name: str) -> Ints:
        """For nodes that hold an image: its size times the share of nodes that have it; 0 for others."""
        worth = np.zeros(len(self), np.int64)
        held = self._table.images.get(name)
        if held is not None:
            share = len(held.rows) / self._table.live_count
            by_row = np.zeros(self._table.capacity, np.int64)
            by_row[list(held.rows)] = int(held.size * share)
            worth = by_row[self.rows]
        return worth

    # -- rows

    @property
    def token(self) -> object:
        """The same object as long as the same nodes are at the same positions, for answers that are worth keeping."""
        return self.rows

    def where(self, these: Bools | Ints) -> Nodes:
        """The same view of fewer nodes: those of a mask, or at these places, which must ascend."""
        return Nodes(self._state, self.rows[these], False, self.cluster)

    def position(self, name: str) -> int | None:
        """Where in this view a node is, if it is here."""
        row = self._table.row_of.get(name)
        if row is None or self._whole:  # no row is skipped, so a row's number is its position
            return row if row is not None and row < len(self.rows) else None
        found = int(np.searchsorted(self.rows, row))
        return found if found < len(self.rows) and self.rows[found] == row else None

    def places(self, names: Iterable[str]) -> dict[str, int]:
        """The same for some, without those that are not here."""
        row_of, size = self._table.row_of, len(self.rows)
        if self._whole:
            return {name: row for name in names if (row := row_of.get(name, size)) < size}
        rows = {name: there for name in names if (there := row_of.get(name)) is not None}
        found = np.searchsorted(self.rows, list(rows.values())).tolist() if rows else []
        at = zip(rows.items(), found, strict=True)
        return {name: place for (name, row), place in at if place < size and self.rows[place] == row}

    def __iter__(self) -> Iterator[OneNode]:
        return (OneNode(self._state, row) for row in self.rows.tolist())

    def __getitem__(self, position: int) -> OneNode:
        return OneNode(self._state, int(self.rows[position]))

    def pick(self, column: Any) -> Any:
        """A column of the table, for these nodes, not to be written to."""
        if self._whole:
            picked = column[: len(self.rows)]
        else:
            held = self._gathered.get(id(column))
            if held is not None and held[0] is column:
                return held[1]
            picked = column[self.rows]
            self._gathered[id(column)] = (column, picked)  # the column is held so that its id stays its own
        picked.flags.writeable = False
        return picked

    def copied(self, column: Any) -> Any:
        """The same as an array of one's own, whatever becomes of the column."""
        return column[: len(self.rows)].copy() if self._whole else column[self.rows]

    def over_all_rows(self, mask: Bools) -> Ints:
        """A mask of these nodes as 0 and 1 over all rows of the table, for `Tally.by_code`."""
        spread = np.zeros(self._table.capacity, np.int64)
        spread[self.rows] = mask
        return spread


class Cluster:
    """The whole cluster: all nodes, all objects, and counts over domains.

    `notes` is for what a plugin wants to remember from one step of a decision to the next, under its own name; it lasts
    as long as the decision, what-ifs within it included.
    """

    def __init__(self, state: ClusterState, notes: dict[str, Any] | None = None) -> None:
        self._state = state
        self.notes: dict[str, Any] = {} if notes is None else notes

    @cached_property
    def nodes(self) -> Nodes:
        table = self._state.table
        return Nodes(self._state, table.live_rows(), table.gapless, self)

    # -- objects

    def get(self, kind: type[AnyObject], key: str) -> AnyObject | None:
        """An object by `namespace/name`, or by name if its kind has no namespace."""
        return self._state.store.get(kind, key)

    def every(self, kind: type[AnyObject]) -> Mapping[str, AnyObject]:
        return self._state.store.every(kind)

    @property
    def assumed(self) -> AssumedObjects:
        """What is assumed of objects, and what the API server says of them; for reading only."""
        return self._state.assumed

    def held_room(self, kind: type[Object]) -> HeldRoom:
        """Return the room that objects of a kind hold for pods that do not exist yet; for reading only."""
        room = self._state.held_rooms.get(kind)
        if room is None:
            raise LookupError(f"no plugin holds room for {kind.__name__} here: `Profile.attach` must be called first")
        return room

    @property
    def now(self) -> float:
        """The time by the scheduler's clock, in seconds from nowhere in particular: for measuring how long ago."""
        return self._state.now

    def services_of(self, pod: Pod) -> list[Service]:
        return self._state.store.services_of(pod)

    def namespace_labels(self, name: str) -> Mapping[str, str]:
        namespace = self.get(Namespace, name)
        return {} if namespace is None else namespace.labels

    # -- pods

    def pods_on(self, node_name: str) -> list[Pod]:
        row = self._state.table.row_of.get(node_name)
        return [] if row is None else [placed.pod for placed in self._state.pods_on[row].values()]

    def pod(self, uid: str) -> Placed | None:
        """A pod on a node, or taken for one."""
        return self._state.pods.get(uid)

    def known(self, uid: str) -> Pod | None:
        """A pod as the API has it, with or without a node; None for one that has ended or is gone."""
        return self._state.known.get(uid)

    def is_ours(self, pod: Pod) -> bool:
        """Is it for this scheduler to place?"""
        return pod.scheduler_name in self._state.served

    def everybody(self) -> Iterable[Pod]:
        """All pods that we were told of, whether they have a node or not."""
        return self._state.known.values()

    def left(self, uid: str) -> str | None:
        """The node of a pod that ended or went, empty if it never had one; None if that was not seen, or long ago."""
        return self._state.left.get(uid)

    def pod_label_values(self, key: str) -> set[str]:
        """The values that a label has on pods on nodes. It looks at each distinct label set: not for decisions."""
        return self._state.counting.values(key)

    def node_names_of(self, tally: Tally) -> list[str]:
        """The nodes where a tally counts any."""
        return [self._state.table.names[row] for row in tally.sparse()[0].tolist()]

    def has_image(self, name: str) -> bool:
        return name in self._state.table.images

    # -- counts

    def query(self, term: AffinityTerm) -> PodQuery:
        """The question that an incoming pod's affinity term asks about the pods that are there."""
        return self._state.query(term)

    def count(self, *queries: PodQuery, settled: Settled = False) -> Tally:
        return self._state.count(*queries, settled=settled)

    @property
    def promises(self) -> int:
        """How many pods without a node have been promised one."""
        return self._state.promises

    def waiting(self, query: PodQuery) -> int:
        """How many pods match that have no node yet."""
        return self._state.waiting.count(query)

    def pending_pods(self, condition: Callable[[Pod], bool]) -> list[Pod]:
        """Return the pods without a node that meet a condition: a function of the pod alone, the same in every call."""
        return self._state.waiting.meeting(condition)

    def used(self, use: Hashable) -> Tally | None:
        return self._state.uses.get(use)

    def carried(self, kind: str, pod: Pod) -> Iterator[tuple[AffinityTerm | WeightedTerm, Tally]]:
        return self._state.carried(kind, pod)

    def sorts(self, tally: Tally, key: str) -> DomainOrder:
        """All rows told apart by a label's code and by what a tally counts there."""
        table = self._state.table
        column = table.label(key)
        return tally.sorts(column, len(column.values), table.capacity)

    def by_domain(self, tally: Tally, key: str, among: Ints | None = None, *, unlabelled: bool = False) -> Ints:
        """A tally summed up per value of a topology key, indexed by `nodes.label(key).codes`.

        Entry 0 stands for nodes without the label; it stays 0 unless they are asked for (`unlabelled`).
        """
        column = self._state.table.label(key)
        if unlabelled and among is None:  # rows of nodes that are gone have no label either
            among = self.nodes.over_all_rows(np.ones(len(self.nodes), np.bool_))
        distinct = column.distinct and not unlabelled
        if among is None and not distinct:
            sums = tally.by_column(column, len(column.values))
        else:
            sums = tally.by_code(column.codes, len(column.values), among, distinct=distinct)
        if not unlabelled:
            sums[ABSENT] = 0
        return sums
