"""Coscheduling: pods of one group get nodes together, or none of them does.

Which group a pod is in, its labels or its spec say (`objects.applications`); how many of it must run together, a label
or a PodGroup. The rest is the engine's: it holds a group back until enough of its pods exist, tries it whole in a
what-if and commits it whole. Here is what the groups are, and in which order they are tried:

    system-critical pods   by priority, as always
    groups bound in part   the oldest first: what is missing of them stops what runs already
    groups that have aged  the oldest first, so that neither size nor priority starves them
    all others             by priority, then age (of the PodGroup, the oldest member, or the pod), then name
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.config.document import flag, shown
from stowplan.framework.interfaces import UNKNOWN, Group, QueueEntry, Wake
from stowplan.framework.verdict import SKIP, Refuse, Skip
from stowplan.objects import applications, quantity, spark
from stowplan.objects.actions import Patch
from stowplan.objects.applications import BY_KUBERNETES, BY_LABELS, Identity
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.pod_groups import PodGroup, SigsPodGroup
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.coscheduling.kubernetes_status import KubernetesGroupStatus
from stowplan.plugins.nodes.coscheduling.sigs_status import SigsGroupStatus

SYSTEM_CRITICAL = 2_000_000_000
MATCHES = ("waiting-and-running", "only-waiting", "once-satisfied")
COMPLETE, EVICT = "Complete", "Evict"


class Coscheduling:
    reads = ("PodGroup", "SigsPodGroup")
    reconciles = ("PodGroup", "SigsPodGroup", "Pod")
    wanted_at: ClassVar = {
        "queueSort": "groups do not age, and what is missing of one that is bound in part does not go first",
        "preFilter": "a pod whose labels cannot be read or contradict each other is placed alone, not told so",
    }
    configurable_at = ("filter", "postFilter", "reserve", "permit", "postBind")  # the engine's part here

    def __init__(
        self,
        permit_waiting_time_seconds: float = 10,
        starvation_seconds: float = 300,
        match_policy: str = MATCHES[0],
        on_partial_bind: str = COMPLETE,
        partial_bind_deadline_seconds: float = 60,
        preemption: bool = True,
    ) -> None:
        """The first is how long members of a group may take to be ready to be bound, where no PodGroup says it."""
        self._timeout = _seconds("permitWaitingTimeSeconds", permit_waiting_time_seconds)
        self.ages_after = _seconds("starvationSeconds", starvation_seconds)
        self._match = _one_of("matchPolicy", match_policy, MATCHES)
        self._evicts = _one_of("onPartialBind", on_partial_bind, (COMPLETE, EVICT)) == EVICT
        self._told_after = _seconds("partialBindDeadlineSeconds", partial_bind_deadline_seconds)
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
        told = _object(found, name, cluster)
        if told is None:
            return self._group(name, UNKNOWN)  # its pods are held back until it is there
        if isinstance(told, PodGroup):
            return self._group(name, told.minimum, created=told.metadata.creation_timestamp)
        return self._group(
            name,
            told.minimum,
            created=told.metadata.creation_timestamp,
            timeout=float(told.spec.schedule_timeout_seconds or self._timeout),
            resources={each: quantity.of(each, text) for each, text in told.spec.min_resources.items()},
        )

    def _group(self, name: str, minimum: int, **more: Any) -> Group:
        more.setdefault("timeout", self._timeout)
        return Group(
            name,
            minimum,
            match=self._match,
            evicts=self._evicts,
            told_after=self._told_after,
            preempts=self._preempts,
            **more,
        )

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Refuse | Skip:  # noqa: ARG002
        """Labels that cannot be read or contradict each other are told; nothing is guessed."""
        problem = applications.identity(pod).problem
        return Refuse((f"pod group: {problem}",), resolvable=False) if problem else SKIP

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Refuse | None:
        found = applications.identity(pod)
        if found.group and not found.problem and found.source != BY_LABELS:
            name = f"{pod.namespace}/{found.group}"
            if _object(found, name, cluster) is None:
                return Refuse((f"PodGroup {name} of {found.source} does not exist",), resolvable=False, waits=True)
        return None

    def wakes_on(self) -> Iterable[Wake]:
        for kind in self.reads:
            yield Wake(kind, ("Add", "Update"), hint="its_group")
        yield Wake("Pod", ("Update",), own=True)

    def its_group(self, pod: Pod, old: Object | None, new: Object) -> bool:  # noqa: ARG002
        return (new.namespace, new.name) == (pod.namespace, applications.identity(pod).group)

    # -- the order

    def sort_key(self, pod: Pod, queued_at: float) -> Any:
        return self.group_key(QueueEntry(pod, queued_at, created=pod.metadata.creation_timestamp))

    def group_key(self, waiting: QueueEntry) -> tuple[int, int, float, str, str]:
        priority = waiting.pod.priority
        since = waiting.created.timestamp() if waiting.created is not None else waiting.queued_at
        if priority >= SYSTEM_CRITICAL:
            place = (0, -priority)
        elif waiting.in_part or waiting.aged:
            place = (1 if waiting.in_part else 2, 0)
        else:
            place = (3, -priority)
        return (*place, since, waiting.group, waiting.pod.key)

    # -- what PodGroups are told

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterable[Patch]:
        yield from self._statuses.patches(changed, cluster)
        yield from self._conditions.patches(changed, cluster)


def _object(found: Identity, key: str, cluster: Cluster) -> PodGroup | SigsPodGroup | None:
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
