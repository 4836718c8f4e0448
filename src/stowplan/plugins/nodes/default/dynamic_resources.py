"""DynamicResources without an allocator: it has its place in every order, its score of 0, and its messages.

A pod that needs claims is refused: binding it without allocating its devices would be wrong. It is refused when it is
attempted, not held back before the queue as kube-scheduler does with a pod whose claims do not exist yet: an attempt
that fails leaves a condition, an event and a line in the log, so that its owner learns why it waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.decision import SKIP, Decision, PostFilterResult, Reject, RejectPod, Skip
from stowplan.framework.interfaces import Evaluator, Wake
from stowplan.objects import devices
from stowplan.objects.devices import DeviceClass
from stowplan.objects.pods import Pod

NAME = "DynamicResources"
NOT_SUPPORTED = "this scheduler does not allocate resource claims yet"


class DynamicResources:
    reads = ("DeviceClass",)
    configurable_at = ("preEnqueue", "reserve", "preBind")
    local = "node"
    scores_by_node = True

    def __init__(self, filter_timeout: Any = None, binding_timeout: Any = None) -> None:
        """`filterTimeout` and `bindingTimeout` are accepted, and unused without an allocator."""

    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | Skip | None:
        return refusal(pod, cluster) or SKIP

    def filter(self, pod: Pod, nodes: Nodes) -> Iterable[Reject]:
        refused = refusal(pod, nodes.cluster)
        if refused is not None:  # reached only if a configuration disables preFilter
            yield Reject(np.ones(len(nodes), np.bool_), refused.reasons[0], resolvable=False)

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        everywhere = np.ones(len(nodes), np.bool_)
        yield from (NodeCause(everywhere, cause) for cause in self.pod_causes(pod, nodes.cluster))

    def pod_causes(self, pod: Pod, cluster: Cluster) -> Iterator[Cause]:
        for claim in pod.spec.resource_claims:
            text = f"resource claim {claim.name}: {NOT_SUPPORTED}"
            yield Cause("resource-claim", text, {"claim": claim.name})
        if not pod.spec.resource_claims:
            for name in _provided(pod, cluster):
                text = f"{name} is provided by a device class: {NOT_SUPPORTED}"
                yield Cause("resource-claim", text, {"resource": name})

    def score(self, pod: Pod, nodes: Nodes) -> int:  # noqa: ARG002
        return 0

    def post_filter(self, pod: Pod, decision: Decision, evaluator: Evaluator) -> PostFilterResult:  # noqa: ARG002
        """Return kube-scheduler's message; "not found" if another pre-filter refused the pod before this one."""
        if not evaluator.pre_filtered(NAME):
            return PostFilterResult(("not found",), settles=True)
        return PostFilterResult(("no new claims to deallocate",))

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("DeviceClass", ("Add", "Update", "Delete"), hint="names_no_claim")

    def names_no_claim(self, pod: Pod, old: DeviceClass | None, new: DeviceClass | None) -> bool:  # noqa: ARG002
        """A pod that names claims waits whatever happens; one with an extended resource depends on the classes."""
        return not pod.spec.resource_claims


def refusal(pod: Pod, cluster: Cluster) -> RejectPod | None:
    """Reject a pod that names claims, or requests an extended resource that a device class provides."""
    if pod.spec.resource_claims:
        names = " ".join(claim.name for claim in pod.spec.resource_claims)
        return RejectPod((f"{NOT_SUPPORTED}, and the pod needs [{names}]",), resolvable=False)
    needed = _provided(pod, cluster)
    if not needed:
        return None
    reason = f"{NOT_SUPPORTED}, and device classes provide {' '.join(needed)}, which the pod requests"
    return RejectPod((reason,), resolvable=False)


def _provided(pod: Pod, cluster: Cluster) -> list[str]:
    """Return the extended resources that the pod requests and device classes provide."""
    classes = cluster.every(DeviceClass)
    if not classes:
        return []
    backed = {each.spec.extended_resource_name for each in classes.values()} | {
        devices.IMPLICIT + name for name in classes
    }
    return sorted(name for name, amount in pod.request.items() if amount and name in backed)
