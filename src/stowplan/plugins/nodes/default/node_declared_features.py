"""NodeDeclaredFeatures: the node must declare the kubelet features that the pod's spec requires."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.decision import SKIP, Reject, Skip
from stowplan.framework.interfaces import Wake
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

REASON = "node(s) didn't match Pod's required features"


class NodeDeclaredFeatures:
    local = "node"
    pre_filters_by_shape = True
    filters_by_row = True
    ignores_requests = ignores_volumes = True

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Skip | None:  # noqa: ARG002
        return None if needed_features(pod) else SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        needed = needed_features(pod)
        yield Reject(nodes.features.where(lambda declared: not needed <= declared), REASON, resolvable=False)

    def fits(self, pod: Pod, node: OneNode) -> tuple[str, bool] | None:
        return None if needed_features(pod) <= set(node.node.status.declared_features) else (REASON, False)

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        needed = sorted(needed_features(pod))
        for feature, rows in nodes.features.having(lambda declared: [each for each in needed if each not in declared]):
            text = f"the node does not declare the feature {feature}, which the pod needs"
            yield NodeCause(rows, Cause("feature", text, {"feature": feature}))

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Node", ("Add", "UpdateNodeDeclaredFeature"), hint="node_declares_features")
        yield Wake("Pod", ("Update",), hint="pod_needs_other_features", own=True)

    def node_declares_features(self, pod: Pod, old: Node | None, new: Node | None) -> bool:
        needed = needed_features(pod)
        had = old is not None and needed <= set(old.status.declared_features)
        return new is not None and not had and needed <= set(new.status.declared_features)

    def pod_needs_other_features(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:  # noqa: ARG002
        return old is None or new is None or needed_features(old) != needed_features(new)


def needed_features(pod: Pod) -> frozenset[str]:
    """Return the features that Kubernetes 1.36 infers from a pod's spec."""
    spec = pod.spec
    features = set()
    rules = (rule for container in (*spec.containers, *spec.init_containers) for rule in container.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        features.add("RestartAllContainersOnContainerExits")
    if spec.host_network and spec.host_users is False:
        features.add("UserNamespacesHostNetworkSupport")
    return frozenset(features)
