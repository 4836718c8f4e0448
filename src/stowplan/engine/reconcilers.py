"""Plugins that keep objects in the API in step with the cluster: the status of a policy, for example.

Each plugin is told what changed since it was last asked, and answers with writes. It is asked again once those are
answered, and not sooner than a second later. At the start, and after a write failed, it is asked about everything. A
plugin that must look again at a certain time says so (`reconcile_at`). Only some of its writes are under way at a time;
the others follow as these are answered. An eviction that a disruption budget does not allow is no failure.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine import messages
from stowplan.engine.outbox import Outbox
from stowplan.engine.reports import PluginMisbehaved, Report
from stowplan.framework.interfaces import ReconcilePlugin
from stowplan.framework.plugin_calls import call_actions, seconds_of
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.actions import RequestEviction, Write
from stowplan.objects.changes import Result
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod

PAUSE = 1.0  # seconds
LONGEST_PAUSE = 300.0
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
        self.refusals = 0  # in a row
        self.awaited: set[int] = set()
        self.to_send: deque[Write] = deque()
        self.problem = ""  # what is wrong with its `reconcile_at`

    @property
    def due_at(self) -> float | None:
        if self.awaited:
            return None
        if self.changed is None or self.changed:
            return self.ready_at
        again = seconds_of(self.enabled, "reconcile_at", None)
        return None if again is None else max(again, self.ready_at)


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
        try:
            enabled, cluster = reconciler.enabled, Cluster(self._state, node_for=self._node_for)
            reconciler.to_send.extend(call_actions(enabled, enabled.plugin.reconcile, Write, changed, cluster))
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
        """A plugin whose writes are refused again and again is asked less often: it may lack the right to write."""
        reconciler.awaited.discard(result.id)
        evicts = isinstance(write, RequestEviction)
        if isinstance(write, RequestEviction) and result.succeeded:
            self._outbox.send(messages.rebalanced(write), now)
        if result.succeeded or result.status == 404 or (evicts and result.status in NOT_NOW):
            reconciler.refusals = 0
        else:
            reconciler.refusals += 1
            pause = min(PAUSE * 2.0 ** min(reconciler.refusals - 1, 10), LONGEST_PAUSE)
            reconciler.changed, reconciler.ready_at = None, max(reconciler.ready_at, now + pause)
        self._send(reconciler, now)
