"""PreExtender: HTTP extenders see each pod with the labels by which they know applications and groups.

However a pod spells it (`objects.applications`), an extender is shown

    spark-app-id, spark-role                               application and role
    pod-group.scheduling.kubenexus.io/name, /min-available the group, and how many of it must run together
    pod-group.scheduling.sigs.k8s.io/name, /min-available  the same, under the older names

on a copy. The pod itself is never changed, neither here nor in the cluster. One whose labels contradict each other is
refused: nobody could say which of them an extender should see.
"""

from __future__ import annotations

from collections.abc import Iterable

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.config.document import flag
from stowplan.framework.interfaces import Wake
from stowplan.framework.verdict import SKIP, Refuse, Skip
from stowplan.objects import applications
from stowplan.objects.applications import APPLICATIONS, BY_KUBERNETES, BY_LABELS, MINIMA, NAMES, ROLES, Identity
from stowplan.objects.pod_groups import PodGroup, SigsPodGroup
from stowplan.objects.pods import Pod


class PreExtender:
    reads = ("PodGroup", "SigsPodGroup")
    configurable_at = ("filter",)

    def __init__(self, app_id_from_pod_name: bool = False) -> None:
        """With it, a pod of no application is shown as one of its own: its name as `spark-app-id`, as KubeNexus has
        it for extenders that know nothing but Spark applications.
        """
        self._named_alone = flag("appIdFromPodName", app_id_from_pod_name)

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Refuse | Skip:  # noqa: ARG002
        problem = applications.identity(pod).problem
        return Refuse((f"labels for extenders: {problem}",), resolvable=False) if problem else SKIP

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Pod", ("Update",), own=True)

    def for_extenders(self, pod: Pod, cluster: Cluster) -> dict[str, str]:
        found = applications.identity(pod)
        if found.problem:
            return {}  # a victim, say; it is shown as it is
        application = found.application or (pod.name if self._named_alone else "")
        shown = {APPLICATIONS[0]: application, ROLES[0]: found.role}
        if found.group:
            minimum = _minimum(found, pod.namespace, cluster)
            shown |= dict.fromkeys(NAMES, found.group)
            shown |= dict.fromkeys(MINIMA, str(minimum) if minimum else "")
        return {key: value for key, value in shown.items() if value}


def _minimum(found: Identity, namespace: str, cluster: Cluster) -> int:
    """0 if whoever says it does not exist."""
    if found.source == BY_LABELS:
        return found.minimum
    kind: type[PodGroup] | type[SigsPodGroup] = PodGroup if found.source == BY_KUBERNETES else SigsPodGroup
    told = cluster.get(kind, f"{namespace}/{found.group}")
    return 0 if told is None else told.minimum
