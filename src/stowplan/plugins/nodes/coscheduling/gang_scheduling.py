"""GangScheduling: kube-scheduler's plugin for Kubernetes' own PodGroups, under its name.

A configuration of kube-scheduler with the feature gate GangScheduling lists it among the default plugins. It schedules
pods with `spec.schedulingGroup` as Coscheduling does. It knows no labels, has no arguments, and leaves the order of the
queue to another plugin. Without the gate kube-scheduler does not enable it, and neither does Stowplan: it works where a
configuration lists it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.causes import Cause
from stowplan.framework.decision import RejectPod
from stowplan.framework.group import UNKNOWN, Group
from stowplan.framework.interfaces import Wake
from stowplan.objects.actions import Patch
from stowplan.objects.meta import Object
from stowplan.objects.pod_groups import PodGroup
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.coscheduling import kubernetes_group
from stowplan.plugins.nodes.coscheduling.kubernetes_status import KubernetesGroupStatus

PERMIT_TIMEOUT = 300.0  # seconds, as in kube-scheduler


class GangScheduling:
    reads = ("PodGroup",)
    writes: ClassVar = {"PodGroup": ("status",)}
    reconciles = ("PodGroup", "Pod")
    retries_by_object = True
    configurable_at = ("permit",)  # the engine does the work of this point

    def __init__(self) -> None:
        self._conditions = KubernetesGroupStatus()

    def group_of(self, pod: Pod, cluster: Cluster) -> Group | None:
        name = _key(pod)
        if not name:
            return None
        group = cluster.get(PodGroup, name)
        if group is None:
            return Group(name, UNKNOWN)  # its pods are gated until the object exists
        return Group(name, group.minimum, timeout=PERMIT_TIMEOUT, **kubernetes_group.definition(group))

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> RejectPod | None:
        name = _key(pod)
        if not name or cluster.get(PodGroup, name) is not None:
            return None
        return RejectPod((f"PodGroup {name} of scheduling.k8s.io does not exist",), resolvable=False, waits=True)

    def pod_causes(self, pod: Pod, cluster: Cluster) -> Iterator[Cause]:  # noqa: ARG002
        yield kubernetes_group.missing(_key(pod), "scheduling.k8s.io")

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("PodGroup", ("Add", "Update"), hint="its_group")

    def its_group(self, pod: Pod, old: Object | None, new: Object) -> bool:  # noqa: ARG002
        return new.key == _key(pod)

    def reconcile(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterable[Patch]:
        return self._conditions.patches(changed, cluster)


def _key(pod: Pod) -> str:
    """The key of the pod's PodGroup; empty if it has none."""
    named = pod.spec.scheduling_group
    return f"{pod.namespace}/{named.pod_group_name}" if named is not None and named.pod_group_name else ""
