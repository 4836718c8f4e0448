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

        Arrival(at=60, duration=600, document={"apiVersion": "v1", "kind": "Pod", ...})
    """

    document: Document
    duration: float | None = None


class AppliedObject(StreamEvent, frozen=True, kw_only=True):
    """An object is created, or replaced: a node that comes, a PriorityClass, a policy.

    AppliedObject(at=3600, document={"apiVersion": "v1", "kind": "Node", ...})
    """

    document: Document


class DeletedObject(StreamEvent, frozen=True, kw_only=True):
    """An object is deleted: a node that goes, a Deployment.

    DeletedObject(at=7200, api_version="v1", kind="Node", name="spot-1")
    """

    api_version: str
    kind: str
    name: str
    namespace: str = ""


class NodeFailure(StreamEvent, frozen=True, kw_only=True):
    """A node stops to report: it is not ready, and its pods are evicted when their tolerations end.

    NodeFailure(at=7200, node="spot-0")
    """

    node: str


class NodeRecovery(StreamEvent, frozen=True, kw_only=True):
    """A node that failed reports again: `NodeRecovery(at=9000, node="spot-0")`."""

    node: str


class NodeCordon(StreamEvent, frozen=True, kw_only=True):
    """A node is cordoned: `NodeCordon(at=60, node="spot-0")`; or uncordoned, with `cordoned=False`."""

    node: str
    cordoned: bool = True


class PolicyChange(StreamEvent, frozen=True, kw_only=True):
    """The scheduler goes on with another configuration, by its name in `Simulation(policies=…)`.

    PolicyChange(at=21600, configuration="packed")
    """

    configuration: str
