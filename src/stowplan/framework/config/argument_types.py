"""The arguments of kube-scheduler's own plugins, in the spelling of the file, with the defaults of 1.36.

A range of a single field is part of its type; rules for several fields are in `arguments`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from stowplan.framework.config.document import Seconds

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Natural32 = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Natural64 = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Percent = Annotated[int, Meta(ge=0, le=100)]


class _ArgumentsPart(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True): ...


class Args(_ArgumentsPart):
    """The fields of every arguments object; both are optional, but must be right if given."""

    api_version: str = ""
    kind: str = ""


class ResourceSpecArgs(_ArgumentsPart):
    name: str
    weight: Int64 = 0


class ShapePointArgs(_ArgumentsPart):
    utilization: Percent = 0
    score: Annotated[int, Meta(ge=0, le=10)] = 0


class ShapeArgs(_ArgumentsPart):
    shape: list[ShapePointArgs] = []


class ScoringStrategyArgs(_ArgumentsPart):
    type: str = ""
    resources: list[ResourceSpecArgs] = []
    requested_to_capacity_ratio: ShapeArgs | None = None


class SpreadConstraintArgs(_ArgumentsPart, omit_defaults=True):
    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: dict[str, Any] | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: list[str] = []


class NodeRequirementArgs(_ArgumentsPart, omit_defaults=True):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class NodeTermArgs(_ArgumentsPart, omit_defaults=True):
    match_expressions: list[NodeRequirementArgs] = []
    match_fields: list[NodeRequirementArgs] = []


class PreferenceArgs(_ArgumentsPart, omit_defaults=True):
    weight: Int32 = 0
    preference: NodeTermArgs = msgspec.field(default_factory=NodeTermArgs)


class RequiredTermsArgs(_ArgumentsPart, omit_defaults=True):
    node_selector_terms: list[NodeTermArgs] = []


class NodeAffinityTermsArgs(_ArgumentsPart, omit_defaults=True):
    required: RequiredTermsArgs | None = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: list[PreferenceArgs] | None = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class DefaultPreemptionArgs(Args):
    min_candidate_nodes_percentage: Percent = 10
    min_candidate_nodes_absolute: Natural32 = 100


class InterPodAffinityArgs(Args):
    hard_pod_affinity_weight: Percent = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Args):
    added_affinity: NodeAffinityTermsArgs | None = None


class NodeResourcesFitArgs(Args):
    ignored_resources: list[str] = []
    ignored_resource_groups: list[str] = []
    scoring_strategy: ScoringStrategyArgs = msgspec.field(
        default_factory=lambda: ScoringStrategyArgs(type="LeastAllocated")
    )


class NodeResourcesBalancedAllocationArgs(Args):
    resources: list[ResourceSpecArgs] = []


class PodTopologySpreadArgs(Args):
    defaulting_type: str = ""
    default_constraints: list[SpreadConstraintArgs] = []


class VolumeBindingArgs(Args):
    bind_timeout_seconds: Natural64 = 600
    shape: list[ShapePointArgs] | None = None


class DynamicResourcesArgs(Args):
    filter_timeout: Seconds = Seconds(10)
    binding_timeout: Seconds = Seconds(600)
