"""A remedy: the smallest changes of one kind after which a pod is scheduled, with the proof that they were tried.

Changes are what a user can apply: a JSON patch (RFC 6902) of an object, an object that is created, one that is deleted,
nodes that are added. `apply` gives the objects as they would be afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a JSON patch: Operation("add", "/spec/tolerations/-", {"key": "dedicated", …})."""

    op: str  # "add", "replace" or "remove"
    path: str
    value: Any = None


@dataclass(frozen=True, slots=True)
class PatchObject:
    """A patch of an object that exists; of the pod itself: kind "Pod" and the pod's own key."""

    kind: str
    key: str  # namespace/name, or the name if the kind has no namespace
    operations: tuple[Operation, ...]


@dataclass(frozen=True, slots=True)
class CreateObject:
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DeleteObject:
    kind: str
    key: str


@dataclass(frozen=True, slots=True)
class AddNodes:
    """More nodes like an existing one, or of a template. `document`: one of them, without a name."""

    number: int
    like: str  # the name of the node or of the template
    document: Mapping[str, Any]
    told: str = ""  # what the text calls it; empty: its name

    @property
    def text(self) -> str:
        like = self.told or self.like
        return f"add a node like {like}" if self.number == 1 else f"add {self.number} nodes like {like}"


ObjectChange: TypeAlias = PatchObject | CreateObject | DeleteObject | AddNodes


@dataclass(frozen=True, slots=True)
class Remedy:
    """Changes that were tried together, and what follows from them.

    code      stable, for programs: one word for each kind of change, joined by "+" ("tolerate+lower-request")
    text      one sentence for people: "lower the cpu request of container app from 9 to 4"
    changes   applied together
    node      where the pod would go then
    evicted   namespace/name of pods that the scheduler would evict, that the changes delete, or that a controller
              deletes because it is scaled down
    also      further consequences, one sentence each
    nodes     of a group: where its members would go then, by namespace/name
    clusters  of a placement: the clusters that it would get then
    ranked_as its codes, as the table of `ranking` calls them: "free-room against a budget", say
    """

    code: str
    text: str
    changes: tuple[ObjectChange, ...]
    node: str | None
    evicted: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    nodes: Mapping[str, str] = field(default_factory=dict, hash=False)
    clusters: tuple[str, ...] = ()
    ranked_as: str = ""
