"""The objects of Open Cluster Management: clusters, cluster sets, their bindings to namespaces, and scores.

The scores of a cluster are in the namespace that has the cluster's name. A cluster set has the clusters with its label,
or those that a selector matches. A namespace can use a cluster set only if it has a binding to the set.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec

from stowplan.objects import meta, quantity, selector_errors, selectors
from stowplan.objects.meta import ApiValue, Object, ObjectMeta
from stowplan.objects.quantity import Quantity
from stowplan.objects.selectors import LabelRequirement, LabelSelector, Selector

SET_LABEL = "cluster.open-cluster-management.io/clusterset"
NO_SELECT, PREFER_NO_SELECT, NO_SELECT_IF_NEW = "NoSelect", "PreferNoSelect", "NoSelectIfNew"


class ClusterTaint(ApiValue, frozen=True):
    key: str
    effect: str
    value: str = ""
    time_added: datetime | None = None

    @property
    def added(self) -> float:
        """Seconds since the epoch; minus infinity for a taint without a time."""
        return float("-inf") if self.time_added is None else self.time_added.timestamp()


class ClientConfig(ApiValue, frozen=True):
    url: str = ""
    ca_bundle: str = ""


class ManagedClusterSpec(ApiValue, frozen=True):
    managed_cluster_client_configs: tuple[ClientConfig, ...] = ()
    hub_accepts_client: bool = False
    lease_duration_seconds: int = 0
    taints: tuple[ClusterTaint, ...] = ()


class ClusterCondition(meta.Condition, frozen=True, omit_defaults=True):
    """A condition whose JSON leaves out fields that have their default."""


class ClusterClaim(ApiValue, frozen=True):
    name: str
    value: str = ""


class ClusterVersion(ApiValue, frozen=True):
    kubernetes: str = ""


class ManagedClusterStatus(ApiValue, frozen=True):
    conditions: tuple[ClusterCondition, ...] = ()
    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    version: ClusterVersion = ClusterVersion()
    cluster_claims: tuple[ClusterClaim, ...] = ()


class ClusterMeta(ObjectMeta, frozen=True):
    finalizers: tuple[str, ...] = ()


class ManagedCluster(Object, frozen=True, dict=True):
    metadata: ClusterMeta = ClusterMeta()
    spec: ManagedClusterSpec = ManagedClusterSpec()
    status: ManagedClusterStatus = ManagedClusterStatus()

    @cached_property
    def claims(self) -> dict[str, str]:
        return {claim.name: claim.value for claim in self.status.cluster_claims}

    @cached_property
    def document(self) -> dict[str, Any]:
        """The object as CEL expressions see it: as Go encodes it, with Go's nulls and empty values."""
        found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self, enc_hook=str))
        metadata = found.setdefault("metadata", {})
        _stamp(metadata, self.metadata, ("creationTimestamp", "deletionTimestamp"))
        spec, status = found.setdefault("spec", {}), found.setdefault("status", {})
        spec.setdefault("hubAcceptsClient", False)
        for written, taint in zip(spec.get("taints", ()), self.spec.taints, strict=False):
            written["timeAdded"] = _moment(taint.time_added)
        status.setdefault("version", {})
        _write_conditions(status, self.status.conditions)
        for amounts in ("capacity", "allocatable"):
            if amounts in status:
                status[amounts] = {name: quantity.canonical(text) for name, text in status[amounts].items()}
        return found

    def same_content(self, other: ManagedCluster) -> bool:
        """True if both differ in their resourceVersion and generation only."""
        mine, others = self.metadata, other.metadata
        same = msgspec.structs.replace(mine, resource_version=others.resource_version, generation=others.generation)
        return same == others and self.spec == other.spec and self.status == other.status


def _stamp(written: dict[str, Any], metadata: ObjectMeta, names: tuple[str, ...]) -> None:
    moments = (metadata.creation_timestamp, metadata.deletion_timestamp)
    for name, moment in zip(names, moments, strict=True):
        if moment is not None:
            written[name] = _moment(moment)


def _write_conditions(status: dict[str, Any], conditions: tuple[ClusterCondition, ...]) -> None:
    status.setdefault("conditions", None)
    for written, condition in zip(status["conditions"] or (), conditions, strict=True):
        for field in ("type", "status", "reason", "message"):
            written.setdefault(field, "")
        written["lastTransitionTime"] = _moment(condition.last_transition_time)


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# -- sets of clusters


class ClusterSelector(ApiValue, frozen=True):
    selector_type: str = ""
    label_selector: LabelSelector | None = None


class ManagedClusterSetSpec(ApiValue, frozen=True):
    cluster_selector: ClusterSelector = ClusterSelector()


class ManagedClusterSet(Object, frozen=True, dict=True):
    spec: ManagedClusterSetSpec = ManagedClusterSetSpec()

    @cached_property
    def problem(self) -> str:
        """Why the selector of the set is invalid; "" if it is valid."""
        asked = self.spec.cluster_selector
        if asked.selector_type == "LabelSelector":
            return "" if asked.label_selector is None else selector_errors.problem(asked.label_selector)
        if asked.selector_type in ("", "ExclusiveClusterSetLabel"):
            return ""
        return f"selectorType {asked.selector_type!r} is neither ExclusiveClusterSetLabel nor LabelSelector"

    @cached_property
    def members(self) -> Selector | None:
        """The selector of the clusters in the set; None for an empty set."""
        if self.problem:
            return None
        if self.spec.cluster_selector.selector_type == "LabelSelector":
            return selectors.compile_selector(self.spec.cluster_selector.label_selector)
        return (LabelRequirement(SET_LABEL, "In", (self.name,)),)


class ManagedClusterSetBindingSpec(ApiValue, frozen=True):
    cluster_set: str = ""


class ManagedClusterSetBinding(Object, frozen=True):
    spec: ManagedClusterSetBindingSpec = ManagedClusterSetBindingSpec()


# -- scores


class ScoreItem(ApiValue, frozen=True):
    name: str
    value: int = 0


class AddOnPlacementScoreStatus(ApiValue, frozen=True):
    conditions: tuple[ClusterCondition, ...] = ()
    scores: tuple[ScoreItem, ...] = ()
    valid_until: datetime | None = None


class AddOnPlacementScore(Object, frozen=True, dict=True):
    status: AddOnPlacementScoreStatus = AddOnPlacementScoreStatus()

    @cached_property
    def values(self) -> dict[str, int]:
        """The scores by name. Of two scores with the same name the last one counts."""
        return {each.name: each.value for each in self.status.scores}

    @property
    def cluster(self) -> str:
        return self.namespace

    @property
    def valid_until(self) -> float:
        """The end of the validity in seconds since the epoch; infinity if it does not end."""
        until = self.status.valid_until
        return float("inf") if until is None else until.timestamp()
