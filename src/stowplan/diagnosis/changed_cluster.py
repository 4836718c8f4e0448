"""A cluster as it would be: changes of any objects made in a trial, for one pod that waits, or for several.

`trying` asks then for the decision of one pod; `rehearsing` and `groups/trying` rehearse what the engine would do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from stowplan.columns.pods.pod_order import PodOrder
from stowplan.columns.state import ClusterState
from stowplan.diagnosis import patches
from stowplan.diagnosis.edits import Edit
from stowplan.diagnosis.remedy import AddNodes, CreateObject, DeleteObject, ObjectChange, PatchObject
from stowplan.framework.profile import Profile
from stowplan.objects import kinds
from stowplan.objects.changes import Put
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod


class ChangedCluster:
    """`members`: the pods that changes are tried for, by key; some may be on nodes.

    `order` puts the pods back into their order: whoever has tried changes calls `order.restore` at the end.
    """

    def __init__(self, state: ClusterState, profiles: Mapping[str, Profile], members: Iterable[Pod]) -> None:
        self.state, self.profiles = state, profiles
        self.members: dict[str, Pod] = {pod.key: pod for pod in members}
        self.order = PodOrder(state)
        self.uids: dict[str, str] = {}  # of pods that edits delete, by key; who enters them spares us to look for them
        self._every_uid: dict[str, str] | None = None
        self._documents: dict[tuple[str, str], Any] = {}

    # -- documents

    def __getitem__(self, name: tuple[str, str]) -> Any:
        """The document of an object, by kind and key, as far as its fields are read."""
        if name not in self._documents:
            self._documents[name] = msgspec.json.decode(msgspec.json.encode(self._object(*name), enc_hook=str))
        return self._documents[name]

    def add_document(self, kind: str, key: str, document: Mapping[str, Any]) -> None:
        """Tell what is known of an object that the state does not have."""
        if self.state.store.named(kind, key) is None:
            self._documents.setdefault((kind, key), document)

    def _object(self, kind: str, key: str) -> object:
        if kind == "Pod":
            return self.members.get(key) or self.state.pods[self._uid(key)].pod
        found: object = self.state.store.named(kind, key)
        if kind == "Node":
            found = self.state.table.nodes[self.state.table.row_of[key]]
        if found is None:
            raise LookupError(f"there is no {kind} {key}")
        return found

    def _uid(self, key: str) -> str:
        """The uid of a pod on a node, or of one that is nominated and was entered."""
        if key in self.uids:
            return self.uids[key]
        if self._every_uid is None:
            self._every_uid = {placed.pod.key: uid for uid, placed in self.state.pods.items()}
        return self._every_uid[key]

    def placed(self, key: str) -> Pod | None:
        """Return a pod on a node by its key; None if there is none."""
        try:
            found = self.state.pods.get(self._uid(key))
        except KeyError:
            return None
        return None if found is None else found.pod

    def changes_of(self, edits: Sequence[Edit]) -> tuple[ObjectChange, ...]:
        """Return the changes of edits that are made together: one patch per object."""
        return patches.merged([change for edit in edits for change in edit.changes], self)

    # -- what would be

    @contextmanager
    def changed(self, edits: Sequence[Edit]) -> Iterator[dict[str, Pod]]:
        """The cluster with these edits made. Yields the members as they would be, by key."""
        changes = self.changes_of(edits)
        with self.state.trial():
            members = self._make(changes)
            for key in dict.fromkeys(key for edit in edits for key in edit.gone):
                self._delete_pod(key)
            yield members

    def _make(self, changes: Iterable[ObjectChange]) -> dict[str, Pod]:
        """Make the changes in the state. Return the members as they would be."""
        members = dict(self.members)
        for change in changes:
            match change:
                case PatchObject("Pod", key, operations) if key in members:
                    members[key] = _pod(patches.patched(self["Pod", key], operations))
                case PatchObject(kind, key, operations):
                    self._patch(kind, key, patches.patched(self[kind, key], operations))
                case CreateObject(document) if document["kind"] == "Pod":
                    pod = _pod(document)
                    members[pod.key] = pod
                case CreateObject(document):
                    self.state.put(_converted(kinds.name_of(document), document))
                case DeleteObject("Pod", key):
                    self._delete_pod(key)
                case DeleteObject(kind, key):
                    found = self.state.store.named(kind, key)
                    if found is not None:
                        self.state.discard(found)
                case AddNodes():
                    for node in patches.added_nodes(change, self.state.table.row_of):
                        self.state.apply(Put(kinds.convert(Node, node)))
        return members

    def _patch(self, kind: str, key: str, document: Any) -> None:
        if kind == "Node":
            self.state.apply(Put(kinds.convert(Node, document)))
        elif kind == "Pod":
            found = kinds.convert(Pod, document)
            self._delete_pod(key)
            self.state.add_pod(found, found.node_name)
        elif self.state.store.named(kind, key) is not None:  # of others only what they do to pods counts: `gone`
            self.state.put(_converted(kind, document))

    def _delete_pod(self, key: str) -> None:
        uid = self._uid(key)
        if uid in self.state.pods:
            self.order.keep(self.state.pods[uid].row)
            self.state.remove_pod(uid)
        else:
            self.state.nominated_pods.drop(uid)


def _converted(kind: str, document: Any) -> Object:
    return kinds.convert(kinds.KINDS[kind], document)


def _pod(document: Any) -> Pod:
    found = kinds.convert(Pod, document)
    if found.uid:
        return found
    metadata = msgspec.structs.replace(found.metadata, uid=f"new/{found.key}")
    return msgspec.structs.replace(found, metadata=metadata)
