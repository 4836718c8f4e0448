"""A cluster as it would be, for pods that wait: changes are made in a trial, and the pods are rehearsed in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.diagnosis import patches
from stowplan.diagnosis.edits import Edit
from stowplan.diagnosis.remedy import AddNodes, CreateObject, DeleteObject, ObjectChange, PatchObject
from stowplan.engine.attempt.placer import Placer
from stowplan.engine.unit import Unit
from stowplan.framework.decision import RejectPod
from stowplan.framework.plugin_calls import call_optional
from stowplan.framework.profile import Profile
from stowplan.objects import kinds
from stowplan.objects.changes import Put
from stowplan.objects.errors import ConfigError, PluginError
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.priority import with_priority
from stowplan.objects.workloads import PriorityClass

SEEDS = (0, 1, 2)  # of draws among equal nodes, for the last proof


class ChangedCluster:
    """`members`: the pods that changes are tried for, by key; some may be on nodes."""

    def __init__(self, state: ClusterState, profiles: Mapping[str, Profile], members: Iterable[Pod]) -> None:
        self.state, self.profiles = state, profiles
        self.members: dict[str, Pod] = {pod.key: pod for pod in members}
        self._uids: dict[str, str] | None = None
        self._documents: dict[tuple[str, str], Any] = {}

    @property
    def waiting(self) -> list[Pod]:
        """The pods that get a node, or do not."""
        return list(self.members.values())

    # -- documents

    def __getitem__(self, name: tuple[str, str]) -> Any:
        """The document of an object, by kind and key, as far as its fields are read."""
        if name not in self._documents:
            self._documents[name] = msgspec.json.decode(msgspec.json.encode(self._object(*name), enc_hook=str))
        return self._documents[name]

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
        """The uid of a pod on a node."""
        if self._uids is None:
            self._uids = {placed.pod.key: uid for uid, placed in self.state.pods.items()}
        return self._uids[key]

    def changes_of(self, edits: Sequence[Edit]) -> tuple[ObjectChange, ...]:
        """Return the changes of edits that are made together: one patch per object."""
        return patches.merged([change for edit in edits for change in edit.changes], self)

    # -- what would be

    def where(self, edits: Sequence[Edit], *, seed: int = 0) -> dict[str, str] | None:
        """Return the node of each pod, by key, with these edits made; None if the pods would not run."""
        try:
            with self.state.trial():
                (pod,) = self._make(self.changes_of(edits)).values()
                return self._where(pod, seed)
        except (ConfigError, LookupError, ValueError, PluginError):
            return None

    def _where(self, pod: Pod, seed: int) -> dict[str, str] | None:
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None:
            return None
        for enabled in profile.pre_enqueue:
            cluster = Cluster(self.state)
            if call_optional(enabled, enabled.plugin.pre_enqueue, RejectPod, pod, cluster) is not None:
                return None
        unit = Unit([pod], pod.scheduler_name, 0.0)
        outcome = Placer(self.state, np.random.default_rng(seed)).rehearse(unit, profile, 1)
        return {each.pod.key: each.node_name for each in outcome.assumed_pods} if outcome.whole else None

    def runs(self, edits: Sequence[Edit]) -> bool:
        """True if the pods would run, without evictions."""
        return self.where(edits) is not None

    def surely_runs(self, edits: Sequence[Edit]) -> bool:
        """True if they would run, whichever of equal nodes are drawn."""
        return all(self.where(edits, seed=seed) is not None for seed in SEEDS)

    # -- changes

    def _make(self, changes: Iterable[ObjectChange]) -> dict[str, Pod]:
        """Make the changes in the state. Return the members as they would be, by uid."""
        members = dict(self.members)
        for change in changes:
            match change:
                case PatchObject("Pod", key, operations) if key in members:
                    members[key] = _pod(patches.patched(self["Pod", key], operations))
                case PatchObject(kind, key, operations):
                    self._put(kind, patches.patched(self[kind, key], operations))
                case CreateObject(document) if document["kind"] == "Pod":
                    pod = _pod(document)
                    members[pod.key] = pod
                case CreateObject(document):
                    self._put(kinds.name_of(document), document)
                case DeleteObject("Pod", key):
                    self.state.remove_pod(self._uid(key))
                case DeleteObject(kind, key):
                    found = self.state.store.named(kind, key)
                    if found is not None:
                        self.state.discard(found)
                case AddNodes():
                    for node in patches.added_nodes(change, self.state.table.row_of):
                        self.state.apply(Put(kinds.convert(Node, node)))
        return {pod.uid: self._classed(pod) for pod in members.values()}

    def _put(self, kind: str, document: Any) -> None:
        found = kinds.convert(kinds.KINDS[kind], document)
        if isinstance(found, Node):
            self.state.apply(Put(found))
        elif isinstance(found, Pod):
            self.state.remove_pod(found.uid)
            self.state.add_pod(found, found.node_name)
        else:
            self.state.put(found)

    def _classed(self, pod: Pod) -> Pod:
        """The pod with the priority of its class, where no admission plugin has set it."""
        return pod if pod.spec.priority is not None else with_priority(pod, self.state.store.every(PriorityClass))


@contextmanager
def same_order(state: ClusterState) -> Iterator[None]:
    """Afterwards the order of pods is as before: a trial puts a removed pod back as the last one, and ties go by it."""
    indexes = [state.pods, *state.pods_on]
    orders = [list(index) for index in indexes]
    try:
        yield
    finally:
        for index, uids in zip(indexes, orders, strict=True):
            if list(index) != uids and index.keys() == set(uids):
                ordered = {uid: index[uid] for uid in uids}
                index.clear()
                index.update(ordered)


def _pod(document: Any) -> Pod:
    found = kinds.convert(Pod, document)
    if found.uid:
        return found
    metadata = msgspec.structs.replace(found.metadata, uid=f"new/{found.key}")
    return msgspec.structs.replace(found, metadata=metadata)
