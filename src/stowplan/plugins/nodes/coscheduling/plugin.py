"""Coscheduling: the pods of a group are scheduled together, or not at all.

A pod's labels or its spec name its group (`objects.applications`); a label or a PodGroup says how many members must run
together. The engine does the rest: it gates a group until enough of its pods exist, attempts all members in one trial,
and binds them together. This plugin defines the groups and their order in the queue:

    system-critical pods     by priority
    partially bound groups   the oldest first: their running members wait for the missing ones
    groups that have aged    the oldest first, so that neither size nor priority starves them
    all others               by priority, then age (of the PodGroup, the oldest member, or the pod), then name
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.causes import Cause
from stowplan.framework.config.document import flag, shown
from stowplan.framework.decision import SKIP, RejectPod, Skip
from stowplan.framework.group import UNKNOWN, Group
from stowplan.framework.interfaces import QueueEntry, Wake
from stowplan.objects import applications, quantity, spark
from stowplan.objects.actions import Patch
from stowplan.objects.applications import BY_KUBERNETES, BY_LABELS, Identity
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.pod_groups import PodGroup, SigsPodGroup
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.coscheduling import kubernetes_group
from stowplan.plugins.nodes.coscheduling.kubernetes_status import KubernetesGroupStatus
from stowplan.plugins.nodes.coscheduling.sigs_status import SigsGroupStatus

SYSTEM_CRITICAL = 2_000_000_000
MATCHES = ("waiting-and-running", "only-waiting", "once-satisfied")
COMPLETE, EVICT = "Complete", "Evict"


class Coscheduling:
    reads = ("PodGroup", "SigsPodGroup", "FinishedMember")
    writes: ClassVar = {"PodGroup": ("status",), "SigsPodGroup": ("status",)}
    reconciles = ("PodGroup", "SigsPodGroup", "Pod", "FinishedMember")
    retries_by_object = True
    wanted_at: ClassVar = {
        "queueSort": "groups do not age, and missing members of partially bound groups do not go first",
        "preFilter": "a pod whose labels are invalid or contradict each other is scheduled alone, without a message",
    }
    configurable_at = (
        "filter",
        "postFilter",
        "reserve",
        "permit",
        "postBind",
    )  # the engine does the work of these points

    def __init__(
        self,
        permit_waiting_time_seconds: float = 10,
        starvation_seconds: float = 300,
        match_policy: str = MATCHES[0],
        on_partial_bind: str = COMPLETE,
        partial_bind_deadline_seconds: float = 60,
        preemption: bool = True,
    ) -> None:
        """`permitWaitingTimeSeconds`: how long members may take until all are ready to be bound, without a PodGroup."""
        self._timeout = _seconds("permitWaitingTimeSeconds", permit_waiting_time_seconds)
        self.ages_after = _seconds("starvationSeconds", starvation_seconds)
        self._match = _one_of("matchPolicy", match_policy, MATCHES)
        self._evicts = _one_of("onPartialBind", on_partial_bind, (COMPLETE, EVICT)) == EVICT
        self._report_after = _seconds("partialBindDeadlineSeconds", partial_bind_deadline_seconds)
        self._preempts = flag("preemption", preemption)
        self._statuses, self._conditions = SigsGroupStatus(), KubernetesGroupStatus()

    # -- groups

    def group_of(self, pod: Pod, cluster: Cluster) -> Group | None:
        found = applications.identity(pod)
        if not found.group or found.problem:
            return None
        name = f"{pod.namespace}/{found.group}"
        if found.source == BY_LABELS:
            return self._group(name, found.minimum, advice=spark.hint_for_driver(pod))
        group = _pod_group(found, name, cluster)
        if group is None:
            return self._group(name, UNKNOWN)  # its pods are gated until the object exists
        if isinstance(group, PodGroup):
            return self._group(name, group.minimum, **kubernetes_group.definition(group))
        return self._group(
            name,
            group.minimum,
            created=group.metadata.creation_timestamp,
            timeout=float(group.spec.schedule_timeout_seconds or self._timeout),
            resources={each: quantity.of(each, text) for each, text in group.spec.min_resources.items()},
        )

    def _group(self, name: str, minimum: int, **more: Any) -> Group:
        more.setdefault("timeout", self._timeout)
        return Group(
            name,
            minimum,
            match=self._match,
            evicts=self._evicts,
            report_after=self._report_after,
            preempts=self._preempts,
            **more,
        )

    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | Skip:  # noqa: ARG002
        """Reject a pod whose labels are invalid or contradict each other."""
        problem = applications.identity(pod).problem
        return RejectPod((f"pod group: {problem}",), resolvable=False) if problem else SKIP

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> RejectPod | None:
        found = applications.identity(pod)
        if found.group and not found.problem and found.source != BY_LABELS:
            name = f"{pod.namespace}/{found.group}"
            if _pod_group(found, name, cluster) is None:
                return RejectPod((f"PodGroup {name} of {found.source} does not exist",), resolvable=False, waits=True)
        return None

    def pod_causes(self, pod: Pod, cluster: Cluster) -> Iterator[Cause]:
        found = applications.identity(pod)
        if found.problem:
            yield Cause("group-labels", f"pod group: {found.problem}", {"problem": found.problem})
        elif found.group and found.source != BY_LABELS:
            name = f"{pod.namespace}/{found.group}"
            if _pod_group(found, name, cluster) is None:
                yield kubernetes_group.missing(name, found.source)

    def wakes_on(self) -> Iterable[Wake]:
        for kind in ("PodGroup", "SigsPodGroup"):
            yield Wake(kind, ("Add", "Update"), hint="its_group")
        yield Wake("Pod", ("Update",), own=True)

    def its_group(self, pod: Pod, old: Object | None, new: Object) -> bool:  # noqa: ARG002
        return (new.namespace, new.name) == (pod.namespace, applications.identity(pod).group)

    # -- the order of the queue

    def sort_key(self, pod: Pod, queued_at: float) -> Any:
        return self.group_key(QueueEntry(pod, queued_at, created=pod.metadata.creation_timestamp))

    def group_key(self, waiting: QueueEntry) -> tuple[int, int, float, str, str]:
        priority = waiting.pod.priority
        since = waiting.created.timestamp() if waiting.created is not None else waiting.queued_at
        if priority >= SYSTEM_CRITICAL:
            place = (0, -priority)
        elif waiting.partially_bound or waiting.aged:
            place = (1 if waiting.partially_bound else 2, 0)
        else:
            place = (3, -priority)
        return (*place, since, waiting.group, waiting.pod.key)

    # -- the status of PodGroups

    @property
    def reconcile_at(self) -> float | None:
        return self._statuses.again_at

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterable[Patch]:
        yield from self._statuses.patches(changed, cluster)
        yield from self._conditions.patches(changed, cluster)


def _pod_group(found: Identity, key: str, cluster: Cluster) -> PodGroup | SigsPodGroup | None:
    kind: type[PodGroup] | type[SigsPodGroup] = PodGroup if found.source == BY_KUBERNETES else SigsPodGroup
    return cluster.get(kind, key)


# -- arguments


def _seconds(name: str, given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < float("inf"):
        raise ConfigError(f"{name}: found {shown(given)}, expected seconds, 0 or more")
    return float(given)


def _one_of(name: str, given: Any, known: Sequence[str]) -> str:
    if given not in known:
        raise ConfigError(f"{name}: found {shown(given)}, expected one of {', '.join(known)}")
    return str(given)
