"""Metadata, and the base classes of API objects and their parts. Fields have the names of the API, in snake case."""

from __future__ import annotations

from datetime import datetime

import msgspec


class CompleteApiValue(msgspec.Struct, frozen=True, rename="camel"):
    """A part of an object whose JSON has every field: what is written must replace what is there."""


class ApiValue(CompleteApiValue, frozen=True, omit_defaults=True):
    """A part of an object, such as its spec. Its JSON leaves out fields that have their default.

    class TeamBudgetSpec(ApiValue, frozen=True):
        max_pods: int = 0                 # maxPods in the API
        teams: tuple[str, ...] = ()
    """


class OwnerReference(CompleteApiValue, frozen=True):
    kind: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    controller: bool = False


class ObjectMeta(ApiValue, frozen=True):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    resource_version: str = ""
    generation: int = 0


class Condition(CompleteApiValue, frozen=True):
    """A condition in the status of an object; pods have `PodCondition`."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None


class Object(ApiValue, frozen=True):
    """An object of any kind, with shortcuts for the fields of its metadata. The base of a plugin's own kinds.

    class TeamBudget(Object, frozen=True):
        spec: TeamBudgetSpec = TeamBudgetSpec()

    budget.name, budget.namespace, budget.key, budget.labels, budget.spec.max_pods
    """

    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations

    @property
    def key(self) -> str:
        """namespace/name, or the name of an object without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    def controller(self) -> OwnerReference | None:
        """Return the owner that is the controller of this object."""
        return next((owner for owner in self.metadata.owner_references if owner.controller), None)
