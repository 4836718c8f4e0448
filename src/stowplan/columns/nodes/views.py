"""What plugins see: read-only columns of some nodes, and the whole cluster. A view is valid for one decision.

`Nodes` has the nodes that a plugin is asked about; all its columns have the same order. `nodes.cluster` has the whole
cluster, so that the score of a few nodes can be relative to all. Row numbers are internal: in a view, nodes have the
positions 0 … len(nodes)-1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from stowplan.columns.arrays import Bools, Ints, Rows
from stowplan.columns.assumed_objects import AssumedObjects
from stowplan.columns.held.held_room import HeldRoom
from stowplan.columns.nodes.column_types import Free, Interned, Labels, NameColumn, Resources
from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.table import ABSENT
from stowplan.columns.pods.carried_sums import CarriedSum
from stowplan.columns.pods.match_counts import Settled, WeightedQueries, WeightedSum
from stowplan.columns.state import ClusterState, PlacedPod
from stowplan.columns.tally import DomainCounts, Tally
from stowplan.objects.affinity import AffinityTerm, PodQuery, WeightedTerm
from stowplan.objects.lazy_value import lazy_value
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import NodeTerm, Selector, field_matches
from stowplan.objects.shape import Use
from stowplan.objects.taints import Taint
from stowplan.objects.workloads import Namespace, Service

AnyObject = TypeVar("AnyObject", bound=Object)


class Nodes:
    """Some nodes as read-only columns: each column has one entry per node, all in the same order.

    too_small = nodes.allocatable["cpu"] < 4000          # cpu in thousandths, memory in bytes
    in_zone_a = nodes.label("topology.kubernetes.io/zone") == "a"
    crowded = nodes.count(pods_with({"app": "web"})) >= 3
    fewest = nodes.cluster.nodes.count(query).min()      # of all nodes, not only these
    """

    def __init__(self, state: ClusterState, rows: Rows, whole: bool, cluster: Cluster) -> None:
        self.cluster = cluster
        self.rows = rows  # internal to this package
        self._state = state
        self._table = state.table
        self._whole = whole
        self._gathered: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total(self) -> int:
        """The number of all nodes of the cluster, in this view or not."""
        return len(self.cluster.nodes)

    # -- columns

    @property
    def name(self) -> NameColumn:
        return NameColumn(self)

    @lazy_value
    def names(self) -> list[str]:
        names = self._table.names
        return [names[row] for row in self.rows.tolist()]

    @property
    def allocatable(self) -> Resources:
        """The allocatable amounts of each node, by resource."""
        return Resources(self, self._table.allocatable)

    @property
    def requested(self) -> Resources:
        """The amounts that pods and held room take, by resource; `pods` is the number of pods."""
        return Resources(self, self._table.requested)

    @property
    def presumed(self) -> Resources:
        """The same for cpu and memory, with a default for containers without a request (kube: NonZeroRequested)."""
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
        """Return the column of a label's values."""
        return Labels(self, key, self._table.label(key))

    # -- labels

    def matching(self, selector: Selector) -> Bools:
        """True for nodes whose labels meet every condition."""
        met = np.ones(len(self), np.bool_)
        for requirement in selector:
            met &= self.label(requirement.key).meets(requirement)
        return met

    def matching_any(self, terms: Iterable[NodeTerm]) -> Bools:
        """True for nodes that meet at least one node-selector term."""
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

    # -- pods

    def count(self, *queries: PodQuery, settled: Settled = False) -> Ints:
        """Return how many pods on each node match all of these queries; see `MatchCounter` for `settled`."""
        return self.counts_of(self._state.count(*queries, settled=settled))

    def counts_of(self, tally: Tally) -> Ints:
        """Return a tally's count for each node."""
        counts = tally.on(slice(0, len(self)) if self._whole else self.rows, self._table.capacity)
        counts.flags.writeable = False
        return counts

    def used(self, use: Use) -> Tally | None:
        """Return how many pods use a port, a claim or a disk; None if no pod does."""
        return self._state.uses.tallies.get(use)

    def image(self, name: str) -> Ints:
        """Return an image's size times the share of nodes that have it, for nodes that have it; 0 for others."""
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
        """The same object while the same nodes have the same positions: a key for caches."""
        return self.rows

    def where(self, these: Bools | Ints) -> Nodes:
        """Return a view of fewer nodes: those of a mask, or at these positions, which must ascend."""
        return Nodes(self._state, self.rows[these], False, self.cluster)

    def positions_of_all(self) -> Rows:
        """Return the positions of all nodes of this view."""
        return self._table.positions(len(self.rows))

    def position(self, name: str) -> int | None:
        """Return the position of a node in this view; None if it is not here."""
        row = self._table.row_of.get(name)
        if row is None or self._whole:  # no row is skipped, so a row's number is its position
            return row if row is not None and row < len(self.rows) else None
        found = int(np.searchsorted(self.rows, row))
        return found if found < len(self.rows) and self.rows[found] == row else None

    def positions(self, names: Iterable[str]) -> dict[str, int]:
        """Return the positions of those of these nodes that are in this view."""
        row_of, size = self._table.row_of, len(self.rows)
        if self._whole:
            return {name: row for name in names if (row := row_of.get(name, size)) < size}
        rows = {name: there for name in names if (there := row_of.get(name)) is not None}
        found = np.searchsorted(self.rows, list(rows.values())).tolist() if rows else []
        at = zip(rows.items(), found, strict=True)
        return {name: position for (name, row), position in at if position < size and self.rows[position] == row}

    def __iter__(self) -> Iterator[OneNode]:
        return (OneNode(self._state, row) for row in self.rows.tolist())

    def __getitem__(self, position: int) -> OneNode:
        return OneNode(self._state, int(self.rows[position]))

    def pick(self, column: Any) -> Any:
        """Return a column of the table for these nodes, read-only."""
        if self._whole:
            picked = column[: len(self.rows)]
        else:
            held = self._gathered.get(id(column))
            if held is not None and held[0] is column:
                return held[1]
            picked = column.take(self.rows, 0)  # half the time of an index
            self._gathered[id(column)] = (column, picked)  # with the column itself, so that its id is not reused
        picked.flags.writeable = False
        return picked

    def copy_of(self, column: Any) -> Any:
        """Return a copy of a column of the table for these nodes."""
        return column[: len(self.rows)].copy() if self._whole else column.take(self.rows, 0)

    def over_all_rows(self, mask: Bools) -> Ints:
        """Return a mask of these nodes as 0 and 1 over all rows of the table, for `Tally.by_code`."""
        spread = np.zeros(self._table.capacity, np.int64)
        spread[self.rows] = mask
        return spread


class Cluster:
    """The whole cluster: all nodes, all objects, and counts per topology domain.

        cluster.nodes.count(query).min()            # over all nodes, not only those that a filter is asked about
        cluster.get(TeamBudget, "default/web")      # an object that the plugin declares in `reads`
        cluster.now                                 # the scheduler's clock in seconds

    `notes` is for values that a plugin hands from one step of a decision to the next, by the plugin's name. They last
    for one decision, including its trials.
    """

    def __init__(
        self,
        state: ClusterState,
        notes: dict[str, Any] | None = None,
        node_for: Callable[[Pod], str | None] | None = None,
    ) -> None:
        self._state, self._node_for = state, node_for
        self.notes: dict[str, Any] = {} if notes is None else notes

    @property
    def state(self) -> ClusterState:
        """The state itself, for plugins that come with Stowplan: they change it in `reserve` and `unreserve`."""
        return self._state

    @lazy_value
    def nodes(self) -> Nodes:
        table = self._state.table
        return Nodes(self._state, table.live_rows(), table.gapless, self)

    # -- objects

    def get(self, kind: type[AnyObject], key: str) -> AnyObject | None:
        """Return an object by `namespace/name`, or by name if its kind has no namespace."""
        return self._state.store.get(kind, key)

    def every(self, kind: type[AnyObject]) -> Mapping[str, AnyObject]:
        return self._state.store.every(kind)

    @property
    def assumed(self) -> AssumedObjects:
        """The assumed objects, and what the API server says of them; for reading only."""
        return self._state.assumed

    def held_room(self, kind: type[Object]) -> HeldRoom:
        """Return the room that objects of a kind hold for pods that do not exist yet; for reading only."""
        room = self._state.held_rooms.get(kind)
        if room is None:
            raise LookupError(f"no plugin holds room for {kind.__name__} here: `Profile.attach` must be called first")
        return room

    @property
    def now(self) -> float:
        """The time of the scheduler's clock in seconds; only differences have a meaning."""
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

    def pod(self, uid: str) -> PlacedPod | None:
        """Return a pod on a node, or assumed to be on one."""
        return self._state.pods.get(uid)

    def node_for(self, pod: Pod) -> str | None:
        """Return where a pod that has a node would go if it were scheduled again now, by all plugins of its profile.

        None: nowhere. This is a decision; only `reconcile` may ask.
        """
        if self._node_for is None:
            raise LookupError("only `reconcile` may ask where a pod would go")
        return self._node_for(pod)

    def known_pod(self, uid: str) -> Pod | None:
        """Return a pod of the API server, with or without a node; None if it has ended or is deleted."""
        return self._state.known_pods.get(uid)

    def is_ours(self, pod: Pod) -> bool:
        """True if this scheduler places the pod."""
        return pod.scheduler_name in self._state.scheduler_names

    def known_pods(self) -> Iterable[Pod]:
        """Return all pods of the API server that have not ended, with or without a node."""
        return self._state.known_pods.values()

    def last_node(self, uid: str) -> str | None:
        """Return the last node of a pod that ended or was deleted, "" if it had none; None if that is not known."""
        return self._state.last_nodes.get(uid)

    def pod_label_values(self, key: str) -> set[str]:
        """Return the values that a label has on pods on nodes. This is slow: not for decisions."""
        return self._state.match_counts.values(key)

    def node_names_of(self, tally: Tally) -> list[str]:
        """Return the nodes where a tally's count is not 0."""
        return [self._state.table.names[row] for row in tally.sparse()[0].tolist()]

    def has_image(self, name: str) -> bool:
        return name in self._state.table.images

    # -- counts

    def query(self, term: AffinityTerm) -> PodQuery:
        """Return the query of an incoming pod's affinity term: which pods on nodes match it?"""
        return self._state.query(term)

    def count(self, *queries: PodQuery, settled: Settled = False) -> Tally:
        return self._state.count(*queries, settled=settled)

    def weigh(self, queries: WeightedQueries) -> WeightedSum:
        """Return how many pods match one of these queries, and with which weight, per row."""
        return self._state.weigh(queries)

    @property
    def nomination_count(self) -> int:
        """How many pods are nominated to a node."""
        return len(self._state.nominated_pods)

    def pending_count(self, query: PodQuery) -> int:
        """Return how many pods without a node match a query. Pods that are assumed to be on one are not among them."""
        return self._state.pending_pods.count(query)

    def existing_count(self, query: PodQuery, *, with_pod: Pod | None = None) -> int:
        """Return how many pods match, with or without a node. Terminating ones do not count.

        `with_pod`: this one counts, even if the cluster does not know it or a trial took it away.
        """
        known = with_pod is None or with_pod.uid in self._state.pods or self._state.pending_pods.waits(with_pod.uid)
        return self.count(query, settled="always").total + self.pending_count(query) + (not known)

    def pending_pods(self, condition: Callable[[Pod], bool]) -> list[Pod]:
        """Return the pods without a node that meet a condition: a function of the pod alone, the same in every call."""
        return self._state.pending_pods.meeting(condition)

    def used(self, use: Use) -> Tally | None:
        return self._state.uses.tallies.get(use)

    def terms_matching(self, sort: str, pod: Pod) -> Iterator[tuple[AffinityTerm | WeightedTerm, Tally]]:
        return self._state.terms_matching(sort, pod)

    def carried_sums(self, sort: str, pod: Pod) -> Iterator[CarriedSum]:
        """Yield the affinity terms of pods on nodes that match this pod, added up if there are many."""
        return self._state.carried_sums(sort, pod)

    def domain_counts(self, tally: Tally, key: str) -> DomainCounts:
        """Return the number of rows for each pair of a label's code and a tally's count."""
        column = self._state.table.label(key)
        return tally.domain_counts(column, len(column.values), self._state.table.capacity)

    def has_label(self, key: str) -> bool:
        """True if a node has a label of this key. A question about any other key would make a column for it."""
        return key in self._state.table.label_keys

    def by_domain(self, tally: Tally, key: str, among: Ints | None = None, *, unlabelled: bool = False) -> Ints:
        """Return a tally's sum for each value of a topology key, indexed by `nodes.label(key).codes`.

        Entry 0 is for nodes without the label; it is 0 unless `unlabelled`.
        """
        column = self._state.table.label(key)
        if unlabelled and among is None:  # rows without a node have no label either
            among = self.nodes.over_all_rows(np.ones(len(self.nodes), np.bool_))
        distinct = column.distinct and not unlabelled
        if among is None and not distinct:
            sums = tally.by_column(column, len(column.values))
        else:
            sums = tally.by_code(column.codes, len(column.values), among, distinct=distinct)
        if not unlabelled:
            sums[ABSENT] = 0
        return sums
