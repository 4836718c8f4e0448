"""Plugins that keep objects of their own in step with the cluster: the status of a policy, say.

Each is told what changed since it was last asked, and answers with writes. It is asked again once those are answered,
not sooner than a second later, however much happens. Where a write failed, and at the start, it is asked about
everything. One that must look again by a certain time, though nothing changed, says so (`reconcile_at`). So many of its
writes are under way at a time; the others follow as these are answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine.reports import PluginMisbehaved, Report
from stowplan.framework.interfaces import ReconcilePlugin
from stowplan.framework.pending_actions import PendingActions
from stowplan.framework.plugin_calls import call_list
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.actions import Write
from stowplan.objects.changes import Result
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import Object

PAUSE = 1.0  # seconds
LONGEST_PAUSE = 300.0
AFTER_ERROR = 10.0
MOST = 100_000  # versions to remember; beyond that, everything is looked at
AT_A_TIME = 32  # writes of one plugin


class PluginReconciler:
    """One plugin, what it has not been told yet (None: everything), its writes under way, and those that follow."""

    def __init__(self, enabled: EnabledPlugin[ReconcilePlugin]) -> None:
        self.enabled = enabled
        self.kinds = frozenset(enabled.plugin.reconciles)
        self.changed: list[Object] | None = None
        self.ready_at = float("-inf")
        self.refusals = 0  # in a row
        self.awaited: set[int] = set()
        self.to_be_sent: deque[Write] = deque()

    @property
    def due_at(self) -> float | None:
        if self.awaited:
            return None
        if self.changed is None or self.changed:
            return self.ready_at
        again: float | None = getattr(self.enabled.plugin, "reconcile_at", None)
        return None if again is None else max(again, self.ready_at)


class Reconcilers:
    def __init__(
        self,
        profiles: Mapping[str, Profile],
        state: ClusterState,
        outbox: PendingActions,
        report: Callable[[Report], None] = lambda _: None,
    ) -> None:
        self._profiles, self._state, self._outbox, self._report = profiles, state, outbox, report
        self._reconcilers: list[PluginReconciler] = []
        self.adopt()

    def adopt(self) -> None:
        """The plugins of the profiles as they are now. One that several profiles have does its work once."""
        found = {enabled.name: enabled for profile in self._profiles.values() for enabled in profile.reconcilers}
        for reconciler in self._reconcilers:
            self._outbox.forget(reconciler.awaited)
        self._reconcilers = [PluginReconciler(enabled) for enabled in found.values()]

    @property
    def anybody(self) -> bool:
        return bool(self._reconcilers)

    def awaits(self, number: int) -> bool:
        """Is this the number of a write under way?"""
        return any(number in reconciler.awaited for reconciler in self._reconcilers)

    def changed(self, *versions: Object | None) -> None:
        """An object came, changed or went: its old and its new version."""
        for reconciler in self._reconcilers:
            if reconciler.changed is not None and len(reconciler.changed) > MOST:
                reconciler.changed = None
            elif reconciler.changed is not None:
                reconciler.changed += [
                    each for each in versions if each is not None and type(each).__name__ in reconciler.kinds
                ]

    def next_deadline(self) -> float | None:
        moments = (reconciler.due_at for reconciler in self._reconcilers)
        return min((moment for moment in moments if moment is not None), default=None)

    def reconcile(self, now: float) -> Iterator[Any]:
        """Ask those for whom it is time."""
        for reconciler in self._reconcilers:
            due = reconciler.due_at
            if due is not None and due <= now:
                yield from self._ask(reconciler, now)

    def _ask(self, reconciler: PluginReconciler, now: float) -> Iterator[Any]:
        told, reconciler.changed, reconciler.ready_at = reconciler.changed, [], now + PAUSE
        try:
            enabled = reconciler.enabled
            writes = call_list(enabled, enabled.plugin.reconcile, Write, told, Cluster(self._state))
            reconciler.to_be_sent.extend(writes)
        except PluginError as error:
            reconciler.changed, reconciler.ready_at = None, now + AFTER_ERROR
            self._report(PluginMisbehaved(error.plugin, error.point, error.problem))
        yield from self._send(reconciler, now)

    def _send(self, reconciler: PluginReconciler, now: float) -> Iterator[Any]:
        while reconciler.to_be_sent and len(reconciler.awaited) < AT_A_TIME:
            sent = self._outbox.send(reconciler.to_be_sent.popleft(), now, partial(self._answered, reconciler))
            reconciler.awaited.add(sent.id)
            yield sent

    def _answered(self, reconciler: PluginReconciler, result: Result, now: float) -> Iterator[Any]:
        """Refused again and again, it is tried ever more seldom: nobody may have the right to write there."""
        reconciler.awaited.discard(result.id)
        if result.fine or result.status == 404:
            reconciler.refusals = 0
        else:
            reconciler.refusals += 1
            pause = min(PAUSE * 2.0 ** min(reconciler.refusals - 1, 10), LONGEST_PAUSE)
            reconciler.changed, reconciler.ready_at = None, max(reconciler.ready_at, now + pause)
        yield from self._send(reconciler, now)
