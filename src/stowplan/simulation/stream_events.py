"""What happens to a simulated cluster, and when. A stream is a list of these, made by the readers in `streams/`.

`at` counts seconds from the start of the run. `place` says where the event is from, as errors name it: a file and a
line, or a file and a path in it.
"""

from __future__ import annotations

from typing import Any

import msgspec

Document = dict[str, Any]


class StreamEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happens at a time."""

    at: float
    file: str = ""
    place: str = ""


class Arrival(StreamEvent, frozen=True, kw_only=True):
    """A pod, or a workload that makes pods, is created.

    `duration`: how long each of its pods runs, or, of a workload whose pods never end, until it is deleted.
    """

    document: Document
    duration: float | None = None


class AppliedObject(StreamEvent, frozen=True, kw_only=True):
    """An object is created, or replaced: a node that comes, a PriorityClass, a policy."""

    document: Document


class DeletedObject(StreamEvent, frozen=True, kw_only=True):
    """An object is deleted: a node that goes, a Deployment."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""


class NodeFailure(StreamEvent, frozen=True, kw_only=True):
    """A node stops to report: it is not ready, and its pods are evicted when their tolerations end."""

    node: str


class NodeRecovery(StreamEvent, frozen=True, kw_only=True):
    """A node that failed reports again."""

    node: str


class NodeCordon(StreamEvent, frozen=True, kw_only=True):
    """A node is cordoned, or uncordoned."""

    node: str
    cordoned: bool = True


class PolicyChange(StreamEvent, frozen=True, kw_only=True):
    """The scheduler goes on with another configuration, by its name."""

    configuration: str
