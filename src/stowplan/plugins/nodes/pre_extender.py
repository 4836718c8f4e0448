"""PreExtender: HTTP extenders see each pod with the labels by which they know applications and groups.

A pod may name them in several ways (`objects.applications`). Extenders always see

    spark-app-id, spark-role                               application and role
    pod-group.scheduling.kubenexus.io/name, /min-available the group, and how many members must run together
    pod-group.scheduling.sigs.k8s.io/name, /min-available  the same, under the older names

on a copy of the pod; the pod itself is not changed. A pod whose labels contradict each other is refused, because it is
not clear which labels an extender should see.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.causes import Cause
from stowplan.framework.config.document import flag
from stowplan.framework.decision import SKIP, RejectPod, Skip
from stowplan.framework.interfaces import Wake
from stowplan.objects import applications
from stowplan.objects.applications import APPLICATIONS, BY_KUBERNETES, BY_LABELS, MINIMA, NAMES, ROLES, Identity
from stowplan.objects.pod_groups import PodGroup, SigsPodGroup
from stowplan.objects.pods import Pod


class PreExtender:
    reads = ("PodGroup", "SigsPodGroup")
    configurable_at = ("filter",)

    def __init__(self, app_id_from_pod_name: bool = False) -> None:
        """`appIdFromPodName`: extenders see a pod without an application as one of its own.

        Its name is the `spark-app-id` then, as in KubeNexus, for extenders that only know Spark applications.
        """
        self._app_id_from_name = flag("appIdFromPodName", app_id_from_pod_name)

    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | Skip:  # noqa: ARG002
        problem = applications.identity(pod).problem
        return RejectPod((f"labels for extenders: {problem}",), resolvable=False) if problem else SKIP

    def pod_causes(self, pod: Pod, cluster: Cluster) -> Iterator[Cause]:  # noqa: ARG002
        problem = applications.identity(pod).problem
        yield Cause("extender-labels", f"labels for extenders: {problem}", {"problem": problem})

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Pod", ("Update",), own=True)

    def for_extenders(self, pod: Pod, cluster: Cluster) -> dict[str, str]:
        found = applications.identity(pod)
        if found.problem:
            return {}  # a victim for example; extenders see its own labels
        application = found.application or (pod.name if self._app_id_from_name else "")
        shown = {APPLICATIONS[0]: application, ROLES[0]: found.role}
        if found.group:
            minimum = _minimum(found, pod.namespace, cluster)
            shown |= dict.fromkeys(NAMES, found.group)
            shown |= dict.fromkeys(MINIMA, str(minimum) if minimum else "")
        return {key: value for key, value in shown.items() if value}


def _minimum(found: Identity, namespace: str, cluster: Cluster) -> int:
    """Return how many members must run together; 0 if the PodGroup does not exist."""
    if found.source == BY_LABELS:
        return found.minimum
    kind: type[PodGroup] | type[SigsPodGroup] = PodGroup if found.source == BY_KUBERNETES else SigsPodGroup
    group = cluster.get(kind, f"{namespace}/{found.group}")
    return 0 if group is None else group.minimum
