"""Namespaces, the owners of pods, and the budgets and priorities that bear on them."""

from __future__ import annotations

from datetime import datetime

import msgspec

from stowplan.objects.meta import Object
from stowplan.objects.selectors import LabelSelector


class _WorkloadPart(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A piece of a workload object."""


class Namespace(Object, frozen=True, rename="camel", omit_defaults=True):
    pass


class MapSelectorSpec(_WorkloadPart, frozen=True):
    selector: dict[str, str] = {}


class Service(Object, frozen=True, rename="camel", omit_defaults=True):
    spec: MapSelectorSpec = MapSelectorSpec()


class ReplicationController(Object, frozen=True, rename="camel", omit_defaults=True):
    spec: MapSelectorSpec = MapSelectorSpec()


class SelectorSpec(_WorkloadPart, frozen=True):
    selector: LabelSelector | None = None


class ReplicasSpec(_WorkloadPart, frozen=True):
    selector: LabelSelector | None = None
    replicas: int | None = None  # 1, where nobody says


class ReplicaSet(Object, frozen=True, rename="camel", omit_defaults=True):
    spec: ReplicasSpec = ReplicasSpec()


class StatefulSet(Object, frozen=True, rename="camel", omit_defaults=True):
    spec: ReplicasSpec = ReplicasSpec()


class Deployment(Object, frozen=True, rename="camel", omit_defaults=True):
    spec: ReplicasSpec = ReplicasSpec()


class DisruptionBudgetStatus(_WorkloadPart, frozen=True):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, datetime | None] = {}


class PodDisruptionBudget(Object, frozen=True, rename="camel", omit_defaults=True):
    spec: SelectorSpec = SelectorSpec()
    status: DisruptionBudgetStatus = DisruptionBudgetStatus()


class PriorityClass(Object, frozen=True, rename="camel", omit_defaults=True):
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None
