"""Plugins that keep objects in the API in step with the cluster: the status of a policy, for example.

Each plugin is told what changed since it was last asked, and answers with writes. It is asked again once those are
answered, and not sooner than a second later. At the start it is asked about everything. After a write failed it is
asked again when the pause of that object is over (`refused_writes`): about everything, or about that object alone if it
declares `retries_by_object`. A plugin that must look again at a certain time says so (`reconcile_at`). Only some of its
writes are under way at a time; the others follow as these are answered. An eviction that a disruption budget does not
allow is no failure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine import messages
from stowplan.engine.outbox import Outbox
from stowplan.engine.refused_writes import RefusedWrites, written_uid
from stowplan.engine.reports import PluginMisbehaved, Report
from stowplan.framework.interfaces import ReconcilePlugin
from stowplan.framework.plugin_calls import call_actions, seconds_of
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.actions import Create, RequestEviction, Write
from stowplan.objects.changes import Result
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod

PAUSE = 1.0  # seconds
AFTER_ERROR = 10.0
MOST_CHANGES = 100_000  # object versions to remember; beyond that, the plugin is asked about everything
NOT_NOW = (409, 429)  # answers to an eviction: another pod of this name, a disruption budget
MOST_WRITES = 32  # of one plugin, at a time


class PluginReconciler:
    """One plugin: the changes it has not been told (None: everything), its writes under way, and those that follow."""

    def __init__(self, enabled: EnabledPlugin[ReconcilePlugin]) -> None:
        self.enabled = enabled
        self.kinds = frozenset(enabled.plugin.reconciles)
        self.changed: list[Object] | None = None
        self.ready_at = float("-inf")
        self.refused = RefusedWrites()
        self.awaited: set[int] = set()
        self.to_send: deque[Write] = deque()
        self.problem = ""  # what is wrong with its `reconcile_at`

    @property
    def due_at(self) -> float | None:
        if self.awaited:
            return None
        if self.changed is None or self.changed:
            return self.ready_at
        moments = (seconds_of(self.enabled, "reconcile_at", None), self.refused.again_at)
        again = min((moment for moment in moments if moment is not None), default=None)
        return None if again is None else max(again, self.ready_at)

    def affected_by(self, write: Write, state: ClusterState) -> list[Object] | None:
        """Return what the plugin is to look at after a write failed; None: at everything."""
        if not getattr(self.enabled.plugin, "retries_by_object", False):
            return None
        if isinstance(write, Create) or write.kind not in self.kinds or write.kind == "Node":
            return None
        if write.kind != "Pod":
            found = state.store.named(write.kind, write.key)
        elif uid := written_uid(write):
            found = state.known_pods.get(uid)
        else:
            return None
        return [] if found is None else [found]  # nothing, if it is gone


class Reconcilers:
    def __init__(
        self,
        profiles: Mapping[str, Profile],
        state: ClusterState,
        outbox: Outbox,
        report: Callable[[Report], None] = lambda _: None,
        node_for: Callable[[Pod], str | None] = lambda _: None,
    ) -> None:
        """`node_for`: where a pod that has a node would go if it were scheduled again."""
        self._profiles, self._state, self._outbox, self._report = profiles, state, outbox, report
        self._node_for = node_for
        self.plugins: list[PluginReconciler] = []
        self.clear()

    def clear(self) -> None:
        """Start again with the plugins of the profiles as they are now. One that several profiles share works once."""
        found = {enabled.name: enabled for profile in self._profiles.values() for enabled in profile.reconcilers}
        for each in self.plugins:
            self._outbox.forget(each.awaited)
        once = {id(enabled.plugin): enabled for enabled in found.values()}  # it may have several names
        self.plugins = [PluginReconciler(enabled) for enabled in once.values()]

    def awaits(self, number: int) -> bool:
        """True if this is the number of a write under way."""
        return any(number in each.awaited for each in self.plugins)

    def object_changed(self, *versions: Object | None) -> None:
        """An object was added, changed or deleted: its old and its new version."""
        for each in self.plugins:
            if each.changed is not None and len(each.changed) > MOST_CHANGES:
                each.changed = None
            elif each.changed is not None:
                each.changed += [
                    version for version in versions if version is not None and type(version).__name__ in each.kinds
                ]

    def next_deadline(self) -> float | None:
        moments = map(self._due_at, self.plugins)
        return min((moment for moment in moments if moment is not None), default=None)

    def _due_at(self, reconciler: PluginReconciler) -> float | None:
        """When the plugin is to be asked. A time that is none is reported once; without one, it waits for changes."""
        try:
            return reconciler.due_at
        except PluginError as error:
            if reconciler.problem != error.problem:
                reconciler.problem = error.problem
                self._misbehaved(error)
            return None

    def reconcile(self, now: float) -> None:
        """Ask the plugins that are due."""
        for each in self.plugins:
            due = self._due_at(each)
            if due is not None and due <= now:
                self._ask(each, now)

    def _ask(self, reconciler: PluginReconciler, now: float) -> None:
        changed, reconciler.changed, reconciler.ready_at = reconciler.changed, [], now + PAUSE
        due = reconciler.refused.due(now)
        if due and changed is not None:
            again = [reconciler.affected_by(write, self._state) for write in due]
            changed = None if None in again else [*changed, *(each for found in again for each in found or ())]
        try:
            enabled, cluster = reconciler.enabled, Cluster(self._state, node_for=self._node_for)
            writes = call_actions(enabled, enabled.plugin.reconcile, Write, changed, cluster)
            reconciler.to_send.extend(reconciler.refused.permitted(writes, due, now))
        except PluginError as error:
            reconciler.changed, reconciler.ready_at = None, now + AFTER_ERROR
            self._misbehaved(error)
        self._send(reconciler, now)

    def _misbehaved(self, error: PluginError) -> None:
        self._report(PluginMisbehaved(error.plugin, error.point, error.problem))

    def _send(self, reconciler: PluginReconciler, now: float) -> None:
        while reconciler.to_send and len(reconciler.awaited) < MOST_WRITES:
            write = reconciler.to_send.popleft()
            sent = self._outbox.send(write, now, partial(self._answered, reconciler, write))
            reconciler.awaited.add(sent.id)

    def _answered(self, reconciler: PluginReconciler, write: Write, result: Result, now: float) -> None:
        reconciler.awaited.discard(result.id)
        evicts = isinstance(write, RequestEviction)
        if isinstance(write, RequestEviction) and result.succeeded:
            self._outbox.send(messages.rebalanced(write), now)
        if result.succeeded or result.status == 404 or (evicts and result.status in NOT_NOW):
            reconciler.refused.done(write, succeeded=result.succeeded)
        else:
            reconciler.refused.refused(write, result.status, now)
        self._send(reconciler, now)
