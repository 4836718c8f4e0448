"""The state of the cluster: nodes, pods on nodes (bound or assumed), held room and other objects, kept up to date.

    apply(change)           a change that the API server reports
    add_pod, remove_pod     a pod is, or is assumed to be, on a node; or not any more
    hold, release           room on a node is held under a name
    hold_as, held_rooms     room held for pods that do not exist yet, as objects of a plugin's kind say (`held/`)
    nominated_pods          pods that are nominated to a node
    assumed                 objects that are assumed to differ from what the API server last said, on behalf of pods
    trial()                 any of these as a what-if, undone exactly (`trial.py`)

Every change costs what it changes. Finished pods take no room. A pod without a node counts only if it is nominated.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from stowplan.columns.assumed_objects import AssumedObjects
from stowplan.columns.devices.devices import Devices
from stowplan.columns.held.held_room import FEW, HeldRoom
from stowplan.columns.held.source import HoldingSource
from stowplan.columns.nodes.answer_cache import AnswerCache
from stowplan.columns.nodes.node_scores import NodeScores
from stowplan.columns.nodes.table import NodeTable
from stowplan.columns.object_store import ObjectStore
from stowplan.columns.pods.carried_sums import CarriedSum
from stowplan.columns.pods.match_counts import LabelSet, MatchCounts, Settled, WeightedQueries, WeightedSum
from stowplan.columns.pods.nominated_pods import NominatedPods
from stowplan.columns.pods.pending import PendingPods
from stowplan.columns.pods.ranked_pods import RankedPods
from stowplan.columns.pods.uses import Uses
from stowplan.columns.tally import Tally
from stowplan.columns.trial import Trial
from stowplan.objects.affinity import AffinityTerm, PodQuery, WeightedTerm
from stowplan.objects.changes import Change, Gone, Put
from stowplan.objects.lazy_value import lazy_value
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.shape import Shape
from stowplan.objects.workloads import Namespace

MOST_QUERIES = 1024  # that are kept for terms with a namespace selector
MOST_LAST_NODES = 10_000
NO_CONTEXT = nullcontext()


class PlacedPod:
    """A pod on a node, and where it is counted."""

    __slots__ = ("labels", "pod", "row", "shape")

    def __init__(self, pod: Pod, row: int, shape: Shape, labels: LabelSet) -> None:
        self.pod, self.row, self.shape, self.labels = pod, row, shape, labels


class ClusterState:
    def __init__(self) -> None:
        self.table = NodeTable()
        self.store = ObjectStore()
        self.match_counts = MatchCounts()
        self.answer_cache = AnswerCache()
        self.node_scores = NodeScores()
        self.pending_pods = PendingPods()
        self.pods: dict[str, PlacedPod] = {}  # pods on nodes, by uid
        self.pods_on: list[dict[str, PlacedPod]] = []  # the same by row
        self.ranked_pods = RankedPods(self.pods_on)  # the same as arrays, for dry runs
        self.known_pods: Mapping[str, Pod] = {}  # all pods of the API server, by uid; the scheduler sets and updates it
        self.scheduler_names: Container[str] = ()  # whose pods we place; the scheduler sets it
        self.last_nodes: OrderedDict[str, str] = OrderedDict()  # of the pods that ended or were deleted last, by uid
        self.priorities: Counter[int] = Counter()  # the number of pods on nodes, by priority
        self.held: dict[str, tuple[str, dict[str, int]]] = {}  # node and amounts, by name
        self.held_rooms: dict[type[Object], HeldRoom] = {}  # by the kind of object that holds room
        self.now = 0.0  # the caller's clock, when it last reported a change
        self.clock_began = 0.0  # when the caller's clock showed 0, in seconds since the epoch
        self.deciding: frozenset[str] = frozenset()  # uids of the members of the group that is being decided
        self._queries: dict[AffinityTerm, PodQuery] = {}  # of terms with a namespace selector, as of `_queries_at`
        self._queries_at = -1
        self._journal: list[Callable[[], object]] | None = None
        self.uses = Uses(self.table, self._journaled)
        self.nominated_pods = NominatedPods(self._journaled)
        self.assumed = AssumedObjects(self.store, self.put, self.discard, self._journaled)

    @property
    def wall_time(self) -> float:
        """The time in seconds since the epoch, to be compared with times in objects."""
        return self.clock_began + self.now

    @lazy_value
    def devices(self) -> Devices:
        """The devices in resource slices; they are followed from the first question on."""
        return Devices(self.store)

    # -- changes

    def apply(self, change: Change) -> None:
        found = change.object
        match found:
            case Pod():
                self._apply_pod(found, gone=isinstance(change, Gone))
            case Node():
                self._put_node(found.name, found if isinstance(change, Put) else None)
            case _ if isinstance(change, Put):
                self.put(self.assumed.observed(found))
            case _:
                self.assumed.deleted(found)
                self.discard(found)

    def _apply_pod(self, pod: Pod, gone: bool) -> None:
        self.pending_pods.update(pod, gone)
        placed = self.pods.get(pod.uid)
        if placed is not None and not gone and self._counts_alike(placed, pod):
            placed.pod = pod
            self.ranked_pods.forget(placed.row)  # it may have started only now
            self.nominated_pods.drop(pod.uid)
            return
        if placed is not None:
            self.remove_pod(pod.uid)
        self.nominated_pods.drop(pod.uid)
        if gone or pod.finished:
            self.last_nodes[pod.uid] = pod.node_name
            if len(self.last_nodes) > MOST_LAST_NODES:
                self.last_nodes.popitem(last=False)
        elif pod.node_name:
            self.add_pod(pod, pod.node_name)
        elif pod.nominated_node:
            self.nominated_pods.add(pod, pod.nominated_node)
        if self._journal is None:
            self.match_counts.drop_unasked(len(self.pods))

    def _counts_alike(self, placed: PlacedPod, pod: Pod) -> bool:
        """True if the pod, as the API server tells of it now, changes no column: it was assumed like this, say."""
        old = placed.pod
        return (
            self.table.names[placed.row] == pod.node_name
            and pod.shape is placed.shape
            and pod.labels == old.labels
            and pod.priority == old.priority
            and pod.terminating == old.terminating
            and pod.of_daemon_set == old.of_daemon_set
            and not pod.finished
            and not self.held_rooms
            and self._journal is None
        )

    def _put_node(self, name: str, node: Node | None) -> None:
        row = self._row(name)
        before = self.table.nodes[row]
        self.table.put(row, node)
        self._journaled(lambda: self._put_node(name, before))
        self._free_if_unused(row)

    # -- pods on nodes

    def add_pod(self, pod: Pod, node_name: str, *, as_extension: bool = False) -> None:
        """Put the pod on this node and on no other. `as_extension`: count as kube's PreFilter extensions do."""
        if pod.uid in self.pods:
            self.remove_pod(pod.uid, as_extension=as_extension)
        self.nominated_pods.drop(pod.uid)
        row, shape = self._row(node_name), pod.shape
        self._place(pod, row, shape, as_extension)
        self._journaled(lambda: self._displace(pod.uid, as_extension))
        self.uses.add_ports(shape, row, +1, as_set=as_extension)
        for room in self.held_rooms.values():
            room.pod_added(pod, node_name)

    def remove_pod(self, uid: str, *, as_extension: bool = False) -> None:
        placed = self.pods[uid]
        pod, shape, name = placed.pod, placed.shape, self.table.names[placed.row]
        for room in self.held_rooms.values():
            room.pod_removed(uid)
        self.uses.add_ports(shape, placed.row, -1, as_set=as_extension)
        self._displace(uid, as_extension)
        self._journaled(lambda: self._place(pod, self._row(name), shape, as_extension))

    def _place(self, pod: Pod, row: int, shape: Shape, as_extension: bool) -> None:
        self.priorities[pod.priority] += 1
        self.pending_pods.placed(pod.uid)
        labels = self.match_counts.add(pod, row, self.table.capacity, as_extension)
        self.pods[pod.uid] = self.pods_on[row][pod.uid] = PlacedPod(pod, row, shape, labels)
        self.ranked_pods.forget(row)
        self.table.take(row, shape.taken, shape.presumed, +1)
        for use in shape.uses:
            self.uses.add(use, row, +1)

    def _displace(self, uid: str, as_extension: bool) -> None:
        placed = self.pods.pop(uid)
        self.pending_pods.displaced(uid)
        row, shape = placed.row, placed.shape
        self.priorities[placed.pod.priority] -= 1
        if not self.priorities[placed.pod.priority]:
            del self.priorities[placed.pod.priority]
        del self.pods_on[row][uid]
        self.ranked_pods.forget(row)
        self.match_counts.remove(placed.pod, placed.labels, self.table.capacity, as_extension)
        self.table.take(row, shape.taken, shape.presumed, -1)
        for use in shape.uses:
            self.uses.add(use, row, -1)
        self._free_if_unused(row)

    def _row(self, name: str) -> int:
        row = self.table.row(name)
        while len(self.pods_on) <= row:
            self.pods_on.append({})
        return row

    def _free_if_unused(self, row: int) -> None:
        if not self.table.live[row] and not self.pods_on[row] and not self._has_holds(row):
            self.table.free(row)

    def _has_holds(self, row: int) -> bool:
        name = self.table.names[row]
        return any(node == name for node, _ in self.held.values())

    # -- held room

    def hold(self, name: str, node_name: str, amounts: Mapping[str, int]) -> None:
        """Hold room on a node under a name. It replaces what was held under the same name."""
        if name in self.held:
            self.release(name)
        row = self._row(node_name)
        self.held[name] = (node_name, dict(amounts))
        self.table.take(row, tuple(amounts.items()), (amounts.get("cpu", 0), amounts.get("memory", 0)), +1)
        self._journaled(lambda: self.release(name))

    def release(self, name: str) -> None:
        node_name, amounts = self.held.pop(name)
        row = self.table.row_of[node_name]
        self.table.take(row, tuple(amounts.items()), (amounts.get("cpu", 0), amounts.get("memory", 0)), -1)
        self._journaled(lambda: self.hold(name, node_name, amounts))
        self._free_if_unused(row)

    def released(self, names: Iterable[str]) -> AbstractContextManager[object]:
        """Return a context in which the room held under these names is free; it is held again afterwards."""
        return self._released(names) if names else NO_CONTEXT

    @contextmanager
    def _released(self, names: Iterable[str]) -> Iterator[None]:
        with self.trial():
            for name in names:
                if name in self.held:
                    self.release(name)
            yield

    # -- room held for pods that do not exist yet

    def hold_as(self, source: HoldingSource) -> None:
        """Hold room as objects of this source's kind say. A kind has one source: the first one registered."""
        if source.kind in self.held_rooms:
            return
        if self._journal is not None:
            raise RuntimeError("a trial cannot undo that room is held for another kind of object")
        room = self.held_rooms[source.kind] = HeldRoom(source, self.held, self.hold, self.release, self._journaled)
        for placed in self.pods.values():
            room.pod_added(placed.pod, self.table.names[placed.row])
        for found in self.store.every(source.kind).values():
            room.put(found)

    def offers(self, pod: Pod, most: int | None = FEW) -> tuple[list[str], bool]:
        """Return names under which room is held that this pod may take, at most so many of each kind; and if there are
        more.
        """
        if not self.held_rooms:
            return [], False
        found = [room.offers(pod, most) for room in self.held_rooms.values()]
        return [name for names, _ in found for name in names], any(more for _, more in found)

    @property
    def holds_room(self) -> bool:
        """True if there is an object that may hold room."""
        return any(self.store.every(kind) for kind in self.held_rooms)

    # -- other objects

    def put(self, found: Object) -> None:
        """Add or replace an object; in a trial, assume that it is like this."""
        before = self.store.put(found)
        self._journaled(lambda: self.discard(found) if before is None else self.put(before))
        room = self.held_rooms.get(type(found))
        if room is not None:
            room.put(found)

    def discard(self, found: Object) -> None:
        before = self.store.remove(found)
        if before is not None:
            self._journaled(lambda: self.put(before))
        room = self.held_rooms.get(type(found))
        if room is not None:
            room.drop(found.key)

    # -- questions

    def query(self, term: AffinityTerm) -> PodQuery:
        """Return the query of an incoming pod's affinity term: which pods on nodes match it?"""
        if term.namespace_selector is None:
            return term.query({})
        if self._queries_at != self.store.version_of(Namespace):
            self._queries, self._queries_at = {}, self.store.version_of(Namespace)
        query = self._queries.get(term)
        if query is None:
            if len(self._queries) >= MOST_QUERIES:
                self._queries.clear()
            query = self._queries[term] = term.query(self.namespace_labels())
        return query

    def namespace_labels(self) -> dict[str, Mapping[str, str]]:
        return {name: namespace.labels for name, namespace in self.store.every(Namespace).items()}

    def count(self, *queries: PodQuery, settled: Settled = False) -> Tally:
        """Return how many pods match all of these queries, per row. The count is kept up to date from then on."""
        counter, is_new = self.match_counts.ask(queries, settled, self.table.capacity)
        if is_new:
            # A counter made in a trial has seen the pods of the trial, so it ends with the trial.
            self._journaled(lambda: self.match_counts.drop(counter))
        return counter.tally

    def weigh(self, queries: WeightedQueries) -> WeightedSum:
        """Return how many pods match one of these queries and with which weight, per row, kept up to date as well."""
        found, is_new = self.match_counts.weigh(queries, self.table.capacity)
        if is_new:
            self._journaled(lambda: self.match_counts.drop_sum(found))
        return found

    def uids_of(self, query: PodQuery) -> list[str]:
        """Return the pods on nodes that match, by uid, terminating ones included."""
        return self.match_counts.members(query)

    def terms_matching(self, sort: str, pod: Pod) -> Iterator[tuple[AffinityTerm | WeightedTerm, Tally]]:
        """Yield the affinity terms of pods on nodes that match this pod, and how many pods have each, per row."""
        if self.uses.terms:
            for use, tally in self.uses.terms.matching(sort, pod, self.labels_of(pod.namespace)):
                carried = use[1]
                assert isinstance(carried, AffinityTerm | WeightedTerm)
                yield carried, tally

    def carried_sums(self, sort: str, pod: Pod) -> Iterator[CarriedSum]:
        """Yield the same, with the terms of a topology key added up if there are many."""
        if self.uses.terms:
            yield from self.uses.terms.sums(sort, pod, self.labels_of(pod.namespace), self.table.capacity)

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        """Return the labels of a namespace."""
        found = self.store.get(Namespace, namespace)
        return {} if found is None else found.labels

    # -- what if

    def trial(self) -> Trial:
        return Trial(self)

    def _journaled(self, undo: Callable[[], object]) -> None:
        if self._journal is not None:
            self._journal.append(undo)
