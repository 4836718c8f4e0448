"""What becomes of an object whose latest version cannot be read.

    Pod                   with a node: it is read in part, and counts on its node as far as it could be read;
                          without one: it is not scheduled
    Node                  it is read in part: its labels, taints and pods count, but it gets no new pods
    AddOnPlacementScore   it does not count: an old score must not look like a new one
    any other kind        it stays as it was when it could last be read: a PodDisruptionBudget goes on to protect, a
                          Placement keeps its clusters; if it never could be read, it does not exist for us

Whatever becomes of it is said in the log, once for each problem of an object, and counted until the object can be read
again or is gone.
"""

from __future__ import annotations

import msgspec

from stowplan.kube.resources import ApiResource
from stowplan.objects.in_part import read_in_part
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node, NodeStatus
from stowplan.objects.pods import Pod

LONGEST_PROBLEM = 500


class UnreadableObject(msgspec.Struct):
    """A version of an object that cannot be read."""

    kind: str
    problem: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    scheduler_name: str = ""  # of a pod
    told: bool = False  # by an event


class Substitute(msgspec.Struct):
    """What counts instead of an object that cannot be read: `counts`, None for nothing; in words: it `so` …"""

    counts: Object | None
    so: str
    scheduler_name: str = ""


def substitute(resource: ApiResource, document: bytes, known: Object | None) -> Substitute:
    """`known`: the version of this object that counted until now."""
    kind = resource.object_type
    if kind is Pod:
        pod = read_in_part(Pod, document, known if isinstance(known, Pod) else None)
        so = f"counts on {pod.node_name} as far as possible" if pod.node_name else "is not scheduled"
        return Substitute(pod if pod.node_name else None, so, pod.scheduler_name)
    if kind is Node:
        node = read_in_part(Node, document, known if isinstance(known, Node) else None)
        return Substitute(_closed(node), "gets no new pods")
    if resource.kind == "AddOnPlacementScore":
        return Substitute(None, "does not count")
    return Substitute(known, "is skipped" if known is None else "stays as it was last read")


def _closed(node: Node) -> Node:
    """The node without room. It is unschedulable, too; but some pods tolerate that."""
    spec = msgspec.structs.replace(node.spec, unschedulable=True)
    return msgspec.structs.replace(node, spec=spec, status=NodeStatus(conditions=node.status.conditions))
