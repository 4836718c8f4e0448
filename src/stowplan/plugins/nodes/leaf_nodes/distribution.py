"""LeafNodeDistribution: which sort of nodes a pod may have, by Kosmos' distribution policies.

A policy selects pods (resourceSelectors) and says by the name of a term (policyTerms) which nodes they may have:

    host     nodes of the host cluster
    leaf     leaf nodes, which have the label kosmos.io/node
    adv      the node of a name, nodes with all of some labels, or nodes with one of some taints
    mix      all nodes; pods that no policy selects may have all nodes, too

`policy_index.py` says which policy wins if several select a pod. Pods of DaemonSets belong to their nodes and have no
policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.decision import SKIP, Reject, Skip
from stowplan.framework.interfaces import Wake
from stowplan.objects import selectors
from stowplan.objects.custom_resources import CustomResource
from stowplan.objects.distribution_policies import AdvancedTerm, ClusterDistributionPolicy, DistributionPolicy
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.taints import Taint
from stowplan.plugins.nodes.leaf_nodes.columns import LEAF_LABEL
from stowplan.plugins.nodes.leaf_nodes.policy_index import PolicyIndex, Selected


class LeafNodeDistribution:
    reads = (
        CustomResource(DistributionPolicy, group="kosmos.io", version="v1alpha1", plural="distributionpolicies"),
        CustomResource(
            ClusterDistributionPolicy, group="kosmos.io", version="v1alpha1", plural="clusterdistributionpolicies",
            namespaced=False,
        ),
    )  # fmt: skip

    def __init__(self, kube_config_path: str = "") -> None:
        """`kubeConfigPath` is an argument of the original, and not used."""
        unused = "kubeConfigPath is not used, policies are read from the cluster whose pods are scheduled"
        self.config_notes: tuple[str, ...] = (unused,) if kube_config_path else ()
        self._policies = PolicyIndex()

    def pre_filter(self, pod: Pod, cluster: Cluster) -> Skip | None:
        found = self._found(pod, cluster)
        return SKIP if found is None or found.term.node_type in ("mix", "") else None

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        found = self._found(pod, nodes.cluster)
        if found is None:
            return
        leaf = nodes.label(LEAF_LABEL).present
        match found.term.node_type:
            case "host":
                yield Reject(leaf, f"node(s) were leaf nodes, and {found} wants host nodes", resolvable=False)
            case "leaf":
                yield Reject(~leaf, f"node(s) were host nodes, and {found} wants leaf nodes", resolvable=False)
            case "adv":
                others = ~_meeting(found.term.advanced_term, nodes)
                yield Reject(others, f"node(s) didn't match the advancedTerm of {found}", resolvable=False)
            case "mix" | "":
                return
            case other:
                nowhere = np.ones(len(nodes), np.bool_)
                right = "host, leaf, mix or adv is right"
                yield Reject(nowhere, f"the nodeType of {found} is {other!r}; {right}", resolvable=False)

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        found = self._found(pod, nodes.cluster)
        if found is not None:
            kind = found.term.node_type
            wants = {"host": "host nodes", "leaf": "leaf nodes", "adv": "the nodes of its advancedTerm"}
            text = f"{found} wants {wants[kind]}" if kind in wants else f"{found} has the unknown nodeType {kind!r}"
            details = {"policy": found.policy.key, "kind": type(found.policy).__name__, "nodeType": kind}
            yield NodeCause(np.ones(len(nodes), np.bool_), Cause("distribution-policy", text, details))

    def _found(self, pod: Pod, cluster: Cluster) -> Selected | None:
        """Return the pod's policy, looked up once for a decision; None if the pod has none."""
        cached = cluster.notes.get("LeafNodeDistribution")
        if cached is None or cached[0] is not pod:
            answer = None if pod.of_daemon_set else self._policies.find(pod, cluster)
            cached = cluster.notes["LeafNodeDistribution"] = (pod, answer)
        found: Selected | None = cached[1]
        return found

    # -- requeueing

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("DistributionPolicy", ("Add", "Update", "Delete"), hint="of_its_namespace")
        yield Wake("ClusterDistributionPolicy", ("Add", "Update", "Delete"))
        yield Wake("Node", ("Add", "UpdateNodeLabel", "UpdateNodeTaint"))
        yield Wake("Pod", ("UpdatePodLabel",), own=True)

    def of_its_namespace(self, pod: Pod, old: Object | None, new: Object | None) -> bool:
        return any(each is not None and each.namespace == pod.namespace for each in (old, new))


def _meeting(term: AdvancedTerm, nodes: Nodes) -> Bools:
    """True for nodes that meet one of the conditions of a term."""
    found: Bools = nodes.name == term.node_name
    if term.node_selector:
        found = found | nodes.matching(selectors.from_labels(term.node_selector))
    if term.tolerations:
        wanted = {(each.key, each.value, each.effect) for each in term.tolerations}
        found = found | nodes.taints.where(lambda taints: _has_one(taints, wanted))
    return found


def _has_one(taints: Iterable[Taint], wanted: set[tuple[str, str, str]]) -> bool:
    return any((taint.key, taint.value, taint.effect) in wanted for taint in taints)
