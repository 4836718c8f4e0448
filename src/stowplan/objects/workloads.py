"""Namespaces, services, workloads, disruption budgets and priority classes."""

from __future__ import annotations

from datetime import datetime

from stowplan.objects.meta import ApiValue, Object
from stowplan.objects.selectors import LabelSelector


class Namespace(Object, frozen=True):
    pass


class MapSelectorSpec(ApiValue, frozen=True):
    selector: dict[str, str] = {}


class Service(Object, frozen=True):
    spec: MapSelectorSpec = MapSelectorSpec()


class ReplicationController(Object, frozen=True):
    spec: MapSelectorSpec = MapSelectorSpec()


class ReplicasSpec(ApiValue, frozen=True):
    selector: LabelSelector | None = None
    replicas: int | None = None  # None is 1


class ReplicaSet(Object, frozen=True):
    spec: ReplicasSpec = ReplicasSpec()


class OrdinalsSpec(ApiValue, frozen=True):
    start: int = 0


class StatefulSetSpec(ReplicasSpec, frozen=True):
    ordinals: OrdinalsSpec | None = None  # None: pods count from 0


class StatefulSet(Object, frozen=True):
    spec: StatefulSetSpec = StatefulSetSpec()


class Deployment(Object, frozen=True):
    spec: ReplicasSpec = ReplicasSpec()


class DisruptionBudgetSpec(ApiValue, frozen=True):
    selector: LabelSelector | None = None
    min_available: int | str | None = None  # a number, or a percentage: "50%"
    max_unavailable: int | str | None = None


class DisruptionBudgetStatus(ApiValue, frozen=True):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, datetime | None] = {}


class PodDisruptionBudget(Object, frozen=True):
    spec: DisruptionBudgetSpec = DisruptionBudgetSpec()
    status: DisruptionBudgetStatus = DisruptionBudgetStatus()


class PriorityClass(Object, frozen=True):
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None
