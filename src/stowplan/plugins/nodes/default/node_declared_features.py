"""NodeDeclaredFeatures: features of the kubelet that a pod's spec cannot do without must be declared by the node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.interfaces import Wake
from stowplan.framework.verdict import SKIP, Reject, Skip
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

REASON = "node(s) didn't match Pod's required features"


class NodeDeclaredFeatures:
    local = "node"
    filters_by_row = True

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Skip | None:  # noqa: ARG002
        return None if needed_features(pod) else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        needed = needed_features(pod)
        yield Reject(nodes.features.where(lambda declared: not needed <= declared), REASON, resolvable=False)

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Node", ("Add", "UpdateNodeDeclaredFeature"), hint="declares_them")
        yield Wake("Pod", ("Update",), hint="needs_others", own=True)

    def declares_them(self, pod: Pod, old: Node | None, new: Node | None) -> bool:
        needed = needed_features(pod)
        had = old is not None and needed <= set(old.status.declared_features)
        return new is not None and not had and needed <= set(new.status.declared_features)

    def needs_others(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:  # noqa: ARG002
        return old is None or new is None or needed_features(old) != needed_features(new)


def needed_features(pod: Pod) -> frozenset[str]:
    """The features Kubernetes 1.36 infers from a pod's spec."""
    spec = pod.spec
    features = set()
    rules = (rule for container in (*spec.containers, *spec.init_containers) for rule in container.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        features.add("RestartAllContainersOnContainerExits")
    if spec.host_network and spec.host_users is False:
        features.add("UserNamespacesHostNetworkSupport")
    return frozenset(features)
