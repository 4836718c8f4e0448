"""Room on a node: the fewest pods after whose deletion the pod fits there, and where these would go.

A node is looked at if what rejects it is taken by pods: resources, ports, disks, domains of anti-affinity and
spreading. Pods in the way may be on other nodes of the same domain. All of them are taken away in a trial; then as many
as possible come back: siblings of the pod and those that a disruption budget protects before others, then the least
useful first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from stowplan.columns.arrays import Bools, Floats, Ints, Rows
from stowplan.columns.state import ClusterState, PlacedPod
from stowplan.columns.tally import Tally
from stowplan.diagnosis import ranking
from stowplan.diagnosis.case import Case
from stowplan.diagnosis.changed_cluster import ChangedCluster
from stowplan.diagnosis.edits import Edit, Edits
from stowplan.diagnosis.remedies import budgets
from stowplan.diagnosis.remedies.scale_down import Workloads
from stowplan.diagnosis.remedy import DeleteObject
from stowplan.diagnosis.trying import Trying
from stowplan.framework.decision import FEASIBLE
from stowplan.framework.evaluation import Evaluation, schedule_one
from stowplan.framework.plugin_calls import call_list
from stowplan.objects.affinity import AffinityTerm, PodQuery
from stowplan.objects.disruption import importance
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import compile_selector
from stowplan.objects.shape import REQUIRED_ANTI
from stowplan.plugins.nodes.default.inter_pod_affinity import AFFINITY

FREE_ROOM = "free-room"
MOST_NODES = 6  # that are looked at: those that lack the least
MOST_IN_DOMAIN = 64  # pods on other nodes that may be in the way
MOST_MATCHING = 2_000  # pods of anti-affinity or spreading; if there are more, only those on the node are looked at
MOST_DELETED = 16
OCCUPIED = (
    *("NodeResourcesFit", "NodePorts", "InterPodAffinity", "PodTopologySpread", "VolumeRestrictions"),
    "NodeVolumeLimits",
)
_MIRROR = "kubernetes.io/config.mirror"
_SYSTEM_PRIORITY = 2_000_000_000


class Room:
    """The nodes that deletions may open for the pod."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.workloads = Workloads(case.state)
        self._own_workload = self.workloads.name_of(case.pod)
        self.needed = dict(self._needed())
        blocked: Bools = np.zeros(len(case.nodes), np.bool_)
        for name, rows in case.rejected.items():
            if name not in OCCUPIED:
                blocked |= rows
        blocked |= self._lonely()
        for resource, amount in self._needed():
            blocked |= case.nodes.allocatable[resource] < amount
        weight: Floats = np.zeros(len(case.nodes))
        for resource, amount in self._needed():
            weight += np.maximum(amount - case.nodes.free[resource], 0) / max(amount, 1)
        for name, rows in case.rejected.items():
            weight += 0 if name == "NodeResourcesFit" else rows
        open_rows = np.flatnonzero(~blocked)
        self.cut = len(open_rows) > MOST_NODES
        self.too_many = False  # pods would have to go from one of these nodes
        self._order: Ints = open_rows[np.argsort(weight[open_rows], kind="stable")]
        self.nodes: list[int] = self._order[:MOST_NODES].tolist()

    def _lonely(self) -> Bools:
        """Return the nodes without the pods that the pod wants to be near: deletions bring none.

        Unless the pod is what it wants to be near itself: where there is no such pod at all, it may be the first.
        """
        lonely: Bools = np.zeros(len(self.case.nodes), np.bool_)
        pod = self.case.pod
        queries = [self.case.state.query(term) for term in pod.shape.required_affinity]
        if all(query.matches(pod.namespace, pod.labels) for query in queries):
            return lonely
        for each in self.case.found.filters.values():
            for reason, rows in each.reasons:
                lonely |= rows & (reason == AFFINITY)
        return lonely

    def rows(self, most: int) -> Rows | None:
        """Return so many rows, those first that lack the least; None if there are no more nodes than this."""
        return None if len(self.case.nodes) <= most else self.case.nodes.rows[self._order[:most]]

    def _needed(self) -> Iterator[tuple[str, int]]:
        for enabled in self.case.profile.needs_free_filters:
            yield from call_list(enabled, enabled.plugin.needs_free, tuple, self.case.pod)

    def proposals(self) -> Iterator[Edits]:
        """Yield for each node the pods to delete, those first that may go, then the fewest."""
        found = [chosen for at in self.nodes if (chosen := self._chosen(at))]

        def order(pods: list[Pod]) -> tuple[int, ...]:
            return -min(map(self._standing, pods)), len(pods), sum(pod.priority for pod in pods)

        for chosen in sorted(found, key=order):
            yield tuple(deletion(pod, self.case.trying) for pod in chosen)

    def _standing(self, pod: Pod) -> int:
        """Return 0 for a sibling of the pod, 1 for a pod that a budget protects, 2 for others."""
        if self._own_workload is not None and self.workloads.name_of(pod) == self._own_workload:
            return 0
        return 1 if budgets.is_protected(pod, self.case.state) else 2

    def terminating(self) -> list[Pod]:
        """Return the pods on these nodes that are on their way out."""
        rows = [int(self.case.nodes.rows[at]) for at in self.nodes]
        return [
            placed.pod for row in rows for placed in self.case.state.pods_on[row].values() if placed.pod.terminating
        ]

    def _chosen(self, at: int) -> list[Pod]:
        """Return the pods to delete for the node at a position; an empty list if that does not help, or too many."""
        case, row = self.case, int(self.case.nodes.rows[at])
        near = [placed for placed in case.state.pods_on[row].values() if may_go(placed.pod)]
        blocking = self._in_the_way(at)
        near += [placed for placed in blocking if placed.row != row]
        found = self._fewest(near, row, at)
        if not found and case.pod.shape.required_affinity:  # the pod may need the company of some of them
            found = self._fewest(blocking, row, at)
        return found

    def _fewest(self, candidates: Sequence[PlacedPod], row: int, at: int) -> list[Pod]:
        """Return pods of these without which the pod fits; an empty list if there are none."""
        names, state = self.case.state.table.names, self.case.state
        useful = sorted(candidates, key=lambda placed: self._back(placed, row, at))
        with state.trial() as trial:
            for placed in useful:
                self.case.trying.order.keep(placed.row)
                trial.remove_pod(placed.pod.uid)
            if not useful or not self._fits(row):
                return []
            gone = list(useful)
            for placed in useful:  # the least useful first: it may stay if the pod fits beside it
                trial.add_pod(placed.pod, names[placed.row])
                if self._fits(row):
                    gone.remove(placed)
                else:
                    trial.remove_pod(placed.pod.uid)
        if len(gone) > MOST_DELETED:
            self.too_many = True
            return []
        return [placed.pod for placed in gone]

    def _back(self, placed: PlacedPod, row: int, at: int) -> tuple[object, ...]:
        """Return a key to sort pods by: it is tried first without deleting those at the front."""
        return self._standing(placed.pod), self._use(placed, row, at), *_most_important_first(placed.pod)

    def _fits(self, row: int) -> bool:
        evaluation = Evaluation(self.case.pod, self.case.state, self.case.profile, within=np.array([row]))
        evaluation.pre_filter()
        if evaluation.pre_filters.refused is not None:
            return False
        evaluation.filter()
        return bool((evaluation.trail.verdict_of == FEASIBLE).any())

    def _use(self, placed: PlacedPod, row: int, at: int) -> float:
        """Return how much of what the node lacks a pod takes: the more, the later it comes back."""
        if placed.row != row:
            return 0.0
        taken = dict(placed.shape.taken)
        use = 0.0
        for resource, amount in self.needed.items():
            lack = amount - int(self.case.nodes.free[resource][at])
            if lack > 0:
                use += min(taken.get(resource, 0), lack) / lack
        return use

    def _in_the_way(self, at: int) -> list[PlacedPod]:
        """Return pods of anti-affinity, spreading and exclusive claims that share a domain with the node."""
        state, pod = self.case.state, self.case.pod
        uids: list[str] = []
        queries = [(state.query(term), term.topology_key) for term in pod.shape.required_anti_affinity]
        for constraint in pod.spec.topology_spread_constraints:
            query = PodQuery(frozenset((pod.namespace,)), compile_selector(constraint.label_selector))
            queries.append((query, constraint.topology_key))
        for query, key in queries:
            matching = state.uids_of(query)
            if len(matching) <= MOST_MATCHING:
                uids += self._in_domain(matching, key, at)
        for carried, tally in state.terms_matching(REQUIRED_ANTI, pod):
            if isinstance(carried, AffinityTerm):
                uids += self._in_domain(_carriers(state, carried, tally), carried.topology_key, at)
        for claim in pod.shape.claims:
            holders = state.uses.tallies.get(("claim", claim))
            for row in () if holders is None else holders.sparse()[0].tolist():
                uids += [uid for uid, each in state.pods_on[row].items() if claim in each.shape.claims]
        found = {uid: state.pods[uid] for uid in uids[:MOST_IN_DOMAIN] if uid in state.pods}
        return [placed for placed in found.values() if may_go(placed.pod)]

    def _in_domain(self, uids: Iterable[str], key: str, at: int) -> list[str]:
        """Return those of the pods whose nodes have the same value of a label as the node."""
        state, label = self.case.state, self.case.nodes[at].labels.get(key)
        nodes = state.table.nodes
        return [
            uid
            for uid in uids
            if label is not None and (node := nodes[state.pods[uid].row]) is not None and node.labels.get(key) == label
        ]


def _carriers(state: ClusterState, term: AffinityTerm, tally: Tally) -> Iterator[str]:
    """Yield the pods with a term of required anti-affinity, by uid."""
    for row in tally.sparse()[0].tolist():
        yield from (uid for uid, each in state.pods_on[row].items() if term in each.shape.required_anti_affinity)


def deletion(pod: Pod, trying: Trying, code: str = FREE_ROOM) -> Edit:
    """Return the edit that deletes a pod."""
    trying.uids[pod.key] = pod.uid
    return Edit(code, f"delete pod {pod.key}", (DeleteObject("Pod", pod.key),), size=1.0)


def deleted_pods(edits: Edits, trying: ChangedCluster) -> list[Pod]:
    """Return the pods on nodes that edits delete."""
    changes = (change for edit in edits for change in edit.changes)
    keys = [change.key for change in changes if isinstance(change, DeleteObject) and change.kind == "Pod"]
    return [pod for key in keys if (pod := trying.placed(key)) is not None]


def as_siblings(edits: Edits, pod: Pod, trying: Trying) -> Edits:
    """Return the edits with those marked that delete pods of the pod's own owner."""
    workloads = Workloads(trying.state)
    own = workloads.name_of(pod)
    siblings = {each.key for each in deleted_pods(edits, trying) if own is not None and workloads.name_of(each) == own}
    also = "its own owner makes the deleted pod again: this only moves the problem"
    return _marked(edits, siblings, ranking.SIBLING, also)


def against_budgets(edits: Edits, protected: Iterable[Pod], state: ClusterState) -> Edits:
    """Return the edits with those marked that delete pods although a budget protects them."""
    marked = edits
    for pod in protected:
        names = ", ".join(budget.key for budget in state.store.budgets_of(pod))
        also = (
            f"PodDisruptionBudget {names} protects pod {pod.key}: a deletion ignores it, an eviction would be refused"
        )
        marked = _marked(marked, {pod.key}, ranking.PROTECTED, also)
    return marked


def _marked(edits: Edits, keys: Container[str], ranked_as: str, also: str) -> Edits:
    """Return the edits that delete one of the pods with a note more, and with the worst name that they have got."""
    return tuple(
        replace(
            edit, ranked_as=ranking.worst(edit.ranked_as, ranked_as), also="; ".join(filter(None, (edit.also, also)))
        )
        if any(isinstance(change, DeleteObject) and change.key in keys for change in edit.changes)
        else edit
        for edit in edits
    )


def deletes(edit: Edit) -> bool:
    return any(isinstance(change, DeleteObject) for change in edit.changes)


def consequences(edits: Edits, nodes: Mapping[str, str], trying: ChangedCluster) -> list[str]:
    """Return where the deleted pods would go while pods that wait have these nodes, by key; one sentence each."""
    pods, sentences, settled = deleted_pods(edits, trying), list[str](), set[str]()
    with trying.changed(edits) as members, trying.state.trial() as trial:
        for key, name in nodes.items():
            trial.add_pod(members[key], name)
        for pod in pods:
            profile = trying.profiles.get(pod.scheduler_name)
            if pod.controller() is None:
                sentences.append(f"pod {pod.key} is gone for good: nothing makes it again")
                continue
            if profile is None:
                continue
            again = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
            decision = schedule_one(again, trying.state, profile, preempt=False)
            if decision.node is None:
                again_pending = "would stay pending, or take the room back if it is scheduled first"
                sentences.append(f"pod {pod.key} is made again by its owner, and {again_pending}")
            else:
                sentences.append(f"pod {pod.key} is made again by its owner, and would go to node {decision.node}")
                trial.add_pod(again, decision.node)
                settled.add(pod.uid)
    return [*sentences, *_owners([pod for pod in pods if pod.uid not in settled], trying.state)]


def _owners(pods: Sequence[Pod], state: ClusterState) -> Iterator[str]:
    """Yield how to keep controllers from making the pods again."""
    workloads = Workloads(state)
    number = Counter(name for pod in pods if (name := workloads.name_of(pod)) is not None)
    for (kind, key), count in number.items():
        yield f"to keep {kind} {key} from making {'them' if count > 1 else 'it'} again, scale it down by {count}"


def may_go(pod: Pod) -> bool:
    """True for pods whose deletion frees room: a DaemonSet and the kubelet make theirs again at once."""
    return (
        not pod.terminating
        and not pod.of_daemon_set
        and _MIRROR not in pod.annotations
        and pod.priority < _SYSTEM_PRIORITY
    )


def _most_important_first(pod: Pod) -> tuple[object, ...]:
    """Return a key that sorts important pods to the front: of pods that help equally, these may stay first."""
    return (importance(pod), pod.uid)
