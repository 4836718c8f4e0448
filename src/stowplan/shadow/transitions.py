"""What one change did to one object: its versions before and after, and whether decisions could see a difference."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from stowplan.columns.state import ClusterState
from stowplan.objects.changes import Gone, Put
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PodDisruptionBudget

Key: TypeAlias = tuple[str, str]


def key_of(found: Object) -> Key:
    """Return what tells an object from all others. A pod that is created again under its name is another pod."""
    return type(found).__name__, found.uid if isinstance(found, Pod) else found.key


class Transition:
    """`number`: its place among all changes. `matters`: whether decisions about other pods can depend on it."""

    __slots__ = ("after", "at", "before", "judged", "key", "matters", "number")

    def __init__(
        self, number: int, at: float, before: Object | None, after: Object | None, *, judged: bool = True
    ) -> None:
        found = after or before
        assert found is not None, "a change is about an object"
        self.number, self.at, self.before, self.after, self.judged = number, at, before, after, judged
        self.key = key_of(found)
        self.matters = seen_of(before) != seen_of(after)

    @property
    def subject(self) -> Object:
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def pod(self) -> Pod | None:
        return self.subject if isinstance(self.subject, Pod) else None

    @property
    def binds(self) -> bool:
        """True if a pod that waited has a node now."""
        return (
            isinstance(self.before, Pod)
            and isinstance(self.after, Pod)
            and self.before.pending
            and bool(self.after.node_name)
        )

    @property
    def nodes(self) -> set[str]:
        """The nodes that it is about."""
        if isinstance(self.subject, Node):
            return {self.subject.name}
        versions = (each for each in (self.before, self.after) if isinstance(each, Pod))
        return {each.node_name or each.nominated_node for each in versions} - {""}


def is_newer(one: Object, other: Object) -> bool:
    """True if an object was certainly written after another one, of any kind: versions count a cluster's writes."""
    first, second = one.metadata.resource_version, other.metadata.resource_version
    return first.isdigit() and second.isdigit() and int(first) > int(second)


def seen_of(found: Object | None) -> object:
    """Return what decisions about other pods can see of an object; None if they see nothing."""
    match found:
        case None | PodDisruptionBudget():  # a budget matters to preemption only
            return None
        case Pod():
            if found.node_name:
                shape = found.shape
                seen = (found.node_name, found.labels, found.priority, found.terminating)
                return None if found.finished else (*seen, shape.taken, shape.presumed, shape.uses)
            return ("nominated", found.nominated_node) if found.nominated_node and found.pending else None
        case _:
            metadata = msgspec.structs.replace(found.metadata, resource_version="", generation=0)
            return msgspec.structs.replace(found, metadata=metadata)


def assume(state: ClusterState, key: Key, version: Object | None, subject: Object) -> None:
    """In a trial: let the cluster have this version of an object; None: the object does not exist."""
    if isinstance(subject, Pod):
        uid = key[1]
        if uid in state.pods:
            state.remove_pod(uid)
        state.nominated_pods.drop(uid)
        if isinstance(version, Pod) and not version.finished:
            if version.node_name:
                state.add_pod(version, version.node_name)
            elif version.nominated_node:
                state.nominated_pods.add(version, version.nominated_node)
    elif isinstance(subject, Node):
        state.apply(Put(version) if version is not None else Gone(subject))
    elif version is not None:
        state.put(version)
    else:
        state.discard(subject)
