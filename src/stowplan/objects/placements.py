"""Placement, which selects clusters, and PlacementDecision, which has up to a hundred of the selected clusters.

A prioritizer can be written in three ways: `builtIn` with type BuiltIn (today), `buildIn` with type BuildIn (the first
API version), and `name` (before there were coordinates). The objects keep what the user wrote.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import cached_property

from stowplan.objects.clusters import ClusterCondition
from stowplan.objects.meta import ApiValue, Object
from stowplan.objects.selectors import LabelSelector, LabelSelectorRequirement

GROUP = "cluster.open-cluster-management.io"
API_VERSION = f"{GROUP}/v1beta1"
PLACEMENT_LABEL = f"{GROUP}/placement"
GROUP_INDEX_LABEL = f"{GROUP}/decision-group-index"
GROUP_NAME_LABEL = f"{GROUP}/decision-group-name"
DISABLED = f"{GROUP}/experimental-scheduling-disable"
SATISFIED, MISCONFIGURED = "PlacementSatisfied", "PlacementMisconfigured"
MOST_IN_A_SLICE = 100
BUILT_IN, ADD_ON = "BuiltIn", "AddOn"
_TYPES = {"": BUILT_IN, "BuildIn": BUILT_IN}
_RATE = re.compile(r"([0-9]+)([hms])")


class ClaimSelector(ApiValue, frozen=True):
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()

    @property
    def as_labels(self) -> LabelSelector:
        """The selector as one for labels: claims are matched like labels."""
        return LabelSelector(match_expressions=self.match_expressions)


class ClusterCelSelector(ApiValue, frozen=True):
    cel_expressions: tuple[str, ...] = ()


class RequiredClusterSelector(ApiValue, frozen=True):
    label_selector: LabelSelector = LabelSelector()
    claim_selector: ClaimSelector = ClaimSelector()
    cel_selector: ClusterCelSelector = ClusterCelSelector()


class ClusterPredicate(ApiValue, frozen=True):
    required_cluster_selector: RequiredClusterSelector = RequiredClusterSelector()


class AddOnScore(ApiValue, frozen=True):
    resource_name: str = ""
    score_name: str = ""


class ScoreCoordinate(ApiValue, frozen=True):
    type: str = ""
    built_in: str = ""
    build_in: str = ""
    add_on: AddOnScore | None = None
    when_missing: str = ""


class PrioritizerConfig(ApiValue, frozen=True):
    name: str = ""
    score_coordinate: ScoreCoordinate | None = None
    weight: int = 1

    @property
    def coordinate(self) -> ScoreCoordinate | None:
        """The coordinate in today's form; None if there is no name."""
        given = self.score_coordinate
        if given is None:
            return ScoreCoordinate(BUILT_IN, self.name) if self.name else None
        kind = _TYPES.get(given.type, given.type)
        named = given.build_in or given.built_in or (self.name if kind == BUILT_IN else "")
        return ScoreCoordinate(kind, named, "", given.add_on, given.when_missing)


class PrioritizerPolicy(ApiValue, frozen=True):
    mode: str = ""
    configurations: tuple[PrioritizerConfig, ...] = ()


class ClusterSpreadConstraint(ApiValue, frozen=True):
    topology_key: str = ""
    topology_key_type: str = ""
    max_skew: int = 1
    when_unsatisfiable: str = ""

    @property
    def hard(self) -> bool:
        return self.when_unsatisfiable == "DoNotSchedule"


class SpreadPolicy(ApiValue, frozen=True):
    spread_constraints: tuple[ClusterSpreadConstraint, ...] = ()


class ClusterToleration(ApiValue, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class GroupClusterSelector(ApiValue, frozen=True):
    label_selector: LabelSelector = LabelSelector()
    claim_selector: ClaimSelector = ClaimSelector()


class DecisionGroup(ApiValue, frozen=True):
    group_name: str = ""
    group_cluster_selector: GroupClusterSelector = GroupClusterSelector()


class GroupStrategy(ApiValue, frozen=True):
    clusters_per_decision_group: int | str = 0
    decision_groups: tuple[DecisionGroup, ...] = ()


class DecisionStrategy(ApiValue, frozen=True):
    group_strategy: GroupStrategy = GroupStrategy()


class PlacementSpec(ApiValue, frozen=True):
    cluster_sets: tuple[str, ...] = ()
    number_of_clusters: int | None = None
    predicates: tuple[ClusterPredicate, ...] = ()
    prioritizer_policy: PrioritizerPolicy = PrioritizerPolicy()
    spread_policy: SpreadPolicy = SpreadPolicy()
    tolerations: tuple[ClusterToleration, ...] = ()
    decision_strategy: DecisionStrategy = DecisionStrategy()
    sort_by: str = ""
    score_rate_limit: str = ""


class DecisionGroupStatus(ApiValue, frozen=True):
    decision_group_index: int = 0
    decision_group_name: str = ""
    decisions: tuple[str, ...] = ()
    cluster_count: int = 0


class PlacementStatus(ApiValue, frozen=True):
    number_of_selected_clusters: int = 0
    decision_groups: tuple[DecisionGroupStatus, ...] = ()
    conditions: tuple[ClusterCondition, ...] = ()
    last_score_update_time: datetime | None = None


class Placement(Object, frozen=True, dict=True):
    """A Placement of Open Cluster Management: it asks for clusters. Fields have the names of the API, in snake case.

    placement.labels.get("tier"), placement.namespace, placement.spec.number_of_clusters
    """

    spec: PlacementSpec = PlacementSpec()
    status: PlacementStatus = PlacementStatus()

    @property
    def ignored(self) -> bool:
        """True if another scheduler decides the placement, or it is terminating."""
        return self.terminating or self.annotations.get(DISABLED) == "true"

    @property
    def by_score(self) -> bool:
        return self.spec.sort_by == "Score"

    @cached_property
    def score_pause(self) -> float:
        """The least number of seconds between two updates of the scores."""
        found = _RATE.fullmatch(self.spec.score_rate_limit)
        return 60.0 if found is None else int(found[1]) * {"h": 3600.0, "m": 60.0, "s": 1.0}[found[2]]

    def condition(self, kind: str) -> ClusterCondition | None:
        return next((each for each in self.status.conditions if each.type == kind), None)


class ClusterDecision(ApiValue, frozen=True):
    cluster_name: str = ""
    reason: str = ""
    score: int = 0


class PlacementDecisionStatus(ApiValue, frozen=True):
    decisions: tuple[ClusterDecision, ...] = ()


class PlacementDecision(Object, frozen=True):
    status: PlacementDecisionStatus = PlacementDecisionStatus()

    @property
    def placement(self) -> str:
        """The key of its placement by the label; "" without the label."""
        name = self.labels.get(PLACEMENT_LABEL, "")
        return f"{self.namespace}/{name}" if name else ""

    @property
    def cluster_names(self) -> tuple[str, ...]:
        return tuple(each.cluster_name for each in self.status.decisions)
