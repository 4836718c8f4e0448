"""The state of the cluster: the one model of bound, assumed and reserved pods, kept up to date change by change.

    apply(change)           what the API says: nodes, pods and other objects come, change and go
    add_pod, remove_pod     a pod is (assumed to be) on a node, or not
    hold, release           room on a node is reserved under a name
    hold_as, held_rooms     room held for pods that do not exist yet, as objects of a plugin's kind say (`held/`)
    assumed                 objects taken for other than the API says, on behalf of pods (`assumed.py`)
    trial()                 all of these as a what-if, undone exactly (`trial.py`)

Every change costs what it changes. Finished pods take no room; pods without a node count only if nominated to one.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext

from stowplan.columns.assumed_objects import AssumedObjects
from stowplan.columns.held.held_room import FEW, HeldRoom
from stowplan.columns.held.source import HoldingSource
from stowplan.columns.nodes.answer_cache import AnswerCache
from stowplan.columns.nodes.table import NodeTable
from stowplan.columns.object_store import ObjectStore
from stowplan.columns.pods.match_counts import LabelSet, MatchCounts, Settled
from stowplan.columns.pods.pending import PendingPods
from stowplan.columns.pods.selector_index import SelectorIndex
from stowplan.columns.tally import Tally
from stowplan.columns.trial import Trial
from stowplan.objects.affinity import AffinityTerm, PodQuery, WeightedTerm
from stowplan.objects.changes import Change, Gone, Put
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.shape import PREFERRED, REQUIRED, REQUIRED_ANTI, Shape
from stowplan.objects.workloads import Namespace

CARRIED = (REQUIRED_ANTI, REQUIRED, PREFERRED)
RECENT_QUERIES = 1024
REMEMBERED = 10_000  # pods that are gone
NOTHING = nullcontext()


class Placed:
    """A pod on a node, and where it is counted."""

    __slots__ = ("labels", "pod", "row", "shape")

    def __init__(self, pod: Pod, row: int, shape: Shape, labels: LabelSet) -> None:
        self.pod, self.row, self.shape, self.labels = pod, row, shape, labels


class ClusterState:
    def __init__(self) -> None:
        self.table = NodeTable()
        self.store = ObjectStore()
        self.counting = MatchCounts()
        self.kept = AnswerCache()
        self.waiting = PendingPods()
        self.pods: dict[str, Placed] = {}
        self.known: Mapping[str, Pod] = {}  # all pods by uid, as the API has them; kept by whoever follows it
        self.served: Container[str] = ()  # the schedulerNames of pods that are ours to place; kept by whoever does
        self.left: OrderedDict[str, str] = OrderedDict()  # where the last pods that went had been, by uid
        self.priorities: Counter[int] = Counter()  # how many pods on nodes have each priority
        self.pods_on: list[dict[str, Placed]] = []
        self.uses: dict[Hashable, Tally] = {}
        self.terms: SelectorIndex[Hashable] = SelectorIndex()
        self.nominated: dict[str, dict[str, Pod]] = {}
        self.held: dict[str, tuple[str, dict[str, int]]] = {}
        self._nominations: dict[str, str] = {}
        self.firm: dict[str, None] = {}  # uids of those whose promise is
        self._queries: dict[AffinityTerm, PodQuery] = {}  # terms that pick namespaces by label, as of `_queries_at`
        self._queries_at = -1
        self._journal: list[Callable[[], object]] | None = None
        self.assumed = AssumedObjects(self.store, self.put, self._journaled)
        self.held_rooms: dict[type[Object], HeldRoom] = {}  # by the kind of object that holds room
        self.now = 0.0  # the caller's clock, when it last told us anything

    # -- changes

    def apply(self, change: Change) -> None:
        found = change.object
        match found:
            case Pod():
                self._apply_pod(found, gone=isinstance(change, Gone))
            case Node():
                self._apply_node(found, gone=isinstance(change, Gone))
            case _ if isinstance(change, Put):
                self.put(self.assumed.hear(found))
            case _:
                self.assumed.drop(found)
                self.discard(found)

    def _apply_pod(self, pod: Pod, gone: bool) -> None:
        self.waiting.heard(pod, gone)
        if pod.uid in self.pods:
            self.remove_pod(pod.uid)
        self.drop_nomination(pod.uid)
        if gone or pod.finished:
            self.left[pod.uid] = pod.node_name
            if len(self.left) > REMEMBERED:
                self.left.popitem(last=False)
            return
        if pod.node_name:
            self.add_pod(pod, pod.node_name)
        elif pod.nominated_node:
            self.nominate(pod, pod.nominated_node)

    def _apply_node(self, node: Node, gone: bool) -> None:
        self._put_node(node.name, None if gone else node)

    def _put_node(self, name: str, node: Node | None) -> None:
        row = self._row(name)
        before = self.table.nodes[row]
        self.table.put(row, node)
        self._journaled(lambda: self._put_node(name, before))
        self._free_if_unused(row)

    # -- pods on nodes

    def add_pod(self, pod: Pod, node_name: str, *, as_extension: bool = False) -> None:
        """The pod is on this node, and on no other. `as_extension`: counted as kube's PreFilter extensions count."""
        if pod.uid in self.pods:
            self.remove_pod(pod.uid, as_extension=as_extension)
        self.drop_nomination(pod.uid)
        row = self._row(node_name)
        shape = pod.shape
        self._place(pod, row, shape, as_extension)
        self._journaled(lambda: self._displace(pod.uid, as_extension))
        self._hold_ports(shape, row, +1, as_extension)
        for room in self.held_rooms.values():
            room.pod_added(pod, node_name)

    def remove_pod(self, uid: str, *, as_extension: bool = False) -> None:
        placed = self.pods[uid]
        pod, shape, name = placed.pod, placed.shape, self.table.names[placed.row]
        for room in self.held_rooms.values():
            room.pod_removed(uid)
        self._hold_ports(shape, placed.row, -1, as_extension)
        self._displace(uid, as_extension)
        self._journaled(lambda: self._place(pod, self._row(name), shape, as_extension))

    def _place(self, pod: Pod, row: int, shape: Shape, as_extension: bool) -> None:
        self.priorities[pod.priority] += 1
        labels = self.counting.add(pod, row, self.table.capacity, as_extension)
        self.pods[pod.uid] = self.pods_on[row][pod.uid] = Placed(pod, row, shape, labels)
        self.table.take(row, shape.taken, shape.presumed, +1)
        for use in shape.uses:
            self._use(use, row, +1)

    def _displace(self, uid: str, as_extension: bool) -> None:
        placed = self.pods.pop(uid)
        row, shape = placed.row, placed.shape
        self.priorities[placed.pod.priority] -= 1
        if not self.priorities[placed.pod.priority]:
            del self.priorities[placed.pod.priority]
        del self.pods_on[row][uid]
        self.counting.remove(placed.pod, placed.labels, self.table.capacity, as_extension)
        self.table.take(row, shape.taken, shape.presumed, -1)
        for use in shape.uses:
            self._use(use, row, -1)
        self._free_if_unused(row)

    def _hold_ports(self, shape: Shape, row: int, sign: int, as_set: bool) -> None:
        """Take or give back a pod's host ports.

        kube-scheduler keeps a node's ports as a set: where two pods have come to hold the same port, its dry runs find
        the port free as soon as one of them is taken away. Dry runs (`as_set`) do the same here.
        """
        for use, under_any in shape.port_uses:
            held = self.uses[use].count(row) if as_set and use in self.uses else 0
            change = sign if not as_set else int(not held) if sign > 0 else -held
            if change:
                self._use_port(use, under_any, row, change)

    def _use_port(self, use: Hashable, under_any: Hashable, row: int, change: int) -> None:
        self._use(use, row, change)
        self._use(under_any, row, change)
        self._journaled(lambda: self._use_port(use, under_any, row, -change))

    def _row(self, name: str) -> int:
        row = self.table.row(name)
        while len(self.pods_on) <= row:
            self.pods_on.append({})
        return row

    def _free_if_unused(self, row: int) -> None:
        if not self.table.live[row] and not self.pods_on[row] and not self._holds(row):
            self.table.free(row)

    def _holds(self, row: int) -> bool:
        name = self.table.names[row]
        return any(node == name for node, _ in self.held.values())

    def _use(self, use: Hashable, row: int, amount: int) -> None:
        tally = self.uses.get(use)
        if tally is None:
            tally = self.uses[use] = Tally()
            if use[0] in CARRIED:  # type: ignore[index]
                self.terms.add(carried_term(use).selector, use)
        tally.add(row, amount, self.table.capacity)
        if amount < 0 and tally.empty:
            del self.uses[use]
            if use[0] in CARRIED:  # type: ignore[index]
                self.terms.remove(carried_term(use).selector, use)

    # -- reservations

    def hold(self, name: str, node_name: str, amounts: Mapping[str, int]) -> None:
        """Reserve room on a node under a name of its own; a name holds one reservation."""
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

    def aside(self, names: Iterable[str]) -> AbstractContextManager[object]:
        """Meanwhile what is held under these names counts as free; afterwards all is as it was."""
        return self._released(names) if names else NOTHING

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

    # -- nominated pods

    def nominate(self, pod: Pod, node_name: str, *, firm: bool = False) -> None:
        """The pod has been promised room on this node: pods of equal or lower priority must leave it there; if it is
        `firm`, also more important ones that may evict nobody.
        """
        self.drop_nomination(pod.uid)
        self.nominated.setdefault(node_name, {})[pod.uid] = pod
        self._nominations[pod.uid] = node_name
        if firm:
            self.firm[pod.uid] = None
        self._journaled(lambda: self.drop_nomination(pod.uid))

    def nomination(self, uid: str) -> str:
        """The node that the pod has been promised, or nothing."""
        return self._nominations.get(uid, "")

    @property
    def promises(self) -> int:
        return len(self._nominations)

    def drop_nomination(self, uid: str) -> None:
        node_name = self._nominations.pop(uid, None)
        if node_name is None:
            return
        pods, firm = self.nominated[node_name], uid in self.firm
        pod = pods.pop(uid)
        self.firm.pop(uid, None)
        if not pods:
            del self.nominated[node_name]
        self._journaled(lambda: self.nominate(pod, node_name, firm=firm))

    # -- other objects

    def put(self, found: Object) -> None:
        """An object is now like this; in a what-if: is assumed to be."""
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

    def query(self, term: AffinityTerm) -> PodQuery:
        """The question that an incoming pod's affinity term asks about the pods that are there."""
        if term.namespace_selector is None:
            return term.query({})
        if self._queries_at != self.store.version_of(Namespace):
            self._queries, self._queries_at = {}, self.store.version_of(Namespace)
        query = self._queries.get(term)
        if query is None:
            if len(self._queries) >= RECENT_QUERIES:
                self._queries.clear()
            query = self._queries[term] = term.query(self.namespace_labels())
        return query

    def namespace_labels(self) -> dict[str, Mapping[str, str]]:
        return {name: namespace.labels for name, namespace in self.store.every(Namespace).items()}

    # -- questions

    def count(self, *queries: PodQuery, settled: Settled = False) -> Tally:
        """Pods that match all of these, per row. What is asked once is kept in step until nobody asks any more."""
        counter, is_new = self.counting.ask(queries, settled, self.table.capacity)
        if is_new:
            # Asked first inside a what-if: it has seen the what-if only, so it goes with it.
            self._journaled(lambda: self.counting.drop(counter))
        return counter.tally

    def carried(self, kind: str, pod: Pod) -> Iterator[tuple[AffinityTerm | WeightedTerm, Tally]]:
        """Affinity terms of one kind that pods on nodes carry and this pod matches; how many carry each, per row."""
        if not self.terms:
            return
        namespace = self.store.get(Namespace, pod.namespace)
        labels: Mapping[str, str] = namespace.labels if namespace is not None else {}
        for use in self.terms.candidates(pod.labels):
            if use[0] == kind and carried_term(use).matches(pod.namespace, labels, pod.labels):  # type: ignore[index]
                yield use[1], self.uses[use]  # type: ignore[index]

    # -- what if

    def trial(self) -> Trial:
        return Trial(self)

    def _journaled(self, undo: Callable[[], object]) -> None:
        if self._journal is not None:
            self._journal.append(undo)


def carried_term(use: Hashable) -> AffinityTerm:
    """The term in the key of a carried term's tally."""
    carried: AffinityTerm | WeightedTerm = use[1]  # type: ignore[index]
    return carried.term if isinstance(carried, WeightedTerm) else carried
