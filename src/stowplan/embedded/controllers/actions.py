"""The actions of controllers. The event of an action is recorded after the action succeeded."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from stowplan.embedded.documents import Document


class RecordEvent(msgspec.Struct, frozen=True):
    """An event about an object. "{name}" in the message is replaced by the name of the object of the action."""

    about: Document
    reason: str
    message: str
    component: str
    type: str = "Normal"


class CreateDocument(msgspec.Struct, frozen=True):
    """Create an object.

    If it is refused, `refusals` are recorded instead of the event; "{error}" in their messages is replaced. Without
    them a FailedCreate is recorded for an action that has an event.
    """

    collection: str
    namespace: str
    document: Document
    event: RecordEvent | None = None
    refusals: tuple[RecordEvent, ...] = ()


class UpdateObject(msgspec.Struct, frozen=True):
    """Update an object as a whole, based on its resourceVersion."""

    collection: str
    document: Document
    event: RecordEvent | None = None


class SetStatus(msgspec.Struct, frozen=True):
    """Set the status of the object with this uid, whatever its resourceVersion is."""

    collection: str
    key: str
    uid: str
    status: Document


class DeleteDocument(msgspec.Struct, frozen=True):
    collection: str
    key: str
    uid: str
    grace: int | None = None
    propagation_policy: str = "Background"
    event: RecordEvent | None = None


class FinalizeNamespace(msgspec.Struct, frozen=True):
    """Remove the finalizer of an empty namespace."""

    name: str


class RequeueAfter(msgspec.Struct, frozen=True):
    """Reconcile the same key again after so many seconds."""

    after: float


Action: TypeAlias = (
    CreateDocument | UpdateObject | SetStatus | DeleteDocument | FinalizeNamespace | RecordEvent | RequeueAfter
)
"""What `reconcile` may yield."""
