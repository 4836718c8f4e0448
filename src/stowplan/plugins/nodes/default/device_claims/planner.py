"""What a pod's claims get on each node: the questions that they are, and the answers for the nodes of a view.

Claims for extended resources differ between nodes, since a node may offer the resource itself. So nodes are asked about
in groups: for each group the claims, and with them the question, are the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from stowplan.columns.arrays import Bools, Rows
from stowplan.columns.devices.classes import ClassesOfResources
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.objects.actions import RequestMapping
from stowplan.objects.devices import DeviceClass
from stowplan.objects.pods import Pod
from stowplan.objects.resource_claims import AllocationResult, DeviceRequest, ResourceClaim
from stowplan.plugins.nodes.default.device_claims import extended_resources, results
from stowplan.plugins.nodes.default.device_claims.device_expressions import DeviceExpressions
from stowplan.plugins.nodes.default.device_claims.node_answers import NodeAnswers
from stowplan.plugins.nodes.default.device_claims.questions import DeviceQuestion, FatalError

MOST_QUESTIONS = 256  # whose answers are kept for a cluster
_encode = msgspec.json.Encoder(enc_hook=str).encode


@dataclass(frozen=True, slots=True)
class PlannedClaim:
    """What a claim gets on a node. A claim of extended resources, which does not exist yet, has its requests, too."""

    key: str
    allocation: AllocationResult
    claim: ResourceClaim
    requests: tuple[DeviceRequest, ...] = ()
    mappings: tuple[RequestMapping, ...] = ()

    @property
    def of_extended_resources(self) -> bool:
        return self.key == extended_resources.IN_MEMORY


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes for which the same claims are to be allocated. `answers`: None if there is nothing to allocate."""

    rows: Rows
    claims: tuple[ResourceClaim, ...] = ()
    mappings: tuple[RequestMapping, ...] = ()
    answers: NodeAnswers | None = None

    @property
    def keys(self) -> list[str]:
        return [claim.key for claim in self.claims]


@dataclass(slots=True)
class PodNeeds:
    """What a pod needs of devices.

    claims     all its claims; those without an allocation are `unallocated`
    backed     the extended resources that it asks for and device classes stand for
    leftover   a claim that was made for these in an earlier attempt
    """

    claims: list[ResourceClaim]
    backed: list[str] = field(default_factory=list)
    leftover: ResourceClaim | None = None

    @property
    def unallocated(self) -> list[ResourceClaim]:
        return [claim for claim in self.claims if claim.allocation is None]

    @property
    def allocated(self) -> list[ResourceClaim]:
        return [claim for claim in self.claims if claim.allocation is not None]


class Planner:
    def __init__(self) -> None:
        self._expressions = DeviceExpressions()

    def groups(self, pod: Pod, needs: PodNeeds, nodes: Nodes, classes: ClassesOfResources) -> Iterator[NodeGroup]:
        """Yield the nodes of a view in groups, with the answers about them."""
        if not needs.backed or needs.leftover is not None:
            yield self.group(nodes.rows, needs.unallocated, nodes.cluster)
            return
        lacking = [np.asarray(nodes.allocatable[resource] == 0) for resource in needs.backed]
        for pattern in sorted({tuple(row) for row in np.stack(lacking, axis=1).tolist()}):
            rows = nodes.rows[np.all([column == want for column, want in zip(lacking, pattern, strict=True)], axis=0)]
            resources = [name for name, lacks in zip(needs.backed, pattern, strict=True) if lacks]
            if not resources and not needs.claims:
                yield NodeGroup(rows)
                continue
            requests, mappings = extended_resources.requests_of(pod, resources, classes)
            made = extended_resources.claim_for(pod, requests)
            yield self.group(rows, [*needs.unallocated, made], nodes.cluster, tuple(mappings))

    def group(
        self,
        rows: Rows,
        claims: Sequence[ResourceClaim],
        cluster: Cluster,
        mappings: tuple[RequestMapping, ...] = (),
    ) -> NodeGroup:
        """Return these rows as a group with these claims."""
        if not claims:
            return NodeGroup(rows)
        return NodeGroup(rows, tuple(claims), mappings, self._answers(claims, cluster))

    def _answers(self, claims: Sequence[ResourceClaim], cluster: Cluster) -> NodeAnswers:
        """Return the answers to what these claims ask, kept from the last time that somebody asked the same."""
        state = cluster.state
        kept: OrderedDict[Any, NodeAnswers] = state.devices.answers.setdefault(Planner, OrderedDict())
        key = (state.store.version_of(DeviceClass), *(_encode(claim.spec.devices) for claim in claims))
        found = kept.get(key)
        if found is None:
            found = kept[key] = NodeAnswers(DeviceQuestion(claims, state.store.every(DeviceClass), self._expressions))
            if len(kept) > MOST_QUESTIONS:
                kept.popitem(last=False)
        else:
            kept.move_to_end(key)
        return found

    def planned(self, group: NodeGroup, row: int, cluster: Cluster) -> list[PlannedClaim]:
        """Return what the claims get on a node of the group. Raise FatalError as the search does."""
        if group.answers is None:
            return []
        state = cluster.state
        devices = state.devices
        devices.catch_up()
        group.answers.refresh(state.table, devices)
        answer = group.answers.of_row(row, state.table, devices)
        if answer.error is not None:
            raise answer.error
        node = state.table.nodes[row]
        if answer.found is None or node is None:
            raise LookupError(f"the claims cannot be allocated on {state.table.names[row]}")
        seen = devices.of(node).devices
        allocated = results.allocations(group.answers.question, answer.found, seen, group.claims, node.name)
        return [
            _planned(claim, allocation, group.mappings)
            for claim, allocation in zip(group.claims, allocated, strict=True)
        ]

    def codes(self, group: NodeGroup, cluster: Cluster) -> Any:
        """Return the answers for the group's rows, as codes of `node_answers`."""
        assert group.answers is not None
        state = cluster.state
        state.devices.catch_up()
        group.answers.refresh(state.table, state.devices)
        return group.answers.of_rows(group.rows, state.table, state.devices)


def _planned(claim: ResourceClaim, allocation: AllocationResult, mappings: tuple[RequestMapping, ...]) -> PlannedClaim:
    if claim.name != extended_resources.IN_MEMORY:
        return PlannedClaim(claim.key, allocation, claim)
    return PlannedClaim(extended_resources.IN_MEMORY, allocation, claim, claim.spec.devices.requests, mappings)


def preference(group: NodeGroup, row: int) -> int:
    """Return kube-scheduler's score before it is normalised: earlier alternatives of requests count more."""
    if group.answers is None:
        return 0
    answer = group.answers.known(row)
    return 0 if answer is None or answer.found is None else sum(8 - at for at in answer.found.chosen.values())


def has_lists(claim: ResourceClaim) -> bool:
    """True if the claim has a request with alternatives."""
    return any(request.first_available for request in claim.spec.devices.requests)


def preference_of_allocated(claim: ResourceClaim) -> int:
    """Return the same for a claim that is allocated already: it counts wherever another one must be allocated."""
    given = {each.request for each in claim.allocation.devices.results} if claim.allocation is not None else set()
    chosen = (
        at
        for request in claim.spec.devices.requests
        for at, each in enumerate(request.first_available)
        if f"{request.name}/{each.name}" in given
    )
    return sum(8 - at for at in chosen)


def mask(rows: Rows, of: Rows) -> Bools:
    """Return which of the rows `of` are among `rows`; both ascend."""
    found: Bools = np.isin(of, rows, assume_unique=True)
    return found


def message(error: FatalError, group: NodeGroup) -> str:
    return error.message(group.keys)
