"""SPPriority: a replacement pod prefers nodes that its owner's pods used least, and avoids the node of the last pod.

    the last node           0
    nodes used before       100 * (total - count) // total, at least 1; the last node's count is left out
    all other nodes         100

The counts are in an annotation of the owner (`owners`, `history`). A decision is recorded there before the pod is bound
(pre_bind) and counted when the pod is seen bound, or deleted (reconcile): at once, or after the next start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from stowplan.columns.arrays import Bytes
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.causes import Cause
from stowplan.framework.config.document import flag, shown
from stowplan.framework.decision import SKIP, Avoid, NotYet, RejectPod, Skip
from stowplan.framework.interfaces import Wake
from stowplan.objects.actions import Patch, PodRef, Record
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.sp_priority.history import History, rated, read
from stowplan.plugins.nodes.sp_priority.owners import Owners, Workload
from stowplan.plugins.nodes.sp_priority.unconfirmed import UnconfirmedWrites, ref

NAME = "SPPriority"
DISABLE, STATE = "annotation.sp.io/disable-priority-scheduler", "annotation.sp.io/schedule-state"
LAST = "node(s) had the last pod of the same owner"
UNREADABLE = (
    "The annotation %s of %s %s cannot be read: it is left as it is, and nothing is counted until it is removed"
)


class SPPriority:
    args_file = ("configFile", "/etc/kubernetes/sppriority.yaml")
    configurable_at = ("preScore",)
    args_alike: ClassVar = {"excluded_namespaces": "namespace_white_list"}
    one_for_all = True
    skip_is_final = quick_pre_bind = True
    pre_bind_timeout = 10.0
    pre_bind_late = "the decision could not be recorded at the pod's owner in time"

    def __init__(
        self,
        skip_multi_replica: bool = True,
        namespace_white_list: Sequence[str] | None = None,
        excluded_namespaces: Sequence[str] | None = None,
        disable_ann_key: str = DISABLE,
        state_ann_key: str = STATE,
        state_owner: str = "ReplicaSet",
        stateful_sets: bool = False,
        strict: bool = False,
        half_life: int = 0,
        max_nodes: int = 1000,
    ) -> None:
        """`namespaceWhiteList` and `excludedNamespaces` are one list, of namespaces that the policy ignores.

        `halfLife` is a number of pods. `maxNodes` is how many nodes a history has counts of.
        """
        self._owners = Owners(
            stateful_sets=flag("statefulSets", stateful_sets),
            deployments=_state_owner(state_owner) == "Deployment",
            excluded=_names(namespaceWhiteList=namespace_white_list, excludedNamespaces=excluded_namespaces),
            disable=_key("disableAnnKey", disable_ann_key),
            single_only=flag("skipMultiReplica", skip_multi_replica),
        )
        self._annotation, self._unconfirmed = _key("stateAnnKey", state_ann_key), UnconfirmedWrites(state_ann_key)
        self._strict = flag("strict", strict)
        self._half_life = _number("halfLife", half_life, 0, "a number of pods, 0 (never) or more")
        self._max_nodes = _number("maxNodes", max_nodes, 1, "a number of nodes, 1 or more")
        self.reads = tuple(self._owners.kinds)
        self.writes = dict.fromkeys(self.reads, ("patch",))
        self.reconciles = ("Pod", *self.reads)

    # -- decisions

    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | Skip | None:
        """Reject a pod whose owner has not been seen yet: the pod would not be counted."""
        found = self._owners.find(pod, cluster)
        if isinstance(found, str):
            return RejectPod((f"waiting for {found} to be seen",), resolvable=False, waits=True)
        cluster.notes[NAME] = found
        return SKIP if found is None else None

    def pod_causes(self, pod: Pod, cluster: Cluster) -> Iterator[Cause]:
        owner = self._owners.find(pod, cluster)
        if isinstance(owner, str):
            yield Cause("owner-unknown", f"{owner}, which owns the pod, is not known yet", {"owner": owner})

    def wakes_on(self) -> Iterable[Wake]:
        return [Wake(kind, ("Add", "Update"), hint="may_be_owner") for kind in self.reads]

    def may_be_owner(self, pod: Pod, old: Object | None, new: Object | None) -> bool:  # noqa: ARG002
        return new is not None and self._owners.may_be(new, pod)

    def avoid(self, pod: Pod, cluster: Cluster) -> Avoid | None:
        """With `strict`, avoid the last node."""
        owner = self._owner(pod, cluster) if self._strict else None
        latest = "" if owner is None else self._past(pod, owner, cluster).latest
        return Avoid(frozenset((latest,)), LAST) if latest else None

    def score(self, pod: Pod, nodes: Nodes) -> Bytes | int | None:
        owner = self._owner(pod, nodes.cluster)
        return None if owner is None else rated(self._past(pod, owner, nodes.cluster), nodes)

    def _owner(self, pod: Pod, cluster: Cluster) -> Workload | None:
        """Return the pod's owner, looked up once for a decision."""
        owner: Workload | None = cluster.notes[NAME] if NAME in cluster.notes else self._owners.of(pod, cluster)
        return owner

    def _past(self, pod: Pod, owner: Workload, cluster: Cluster) -> History:
        """Return the history of the owner's pods, with those that are assumed or not counted yet."""
        history, assumed = read(self._unconfirmed.text(owner)) or History(), self._unconfirmed.assumed(owner)
        if not assumed and not history.pending:
            return history
        unbound = {
            uid: node
            for uid, node in assumed.items()
            if self._unconfirmed.is_bound(uid) or _is_unbound(cluster.known_pod(uid))
        }
        not_counted = {**history.pending, **unbound}
        nodes = [self._node_of(uid, node, cluster) for uid, node in not_counted.items() if uid != pod.uid]
        return history.counted(filter(None, nodes), self._half_life) if any(nodes) else history

    def _node_of(self, uid: str, assumed: str, cluster: Cluster) -> str:
        """Return the node where a pod is or was bound, or is assumed; empty if the pod did not get its node."""
        pod = cluster.known_pod(uid)
        if pod is None:
            left = cluster.last_node(uid)
            return assumed if left is None else left
        return pod.node_name or (assumed if cluster.pod(uid) is not None else "")

    # -- binding

    def reserve(self, pod: Pod, node_name: str, cluster: Cluster) -> None:
        owner = self._owners.of(pod, cluster)
        if owner is not None:
            self._unconfirmed.assume(owner, pod.uid, node_name)

    def unreserve(self, pod: Pod, node_name: str, cluster: Cluster) -> None:  # noqa: ARG002
        self._unconfirmed.unreserve(pod.uid)

    def pre_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterator[Patch]:  # noqa: ARG002
        """Record the decision. Pods that come during a write wait; the next write records all of them (reconcile)."""
        owner = self._owners.of(pod, cluster)
        if owner is None:
            return
        self._unconfirmed.record(pod.uid)
        before = read(owner.annotations.get(self._annotation))
        if before is not None and not self._unconfirmed.under_way(owner):
            after = before.recorded(self._unconfirmed.to_record(owner))
            if after != before and pod.uid in after.pending:
                yield self._unconfirmed.write(owner, after.limited(cluster.nodes, self._max_nodes).text(), pod.uid)

    def pre_bound(self, pod: Pod, node_name: str, cluster: Cluster) -> bool | NotYet:
        """True if the decision is recorded."""
        owner, unconfirmed = self._owners.of(pod, cluster), self._unconfirmed
        if owner is None or pod.uid not in unconfirmed.assumed(owner) or unconfirmed.succeeded(owner, pod.uid):
            return True
        history = read(owner.annotations.get(self._annotation))
        if history is None or history.pending.get(pod.uid) == node_name:
            return True
        return NotYet(frozenset({(type(owner).__name__, owner.key)}))

    def post_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterator[Record]:
        """Record a pod that was not recorded by pre_bind, because a configuration lists the policy only here."""
        was_assumed, owner = self._unconfirmed.remove(pod.uid), self._owners.of(pod, cluster)
        if owner is None:
            return
        if read(owner.annotations.get(self._annotation)) is None:
            about, note = PodRef(pod.namespace, pod.name, pod.uid), UNREADABLE % (self._annotation, *ref(owner)[:2])
            yield Record(about, "Warning", "ScheduleStateUnreadable", "Binding", note, pod.scheduler_name)
        elif not was_assumed:
            self._unconfirmed.assume(owner, pod.uid, node_name)
            self._unconfirmed.record(pod.uid, bound=True)

    # -- counting

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Patch]:
        """Count the recorded pods that are bound or deleted by now; record the pods that wait for it."""
        if changed is None:
            self._unconfirmed.resync()
        for each in changed or ():
            if not isinstance(each, Pod):
                deleted = cluster.get(type(each), each.key) is None
                (self._unconfirmed.owner_deleted if deleted else self._unconfirmed.observe)(each)
        for owner in self._unfinished_owners(changed, cluster):
            before = read(owner.annotations.get(self._annotation))
            if before is not None and not self._unconfirmed.under_way(owner):
                after = self._with_counts(before, cluster).recorded(self._unconfirmed.to_record(owner))
                if after != before:
                    yield self._unconfirmed.write(owner, after.limited(cluster.nodes, self._max_nodes).text())

    def _with_counts(self, history: History, cluster: Cluster) -> History:
        """Return the history with recorded pods counted that are bound or deleted.

        A pod whose deletion was not seen counts on its recorded node: it was almost certainly bound. The record of a
        pod that did not get its node stays, in case the pod was bound after all, while there is room for other pods.
        """
        nodes = {
            uid: self._node_of(uid, recorded, cluster)
            for uid, recorded in history.pending.items()
            if not _is_unbound(cluster.known_pod(uid)) or (history.full and cluster.pod(uid) is None)
        }
        for uid in nodes:
            self._unconfirmed.counted(uid)
        return history.settled(nodes, self._half_life) if nodes else history

    def _unfinished_owners(self, changed: Sequence[Object] | None, cluster: Cluster) -> list[Workload]:
        """Return the owners with pods to count or to record."""
        if changed is None:
            changed = [each for kind in self._owners.kinds.values() for each in cluster.every(kind).values()]
        found = (
            self._owners.history_owner(each, cluster) if isinstance(each, Pod) else cluster.get(type(each), each.key)
            for each in changed
        )
        owners = {ref(each): each for each in found if isinstance(each, Workload) and self._is_unfinished(each)}
        return [each for each in owners.values() if self._owners.has_history(each, cluster)]

    def _is_unfinished(self, owner: Workload) -> bool:
        return '"pending"' in owner.annotations.get(self._annotation, "") or bool(self._unconfirmed.to_record(owner))


def _is_unbound(pod: Pod | None) -> bool:
    """True if the pod exists and is not bound."""
    return pod is not None and not pod.node_name


# -- arguments


def _number(name: str, given: Any, least: int, expected: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < least:
        raise ConfigError(f"{name}: found {shown(given)}, expected {expected}")
    return given


def _key(name: str, given: Any) -> str:
    if not isinstance(given, str) or not given:
        raise ConfigError(f"{name}: found {shown(given)}, expected the key of an annotation")
    return given


def _names(**spellings: Any) -> frozenset[str]:
    for name, given in spellings.items():
        if not isinstance(given, list | tuple | None) or not all(isinstance(each, str) for each in given or ()):
            raise ConfigError(f"{name}: found {shown(given)}, expected a list of namespaces")
    return frozenset(each for given in spellings.values() for each in given or ())


def _state_owner(given: Any) -> str:
    if given not in ("ReplicaSet", "Deployment"):
        raise ConfigError(f"stateOwner: found {shown(given)}, expected ReplicaSet or Deployment")
    return str(given)
