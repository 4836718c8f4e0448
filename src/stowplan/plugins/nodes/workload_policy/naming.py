"""Which WorkloadPolicy a pod has: the one that a label of the pod names, or a label of its owners."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from stowplan.columns.nodes.views import Cluster
from stowplan.objects.meta import Object, OwnerReference
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import Deployment, ReplicaSet, StatefulSet

SLASH, DOT = "workload-policy/kosmos.io", "workload-policy.kosmos.io"  # labels of pods; the first takes precedence
OWNERS: dict[str, type[Object]] = {"ReplicaSet": ReplicaSet, "Deployment": Deployment, "StatefulSet": StatefulSet}


def named_by(labels: Mapping[str, str]) -> str:
    """Return the name of the policy in these labels; empty if there is none."""
    return labels.get(SLASH) or labels.get(DOT) or ""


def renamed(changed: Iterable[Object]) -> set[str]:
    """Return the keys of the policies that owners name now or named before, of owners that name another one now.

    An update has two versions, of which one was known before.
    """
    versions: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)  # namespaces and names of policies, by uid
    for each in changed:
        if isinstance(each, tuple(OWNERS.values())):
            versions[each.uid].add((each.namespace, named_by(each.labels)))
    return {f"{namespace}/{name}" for named in versions.values() if len(named) > 1 for namespace, name in named}


def policy_name(pod: Pod, cluster: Cluster) -> str | OwnerReference:
    """Return the name of the pod's policy, empty if it has none; or the owner that must be known to say so.

    The pod's own label counts first, then that of its ReplicaSet, of the Deployment of that, or of its StatefulSet.
    """
    if pod.of_daemon_set:
        return ""
    return named_by(pod.labels) or _named_by_owner(pod.controller(), pod.namespace, cluster)


def _named_by_owner(owner: OwnerReference | None, namespace: str, cluster: Cluster) -> str | OwnerReference:
    for _ in range(2):
        if owner is None or owner.kind not in OWNERS or not owner.api_version.startswith("apps/"):
            return ""
        found = cluster.get(OWNERS[owner.kind], f"{namespace}/{owner.name}")
        if found is None or found.uid != owner.uid:  # or an earlier object of the same name
            return owner
        if named_by(found.labels):
            return named_by(found.labels)
        owner = found.controller()
    return ""
