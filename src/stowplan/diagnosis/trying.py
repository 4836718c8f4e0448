"""Trying changes: the cluster with the changes as a trial, the pod as it would be, and the decision for it then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from stowplan.columns.arrays import Rows
from stowplan.columns.pods.pod_order import PodOrder
from stowplan.columns.state import ClusterState
from stowplan.diagnosis import patches
from stowplan.diagnosis.edits import Edit
from stowplan.diagnosis.remedy import AddNodes, CreateObject, DeleteObject, ObjectChange, PatchObject
from stowplan.framework.decision import FEASIBLE, Decision
from stowplan.framework.evaluation import Evaluation, schedule_one
from stowplan.framework.profile import Profile
from stowplan.objects import kinds
from stowplan.objects.changes import Put
from stowplan.objects.errors import ConfigError, PluginError
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

Answer = TypeVar("Answer")


class Trying:
    """Tries changes for one pod. `tries` counts them, so that a search can stop."""

    def __init__(self, pod: Pod, state: ClusterState, profiles: Mapping[str, Profile]) -> None:
        self.pod, self.state, self.profiles = pod, state, profiles
        self.tries = 0
        self.uids: dict[str, str] = {}  # of pods that edits delete, by key; who proposes such an edit enters them
        self.order = PodOrder(state)
        self._documents: dict[tuple[str, str], Any] = {}

    # -- documents

    def __getitem__(self, name: tuple[str, str]) -> Any:
        """The document of an object, by kind and key, as far as its fields are read."""
        if name not in self._documents:
            self._documents[name] = msgspec.json.decode(msgspec.json.encode(self._object(*name), enc_hook=str))
        return self._documents[name]

    def _object(self, kind: str, key: str) -> object:
        if kind == "Pod" and key == self.pod.key:
            return self.pod
        if kind == "Node":
            return self.node(key)
        found = self.state.store.named(kind, key)
        if found is None:
            raise LookupError(f"there is no {kind} {key}")
        return found

    def node(self, name: str) -> Node:
        found = self.state.table.nodes[self.state.table.row_of[name]]
        if found is None:
            raise LookupError(f"there is no node {name}")
        return found

    def changes_of(self, edits: Sequence[Edit]) -> tuple[ObjectChange, ...]:
        """Return the changes of edits that are made together: one patch per object."""
        every = [change for edit in edits for change in edit.changes]
        return patches.merged(every, self)

    # -- the pod and the cluster as they would be

    def variant(self, changes: Iterable[ObjectChange]) -> Pod:
        """Return the pod as it would be."""
        for change in changes:
            if isinstance(change, PatchObject) and change.kind == "Pod" and change.key == self.pod.key:
                return kinds.convert(Pod, patches.patched(self["Pod", self.pod.key], change.operations))
        return self.pod

    @contextmanager
    def changed(self, changes: Iterable[ObjectChange]) -> Iterator[None]:
        """The cluster with the changes of all objects but the pod itself."""
        with self.state.trial():
            for change in changes:
                self._make(change)
            yield

    def _make(self, change: ObjectChange) -> None:
        state = self.state
        match change:
            case PatchObject(kind, key, operations):
                if (kind, key) != ("Pod", self.pod.key):
                    document = patches.patched(self[kind, key], operations)
                    state.apply(Put(kinds.convert(kinds.KINDS[kind], document)))
            case CreateObject(document):
                state.put(kinds.convert(kinds.KINDS[str(document["kind"])], document))
            case DeleteObject(_, key):
                self._delete_pod(key)
            case AddNodes():
                for document in patches.added_nodes(change, state.table.row_of):
                    state.apply(Put(kinds.convert(Node, document)))

    def _delete_pod(self, key: str) -> None:
        uid = self.uids[key]
        if uid in self.state.pods:
            self.order.keep(self.state.pods[uid].row)
            self.state.remove_pod(uid)
        else:
            self.state.nominated_pods.drop(uid)

    # -- decisions

    def decide(self, edits: Sequence[Edit], *, preempt: bool = False, within: Rows | None = None) -> Decision | None:
        """Return the decision with these edits made; None if an object cannot be like this.

        within   the only rows that are looked at
        """
        decision = self._ask(
            edits, lambda pod, profile: schedule_one(pod, self.state, profile, preempt=preempt, within=within)
        )
        return None if decision is None or decision.error else decision

    def fits(self, edits: Sequence[Edit]) -> bool:
        """True if any node is feasible with these edits made. Nothing is scored."""
        return bool(self._ask(edits, lambda pod, profile: fits_somewhere(pod, self.state, profile)))

    def _ask(self, edits: Sequence[Edit], question: Callable[[Pod, Profile], Answer]) -> Answer | None:
        """Ask with these edits made. None if an object cannot be like this, or nobody serves the pod then."""
        self.tries += 1
        try:
            changes = self.changes_of(edits)
            pod = self.variant(changes)
            profile = self.profiles.get(pod.scheduler_name)
            if profile is None:
                return None
            with self.changed(changes):
                return question(pod, profile)
        except (ConfigError, LookupError, ValueError, PluginError):
            return None


def fits_somewhere(pod: Pod, state: ClusterState, profile: Profile) -> bool:
    """True if any node is feasible for the pod, in the cluster as it is now."""
    names, _ = state.offers(pod, None)
    with state.released(names):
        evaluation = Evaluation(pod, state, profile)
        if evaluation.gate() is not None:
            return False
        evaluation.pre_filter()
        if evaluation.pre_filters.refused is not None:
            return False
        evaluation.filter()
        return bool((evaluation.trail.verdict_of == FEASIBLE).any())
