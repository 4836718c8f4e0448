"""What the engine wants done in the world; the caller does it, and says how it went (`changes.Result`).

Each action has an id, which its result carries, and a deadline: one that is not answered by then counts as lost, and
the object is read again. Plugins make actions without either; the engine gives them.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec


class PodRef(msgspec.Struct, frozen=True):
    """This very pod, and no later one of the same name."""

    namespace: str
    name: str
    uid: str


class ObjectRef(PodRef, frozen=True):
    """This very object of another kind, for events that are not about pods."""

    kind: str = ""
    api_version: str = ""


class AnyAction(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="does"):
    """What all of them have."""

    id: int = 0
    deadline: float | None = None


class Bind(AnyAction, frozen=True):
    """Bind the pod to a node."""

    pod: PodRef
    node_name: str


class Evict(AnyAction, frozen=True):
    """Mark the pod as disrupted (`condition` of type DisruptionTarget), then delete it."""

    pod: PodRef
    reason: str
    message: str


class SetCondition(AnyAction, frozen=True):
    """The pod's PodScheduled condition; with it, where given, its nominated node ("" clears it)."""

    pod: PodRef
    status: str
    reason: str
    message: str
    nominated_node: str | None = None


class Nominate(AnyAction, frozen=True):
    """The pod's nominated node; "" clears it."""

    pod: PodRef
    node_name: str


class Record(AnyAction, frozen=True):
    """An event about a pod (or, by an ObjectRef, about another object), in the words of events.k8s.io."""

    pod: PodRef
    type: str
    reason: str
    action: str
    note: str
    reporting_controller: str
    related: PodRef | None = None


class Patch(AnyAction, frozen=True):
    """A patch of an object that a plugin writes to: a merge patch, or (a list of operations) a JSON patch.

    One of the status alone goes to the status. A merge patch that has metadata.resourceVersion, and a JSON patch that
    begins with a test, are refused if the object is no longer as the plugin saw it. Conditions in a status need no
    lastTransitionTime: where it is missing it is the time of writing.
    """

    kind: str
    key: str
    body: dict[str, Any] | list[dict[str, Any]]


class Create(AnyAction, frozen=True):
    """A new object that a plugin wants, whole; 409 if there is one of its name already."""

    kind: str
    key: str
    body: dict[str, Any]


class Delete(AnyAction, frozen=True):
    """An object that a plugin looks after is to go: this very one, and only if nobody changed it since."""

    kind: str
    key: str
    uid: str
    resource_version: str


class Read(AnyAction, frozen=True):
    """Read the pod again: what became of it is not known. It comes as a Put besides the result, unless that is 404."""

    pod: PodRef


class Victims(msgspec.Struct, frozen=True):
    """Pods that would have to go from a node, and how many of them a disruption budget protects."""

    pods: tuple[PodRef, ...]
    violations: int = 0


class Ask(AnyAction, frozen=True):
    """Ask an HTTP extender; its answer is the result's `body`."""

    extender: int  # its place in the configuration
    verb: str  # "filter", "prioritize", "preempt" or "bind"
    pod: PodRef
    nodes: tuple[str, ...] = ()  # to be filtered or scored; to be bound to, if one
    victims: dict[str, Victims] = {}  # per node, for "preempt"
    labels: dict[str, dict[str, str]] = {}  # that pods are shown with, whatever they have themselves, by uid


Write: TypeAlias = Patch | Create | Delete
Action: TypeAlias = Bind | Evict | SetCondition | Nominate | Record | Patch | Create | Delete | Read | Ask
