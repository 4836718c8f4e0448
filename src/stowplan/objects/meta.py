"""What every object carries: its names, labels and owners. Attribute names are the API's, in snake case."""

from __future__ import annotations

from datetime import datetime

import msgspec


class CompleteApiValue(msgspec.Struct, frozen=True, rename="camel"):
    """A part of an object whose JSON has every field: what is written must replace what is there."""


class ApiValue(CompleteApiValue, frozen=True, omit_defaults=True):
    """A part of an object whose JSON leaves out fields that have their default."""


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
    """A condition in the status of an object; pods have another sort."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    last_transition_time: datetime | None = None


class Object(ApiValue, frozen=True):
    """An object of any kind: the fields that all kinds share, read without the `metadata.` in between."""

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
        """namespace/name, or the bare name of what has no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if one does."""
        return next((owner for owner in self.metadata.owner_references if owner.controller), None)
