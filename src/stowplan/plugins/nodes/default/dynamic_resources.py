"""DynamicResources: a pod with resource claims gets a node where all of them can be allocated.

Which devices its claims get on each node, `device_claims/` finds out, device by device as kube-scheduler does it. When
the node is chosen, the claims are assumed to be allocated (reserve), so that no other pod gets the same devices.
pre_bind writes that, and the pod waits for devices that must be prepared (pre_bound).

    allocated claims     the node must be one that can use the devices, and these must not have failed
    unallocated claims   there must be devices for all of them together
    extended resources   that a device class stands for are allocated through a claim that the scheduler makes

No eviction frees a device: a claim stays allocated when its pod goes. So none of the reasons is resolvable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import msgspec
import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.decision import SKIP, Decision, NotYet, PostFilterResult, Reject, RejectPod, Skip
from stowplan.framework.interfaces import Evaluator, Wake
from stowplan.framework.scoring import MAX_SCORE
from stowplan.objects.actions import (
    AllocateClaims,
    AnyAction,
    DeallocateClaim,
    Record,
)
from stowplan.objects.errors import DecisionError
from stowplan.objects.pods import Pod
from stowplan.objects.resource_claims import AllocationResult, ResourceClaim
from stowplan.objects.selectors import compile_node_selector
from stowplan.plugins.nodes.default.device_claims import (
    bindings,
    claim_writes,
    device_causes,
    joint,
    node_answers,
    planner,
)
from stowplan.plugins.nodes.default.device_claims.extended_resources import IN_MEMORY
from stowplan.plugins.nodes.default.device_claims.planner import PlannedClaim, Planner, PodNeeds
from stowplan.plugins.nodes.default.device_claims.pod_claims import claims_of, problem
from stowplan.plugins.nodes.default.device_claims.questions import FatalError

NAME = "DynamicResources"
PLAIN = ("cpu", "memory", "ephemeral-storage")  # resources that no device class stands for
UNAVAILABLE = "resourceclaim not available on the node"
LEFTOVER = "cannot schedule extended resource claim"


class DynamicResources:
    reads = ("DeviceClass", "ResourceSlice", "ResourceClaim")
    writes: ClassVar = {"ResourceClaim": ("create", "status", "patch", "delete")}
    local = "node"
    skip_is_final = True
    scores_by_node = True  # of pods without claims: all nodes get 0
    pre_bind_late = "device binding timeout"
    hints_in_cluster = ("claim_changed", "claims_made")  # hints that are called with the cluster, too

    def __init__(self, filter_timeout: float = 10.0, binding_timeout: float = bindings.DEFAULT_TIMEOUT) -> None:
        """`bindingTimeout`: how long devices may take to be prepared. `filterTimeout` bounds kube-scheduler's search;
        ours is bounded by the number of its steps.
        """
        self.filter_timeout, self.pre_bind_timeout = filter_timeout, binding_timeout
        self._planner = Planner()

    # -- before the nodes

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> RejectPod | None:
        claims = claims_of(pod, cluster) if pod.spec.resource_claims else ()
        return RejectPod((claims,), resolvable=False) if isinstance(claims, str) else None

    def pre_filters_by_shape(self, pod: Pod) -> bool:
        """True for pods without claims that no device class can concern."""
        return not pod.spec.resource_claims and len(pod.request) <= sum(name in pod.request for name in PLAIN)

    def pre_filter(self, pod: Pod, cluster: Cluster) -> RejectPod | Skip | None:
        needs = self._needs(pod, cluster)
        if isinstance(needs, str):
            return RejectPod((needs,), resolvable=False)
        if needs is None:
            return SKIP
        found = next((text for claim in needs.claims if (text := problem(pod, claim, cluster))), "")
        if found:
            return RejectPod((found,), resolvable=False)
        cluster.notes[NAME] = (cluster.state.store.version, needs)
        return None

    def _needs(self, pod: Pod, cluster: Cluster) -> PodNeeds | str | None:
        """Return what the pod needs of devices; None for nothing, a text if a claim cannot be used."""
        claims = claims_of(pod, cluster) if pod.spec.resource_claims else []
        if isinstance(claims, str):
            return claims
        devices = cluster.state.devices
        needs = PodNeeds(claims, devices.classes.current().backed(pod.request))
        if needs.backed:
            devices.catch_up()
            key = devices.in_use.of_extended.get(pod.uid, "")
            needs.leftover = cluster.get(ResourceClaim, key) if key else None
        return needs if needs.claims or needs.backed else None

    def _noted(self, pod: Pod, cluster: Cluster) -> PodNeeds | str | None:
        version, needs = cluster.notes.get(NAME, (-1, None))
        return needs if version == cluster.state.store.version else self._needs(pod, cluster)

    # -- nodes

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        needs = self._noted(pod, nodes.cluster)
        if needs is None:
            return
        if isinstance(needs, str):  # reached only if a configuration disables preFilter
            yield Reject(np.ones(len(nodes), np.bool_), needs, resolvable=False)
            return
        if needs.leftover is not None and needs.leftover.spec.devices.requests:
            yield Reject(np.ones(len(nodes), np.bool_), LEFTOVER, resolvable=False)
            return
        codes = self._codes(pod, needs, nodes)
        if pod.uid in nodes.cluster.state.deciding:
            codes = self._jointly(pod, needs, nodes, codes)
        for code, reason in node_answers.REASONS.items():
            rejected: Bools = codes == code
            if rejected.any():
                yield Reject(rejected, reason, resolvable=False)
        unavailable = np.zeros(len(nodes), np.bool_)
        for claim in needs.allocated:
            unavailable |= self._unavailable(claim, nodes)
        unavailable &= codes == node_answers.FITS
        if unavailable.any():
            yield Reject(unavailable, UNAVAILABLE, resolvable=False)

    def _codes(self, pod: Pod, needs: PodNeeds, nodes: Nodes) -> Any:
        """Return whether the claims can be allocated on each node. An error on one node ends the decision."""
        codes = np.full(len(nodes), node_answers.FITS, np.int8)
        for group in self._planner.groups(pod, needs, nodes, nodes.cluster.state.devices.classes.current()):
            if group.answers is None:
                continue
            found = self._planner.codes(group, nodes.cluster)
            error = group.answers.error(group.rows) if (found == node_answers.FATAL).any() else None
            if error is not None:
                raise DecisionError(NAME, "filter", error.message(group.keys))
            if len(group.rows) == len(nodes):
                return found
            codes[planner.mask(group.rows, nodes.rows)] = found
        return codes

    def _jointly(self, pod: Pod, needs: PodNeeds, nodes: Nodes, codes: Any) -> Any:
        """Correct the answers for nodes where the claims can be allocated together with those of other members."""
        cluster = nodes.cluster
        for at in (codes == node_answers.FAILS).nonzero()[0].tolist():
            row = int(nodes.rows[at])
            if joint.has_members(pod, row, cluster) and not needs.backed:
                found = joint.find(pod, needs.unallocated, row, cluster, self._planner)
                codes[at] = codes[at] if found is None else node_answers.FITS
        return codes

    def _unavailable(self, claim: ResourceClaim, nodes: Nodes) -> Bools:
        """Return the nodes that cannot use an allocated claim."""
        everywhere: Bools = np.ones(len(nodes), np.bool_)
        if bindings.is_unusable(claim, nodes.cluster.state.wall_time, self.pre_bind_timeout):
            return everywhere
        selector = None if claim.allocation is None else claim.allocation.node_selector
        return ~everywhere if selector is None else ~nodes.matching_any(compile_node_selector(selector))

    def node_verdict(self, pod: Pod, node_name: str, cluster: Cluster) -> tuple[str, str] | None:
        """Return the code and the reason for which a node is rejected, errors included; None: it is feasible."""
        at = cluster.nodes.position(node_name)
        here = cluster.nodes.where(np.array([] if at is None else [at], np.int64))
        try:
            found = list(self.filter(pod, here))
        except DecisionError as error:
            return "Error", str(error)
        return ("UnschedulableAndUnresolvable", found[0].reason) if found else None

    def score(self, pod: Pod, nodes: Nodes) -> Ints | int:
        """Prefer nodes that provide earlier alternatives of requests."""
        needs = self._noted(pod, nodes.cluster)
        if needs is None or isinstance(needs, str) or not any(map(planner.has_lists, needs.claims)):
            return 0
        of_allocated = sum(map(planner.preference_of_allocated, needs.allocated))
        scores = np.zeros(len(nodes), np.int64)
        for group in self._planner.groups(pod, needs, nodes, nodes.cluster.state.devices.classes.current()):
            if group.answers is not None:
                self._planner.codes(group, nodes.cluster)
                found = [of_allocated + planner.preference(group, row) for row in group.rows.tolist()]
                scores[planner.mask(group.rows, nodes.rows)] = found
        most = int(scores.max(initial=0))
        return scores * MAX_SCORE // most if most else 0

    # -- the chosen node

    def allocations(self, pod: Pod, node_name: str, cluster: Cluster) -> list[PlannedClaim]:
        """Return what the pod's claims that are not allocated yet get on a node."""
        needs = self._needs(pod, cluster)
        at = cluster.nodes.position(node_name)
        if needs is None or isinstance(needs, str) or at is None:
            return []
        here = cluster.nodes.where(np.array([at], np.int64))
        found: list[PlannedClaim] = []
        for group in self._planner.groups(pod, needs, here, cluster.state.devices.classes.current()):
            try:
                found += self._planner.planned(group, int(here.rows[0]), cluster)
            except FatalError as error:
                raise DecisionError(NAME, "filter", error.message(group.keys)) from None
        return found

    def reserve(self, pod: Pod, node_name: str, cluster: Cluster) -> RejectPod | None:
        """Assume that the pod's claims are allocated as planned."""
        needs = self._needs(pod, cluster)
        if needs is None:
            return None
        try:
            planned = {} if isinstance(needs, str) else {p.key: p for p in self.allocations(pod, node_name, cluster)}
        except LookupError:
            return self._reserve_jointly(pod, needs, node_name, cluster)
        if isinstance(needs, str):
            return RejectPod((needs,), resolvable=False)
        assumed = cluster.state.assumed
        for claim in needs.claims:
            plan = planned.pop(claim.key, None)
            assumed.take(pod.uid, claim if plan is None else _allocated(claim, plan.allocation))
        for plan in planned.values():
            metadata = msgspec.structs.replace(plan.claim.metadata, name=f"{IN_MEMORY} {pod.uid}")
            metadata = msgspec.structs.replace(metadata, annotations={})  # not to be found as one of the server's
            assumed.invent(pod.uid, _allocated(msgspec.structs.replace(plan.claim, metadata=metadata), plan.allocation))
        return None

    def _reserve_jointly(self, pod: Pod, needs: PodNeeds | str, node_name: str, cluster: Cluster) -> RejectPod | None:
        """Allocate again what other members of the pod's group reserved on the node, together with the pod's claims."""
        row = cluster.state.table.row_of[node_name]
        claims = [] if isinstance(needs, str) else needs.unallocated
        found = joint.find(pod, claims, row, cluster, self._planner)
        if found is None or isinstance(needs, str):
            return RejectPod((node_answers.NOT_ALL,), resolvable=False)
        joint.reallocate(found, cluster)
        for claim in needs.claims:
            allocation = found.allocations.get(claim.key)
            now = cluster.get(ResourceClaim, claim.key) or claim
            cluster.state.assumed.take(pod.uid, now if allocation is None else _allocated(now, allocation))
        return None

    def unreserve(self, pod: Pod, node_name: str, cluster: Cluster) -> None:  # noqa: ARG002
        cluster.state.assumed.release(pod.uid)

    # -- writes

    def pre_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterator[AnyAction]:
        writes = claim_writes.allocating(pod, node_name, cluster)
        if writes:
            yield AllocateClaims(pod=claim_writes.ref(pod), claims=tuple(writes))
        if any(bindings.needs_preparing(claim.allocation) for claim in claim_writes.taken(pod, cluster)):
            note = f"waiting for binding conditions for device on node {node_name}"
            yield Record(
                pod=claim_writes.ref(pod), type="Normal", reason="BindingConditionsPending", action="Scheduling",
                note=note, reporting_controller=pod.scheduler_name,
            )  # fmt: skip

    def undo_pre_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> Iterator[AnyAction]:  # noqa: ARG002
        """Take the pod out of the claims that it was written to, and delete the one made for it."""
        released = claim_writes.releasing(pod, cluster)
        if released.claims:
            yield released

    def pre_bound(self, pod: Pod, node_name: str, cluster: Cluster) -> bool | NotYet | RejectPod:  # noqa: ARG002
        """True if the devices are prepared, and the claim for extended resources is seen."""
        until = claim_writes.unprepared(pod, cluster, self.pre_bind_timeout)
        if isinstance(until, str):
            return RejectPod((until or self.pre_bind_late,))
        return NotYet(frozenset(until)) if until else True

    # -- no node

    def post_filter(self, pod: Pod, decision: Decision, evaluator: Evaluator) -> PostFilterResult:
        """Deallocate a claim that nobody else uses, so that other devices can be tried. Preemption goes on."""
        if not evaluator.pre_filtered(NAME):
            return PostFilterResult(("not found",), settles=True)
        cluster = Cluster(evaluator.state)
        found = self.deallocations(pod, decision, cluster)
        if found:
            done = "deletion" if found[0].delete else "deallocation"
            return PostFilterResult((f"{done} of ResourceClaim completed",), actions=(found[0],))
        refused = decision.refused is not None and decision.refused.plugin == NAME
        if refused or self._needs(pod, cluster) is None:
            return PostFilterResult(("no new claims to deallocate",))
        return PostFilterResult(("still not schedulable",))

    def deallocations(self, pod: Pod, decision: Decision, cluster: Cluster) -> list[DeallocateClaim]:
        """Return the writes of which any one may help."""
        needs = self._needs(pod, cluster)
        if needs is None or isinstance(needs, str):
            return []
        if needs.leftover is not None:
            return [
                DeallocateClaim(pod=claim_writes.ref(pod), key=needs.leftover.key, uid=needs.leftover.uid, delete=True)
            ]
        rejected = np.array(
            [verdict.plugin == NAME and UNAVAILABLE in verdict.reasons for verdict in decision.trail.verdicts]
        )
        positions = [at for at, code in enumerate(decision.trail.verdict_of.tolist()) if code >= 0 and rejected[code]]
        where = cluster.nodes.where(np.array(positions, np.int64))
        unavailable = [claim for claim in needs.allocated if self._unavailable(claim, where).any()]
        return [
            DeallocateClaim(pod=claim_writes.ref(pod), key=claim.key, uid=claim.uid)
            for claim in bindings.free_to_deallocate(unavailable, pod.uid)
        ]

    # -- why

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        needs = self._needs(pod, nodes.cluster)
        if not isinstance(needs, PodNeeds):
            return
        for claim in needs.allocated:
            unavailable = self._unavailable(claim, nodes)
            if unavailable.any():
                yield NodeCause(unavailable, device_causes.elsewhere(claim))
        classes = nodes.cluster.state.devices.classes.current()
        yield from device_causes.of_groups(self._planner.groups(pod, needs, nodes, classes), nodes)

    def pod_causes(self, pod: Pod, cluster: Cluster) -> Iterator[Cause]:
        needs = self._needs(pod, cluster)
        if isinstance(needs, str):
            yield Cause("resource-claim", needs, {})
        elif needs is not None:
            problems = (problem(pod, claim, cluster) for claim in needs.claims)
            yield from (Cause("resource-claim", text, {}) for text in problems if text)

    # -- requeueing

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Node", ("Add", "UpdateNodeLabel", "UpdateNodeAllocatable"))
        yield Wake("ResourceClaim", ("Add", "Update"), hint="claim_changed")
        yield Wake("Pod", ("UpdatePodGeneratedResourceClaim",), hint="claims_made", own=True)
        yield Wake("DeviceClass", ("Add", "Update"))
        yield Wake("ResourceSlice", ("Add", "Update"))

    def claim_changed(self, pod: Pod, old: ResourceClaim | None, new: ResourceClaim | None, cluster: Cluster) -> bool:
        """True if the pod's claims are all there, and one of them changed, or devices became free."""
        claims = claims_of(pod, cluster)
        if new is None or isinstance(claims, str):
            return False
        if old is not None and old.allocation is not None and new.allocation is None:
            return True
        own = any(claim.uid == new.uid for claim in claims)
        return own and (old is None or old.status != new.status)

    def claims_made(self, pod: Pod, old: Pod | None, new: Pod | None, cluster: Cluster) -> bool:  # noqa: ARG002
        """True if all claims of the pod, as it is now, are there."""
        return new is not None and not isinstance(claims_of(new, cluster), str)


def _allocated(claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
    return msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, allocation=allocation))
