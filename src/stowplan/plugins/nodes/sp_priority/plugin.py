"""SPPriority: a pod that takes another's place goes where its owner's pods have been least, and not where the last was.

    the last node           0
    nodes used before       100 * (total - count) // total, at least 1; the last node's count is left out
    all others              100

The counts are in an annotation of the owner (`sp_owners`, `sp_history`). A decision is noted there before the pod is
bound (pre_bind) and counted once the pod is seen bound, or gone (reconcile): at once, or after the next start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from stowplan.columns.arrays import Bytes
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.framework.config.document import flag, shown
from stowplan.framework.interfaces import Wake
from stowplan.framework.verdict import SKIP, Avoid, NotYet, Refuse, Skip
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
    pre_bind_late = "what was decided could not be noted at the pod's owner in time"

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
        """`namespaceWhiteList` and `excludedNamespaces` are one list, of those left alone; `halfLife` is in pods.

        `maxNodes` is how many nodes a history has counts of.
        """
        self._owners = Owners(
            stateful_sets=flag("statefulSets", stateful_sets),
            deployments=_state_owner(state_owner) == "Deployment",
            excluded=_names(namespaceWhiteList=namespace_white_list, excludedNamespaces=excluded_namespaces),
            disable=_key("disableAnnKey", disable_ann_key),
            single_only=flag("skipMultiReplica", skip_multi_replica),
        )
        self._state, self._desk = _key("stateAnnKey", state_ann_key), UnconfirmedWrites(state_ann_key)
        self._strict = flag("strict", strict)
        self._half_life = _number("halfLife", half_life, 0, "a number of pods, 0 (never) or more")
        self._max_nodes = _number("maxNodes", max_nodes, 1, "a number of nodes, 1 or more")
        self.reads = tuple(self._owners.kinds)
        self.reconciles = ("Pod", *self.reads)

    # -- decisions

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Refuse | Skip | None:
        """A pod may be heard of before its owner is; decided then, it would not be counted."""
        found = self._owners.sought(pod, cluster)
        if isinstance(found, str):
            return Refuse((f"waiting to hear of {found}",), resolvable=False, waits=True)
        cluster.notes[NAME] = found
        return SKIP if found is None else None

    def wakes_on(self) -> Iterable[Wake]:
        return [Wake(kind, ("Add", "Update"), hint="may_be_owner") for kind in self.reads]

    def may_be_owner(self, pod: Pod, old: Object | None, new: Object | None) -> bool:  # noqa: ARG002
        return new is not None and self._owners.may_be(new, pod)

    def avoid(self, pod: Pod, cluster: Cluster) -> Avoid | None:
        """With `strict` the last node is taken only if no other will do."""
        owner = self._owner(pod, cluster) if self._strict else None
        latest = "" if owner is None else self._past(pod, owner, cluster).latest
        return Avoid(frozenset((latest,)), LAST) if latest else None

    def score(self, pod: Pod, nodes: Nodes) -> Bytes | int | None:
        owner = self._owner(pod, nodes.cluster)
        return None if owner is None else rated(self._past(pod, owner, nodes.cluster), nodes)

    def _owner(self, pod: Pod, cluster: Cluster) -> Workload | None:
        """Within a decision it is looked for once."""
        owner: Workload | None = cluster.notes[NAME] if NAME in cluster.notes else self._owners.of(pod, cluster)
        return owner

    def _past(self, pod: Pod, owner: Workload, cluster: Cluster) -> History:
        """All that is known of where the owner's pods have been, those included that are on their way to a node."""
        history, given = read(self._desk.text(owner)) or History(), self._desk.given(owner)
        if not given and not history.pending:
            return history
        on_their_way = {
            uid: node for uid, node in given.items() if self._desk.is_bound(uid) or _waits(cluster.known_pod(uid))
        }
        not_counted = {**history.pending, **on_their_way}
        where = [self._where(uid, node, cluster) for uid, node in not_counted.items() if uid != pod.uid]
        return history.counted(filter(None, where), self._half_life) if any(where) else history

    def _where(self, uid: str, given: str, cluster: Cluster) -> str:
        """The node of a pod that was given one: where it is or was bound, or is on its way to; none if it came back."""
        pod = cluster.known_pod(uid)
        if pod is None:
            left = cluster.last_node(uid)
            return given if left is None else left
        return pod.node_name or (given if cluster.pod(uid) is not None else "")

    # -- on the way to a node

    def reserve(self, pod: Pod, node_name: str, state: ClusterState) -> None:
        owner = self._owners.of(pod, Cluster(state))
        if owner is not None:
            self._desk.give(owner, pod.uid, node_name)

    def unreserve(self, pod: Pod, node_name: str, state: ClusterState) -> None:  # noqa: ARG002
        self._desk.give_up(pod.uid)

    def pre_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterator[Patch]:  # noqa: ARG002
        """Note the decision. Pods that come during the write wait; the next write is for all of them (reconcile)."""
        owner = self._owners.of(pod, cluster)
        if owner is None:
            return
        self._desk.want(pod.uid)
        before = read(owner.annotations.get(self._state))
        if before is not None and not self._desk.busy(owner):
            noted = before.noted(self._desk.wanted(owner))
            if noted != before and pod.uid in noted.pending:
                yield self._desk.send(owner, noted.among(cluster.nodes, self._max_nodes).text(), pod.uid)

    def pre_bound(self, pod: Pod, node_name: str, cluster: Cluster) -> bool | NotYet:
        """Is it noted?"""
        owner = self._owners.of(pod, cluster)
        if owner is None or pod.uid not in self._desk.given(owner) or self._desk.succeeded(owner, pod.uid):
            return True
        seen = read(owner.annotations.get(self._state))
        if seen is None or seen.pending.get(pod.uid) == node_name:
            return True
        return NotYet(frozenset({(type(owner).__name__, owner.key)}))

    def post_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterator[Record]:
        """A pod that came without pre_bind, because a configuration lists the policy only here, is noted from here."""
        noted, owner = self._desk.leave(pod.uid), self._owners.of(pod, cluster)
        if owner is None:
            return
        if read(owner.annotations.get(self._state)) is None:
            about, note = PodRef(pod.namespace, pod.name, pod.uid), UNREADABLE % (self._state, *ref(owner)[:2])
            yield Record(about, "Warning", "ScheduleStateUnreadable", "Binding", note, pod.scheduler_name)
        elif not noted:
            self._desk.give(owner, pod.uid, node_name)
            self._desk.want(pod.uid, bound=True)

    # -- afterwards

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Patch]:
        """Count the pods that are noted and seen bound, or gone; note those that wait for it."""
        if changed is None:
            self._desk.lost()
        for each in changed or ():
            if not isinstance(each, Pod):
                (self._desk.forget if cluster.get(type(each), each.key) is None else self._desk.seen)(each)
        for owner in self._touched(changed, cluster):
            before = read(owner.annotations.get(self._state))
            if before is not None and not self._desk.busy(owner):
                after = self._settled(before, cluster).noted(self._desk.wanted(owner))
                if after != before:
                    yield self._desk.send(owner, after.among(cluster.nodes, self._max_nodes).text())

    def _settled(self, seen: History, cluster: Cluster) -> History:
        """A pod that nobody saw go counts where it was given: between the note and the binding is a moment only.

        The note of a pod that came back stays, in case it was bound after all, as long as nobody needs the room.
        """
        where = {
            uid: self._where(uid, given, cluster)
            for uid, given in seen.pending.items()
            if not _waits(cluster.known_pod(uid)) or (seen.crowded and cluster.pod(uid) is None)
        }
        for uid in where:
            self._desk.settle(uid)
        return seen.settled(where, self._half_life) if where else seen

    def _touched(self, changed: Sequence[Object] | None, cluster: Cluster) -> list[Workload]:
        """Owners with something to be settled or noted."""
        if changed is None:
            changed = [each for kind in self._owners.kinds.values() for each in cluster.every(kind).values()]
        found = (
            self._owners.keeper(each, cluster) if isinstance(each, Pod) else cluster.get(type(each), each.key)
            for each in changed
        )
        owners = {ref(each): each for each in found if isinstance(each, Workload) and self._unsettled(each)}
        return [each for each in owners.values() if self._owners.keeps(each, cluster)]

    def _unsettled(self, owner: Workload) -> bool:
        return '"pending"' in owner.annotations.get(self._state, "") or bool(self._desk.wanted(owner))


def _waits(pod: Pod | None) -> bool:
    """Is it there, and not bound yet?"""
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
