"""The scheduler as a machine without a clock: `handle` takes changes, `step` decides, both return actions.

    submitted ─┬─► gated ◄─── its gate closes ─┐
               │     │ its gate opens          │
               ▼     ▼                         │
             active ◄── backoff ◄── woken ── unschedulable ◄──────┐
               │ step      ▲                                      │
               ▼           └── error backoff ◄────────────┤       │ rejected
    ┌────► deciding ── no node ───────────────────────────│──────►┤  (evictions, nomination, condition, event)
    │          │ │  └── a plugin raises ────────────────► │       │
    │ answered │ └── extenders must be asked ─► asking    │       │
    └──────────│─────────────────────────────────┘        │       │
               │ node                                     │       │
               ▼                                          │       │
           reserved ── reserve or permit refuses ─────────│──────►┤  (released in reverse order)
               │  └── reserve or permit raises ─────────► │       │
               ├─► waiting ── rejected, or time is up ────│──────►┘
               │      │   └── preempted ────────────────► │
               ▼      ▼ allowed                           │
          pre-binding ── raises, or an action fails ────► │
               │  │ └── others must finish it ─► awaiting │
               │  └◄─── it is there ───────────────┤      │
               ▼             refused, or late      └────► │
               │ all of its group are ready               │
               ▼                                          │
            binding ── refused, or never answered ──────► ┘  (the pod is read again where its fate is in doubt)
               ▼
             bound ── the watch says so, too ─► out

    from everywhere        deleted, finished, or bound by somebody else ─► out, all given back
    active, backoff,       a group with too few members ─► gated
      unschedulable, deciding
    unschedulable          an eviction made for it failed ─► error backoff
    waiting, pre-binding   another one of its group cannot go on, or it takes too long ─► with it
    bound                  its group is bound in part, and wants to be whole or nothing ─► evicted

What is reserved is in the one state (`columns.ClusterState`) as an assumed pod, so nothing is counted twice. The
queued part is `admission` (with `groups`) and `queue`, the attempt `deciding` (with `gang`), what follows `binding`
(with `placing`), the way back `recall` and `failing`; groups in trouble are `vigil`'s. Numbers, deadlines and who waits
for which result are in `outbox`; what plugins write besides decisions is `tending`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stowplan.columns.state import ClusterState
from stowplan.engine.attempt.attempt import Attempts
from stowplan.engine.binding.assumed_pod import assumed
from stowplan.engine.binding.binding import Binding
from stowplan.engine.binding.failure import FailureHandler
from stowplan.engine.groups.monitor import GroupMonitor
from stowplan.engine.preemption.eviction_retry import EvictionRetry
from stowplan.engine.queue import cluster_events
from stowplan.engine.queue.admission import Admission
from stowplan.engine.queue.cluster_events import ASSIGNED, ClusterEvent
from stowplan.engine.reconcilers import Reconcilers
from stowplan.engine.reports import Report
from stowplan.framework.config.settings import Extender
from stowplan.framework.pending_actions import PendingActions
from stowplan.framework.profile import Profile
from stowplan.objects.actions import Action
from stowplan.objects.changes import Gone, Put, Result
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.priority import prioritised
from stowplan.objects.workloads import PriorityClass

ANSWER_WITHIN = 30.0  # seconds until an action counts as lost


class Scheduler:
    """`now` is the caller's clock, in seconds; it must not run backwards."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        generator: np.random.Generator,
        *,
        state: ClusterState | None = None,
        extenders: Sequence[Extender] = (),
        report: Callable[[Report], None] = lambda _: None,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        longest_wait: float = 300.0,
        answer_within: float = ANSWER_WITHIN,
    ) -> None:
        self.profiles = dict(profiles)
        self.state = state or ClusterState()
        for profile in self.profiles.values():
            profile.attach(self.state)
        self._outbox = PendingActions(answer_within)
        self.admission = Admission(
            self.profiles,
            self.state,
            initial_backoff=initial_backoff,
            max_backoff=max_backoff,
            longest_wait=longest_wait,
        )
        failing = FailureHandler(self.admission, report)
        insisting = EvictionRetry(self.admission.groups, self.admission.known, self._outbox)
        self._binding = Binding(self.admission, failing, self._outbox, self._vanished, report, extenders)
        self.deciding = Attempts(
            self.profiles,
            self.state,
            generator,
            self.admission,
            self._binding,
            failing,
            insisting,
            self._outbox,
            report,
            extenders,
        )
        self._tending = Reconcilers(self.profiles, self.state, self._outbox, report)
        self._vigil = GroupMonitor(self.admission, insisting, self._outbox, report)
        self.state.known_pods, self.state.scheduler_names = self.admission.known, self.profiles
        self._uids: dict[str, str] = {}  # of the pod that has a name now
        self.queue, self.placings, self.trails = self.admission.queue, self._binding.placings, self.deciding.trails

    # -- what comes in

    def handle(self, change: Put | Gone | Result, now: float) -> list[Action]:
        """Take in what happened; what follows from it at once comes back as actions."""
        self.state.now = now
        if isinstance(change, Result):
            return self._outbox.numbered(self._outbox.answered(change, now), now)
        found, gone = change.object, isinstance(change, Gone)
        if isinstance(found, Pod):
            return self._outbox.numbered(self._pod_came(self._with_priority(found), gone, now), now)
        old = self._old(found)
        self.state.apply(change)
        self._binding.awaiting.changed(found)
        self._tending.changed(old, None if gone else found)
        self.admission.happened(cluster_events.of(old, None if gone else found, self.profiles), now)
        return []

    def step(self, now: float) -> list[Action]:
        """Ask those again who wait for what changed, settle what ran out of time, then decide one unit."""
        self.state.now = now
        return self._outbox.numbered(self._step(now), now)

    def _step(self, now: float) -> Iterator[Any]:
        if self._binding.awaiting.ready:
            yield from self._binding.awaiting.ask_again(now)
        if self._outbox.due(now):
            yield from self._outbox.expire(now)
        if self._tending.anybody:
            yield from self._tending.tend(now)
        if self.admission.groups.changed:
            yield from self._vigil.look(now)
        attempt = self.deciding.next(now)
        if attempt is not None:
            yield from self.deciding.try_out(attempt, now)

    def next_deadline(self) -> float | None:
        """When time alone makes a step worth taking; minus infinity if one is already."""
        if self.deciding.ready or self._binding.awaiting.ready or self.admission.groups.changed:
            return float("-inf")
        moments = (self._outbox.next_deadline(), self.queue.next_deadline(), self._tending.next_deadline())
        return min((moment for moment in moments if moment is not None), default=None)

    def is_upkeep(self, action: Action) -> bool:
        """Is it a write of a plugin that keeps something in step? No decision waits for it."""
        return self._tending.awaits(action.id)

    def allow(self, uid: str, plugin: str, now: float) -> list[Action]:
        """A plugin that made the pod wait lets it go on."""
        return self._outbox.numbered(self._binding.allow(uid, plugin, now), now)

    def reject(self, uid: str, plugin: str, message: str, now: float) -> list[Action]:
        """A plugin that made the pod wait refuses it after all."""
        return self._outbox.numbered(self._binding.reject(uid, plugin, message, now), now)

    def adopt(
        self,
        profiles: Mapping[str, Profile],
        now: float,
        *,
        extenders: Sequence[Extender] = (),
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
    ) -> None:
        """Another configuration from now on. Pods on their way to a node finish it as they began; all others are
        looked at anew, those of profiles that are gone let go, those of new ones taken in.
        """
        self.profiles.clear()
        self.profiles.update(profiles)
        for profile in self.profiles.values():
            profile.attach(self.state)
        self._binding.extenders = extenders
        self.deciding.adopt(extenders)
        self._tending.adopt()
        self._vigil.adopt()
        self.admission.adopt(
            now,
            initial_backoff=initial_backoff,
            max_backoff=max_backoff,
            on_their_way=self.placings,
            told=self.deciding.told,
        )

    # -- pods

    def _pod_came(self, pod: Pod, gone: bool, now: float) -> Iterator[Any]:
        """A pod of the same name that nobody said had gone is gone: a list may skip what happened in between."""
        before = self._uids.get(pod.key, pod.uid)
        if before != pod.uid and not gone:
            yield from self._vanished(before, now)
        yield from self._pod_changed(pod, gone, now)

    def _pod_changed(self, pod: Pod, gone: bool, now: float) -> Iterator[Any]:
        known, out = self.admission.known, gone or pod.finished
        if out and not pod.node_name:
            pod = self._binding.as_bound(pod)
        old = known.pop(pod.uid, None)
        if not out:
            known[pod.uid] = pod
            self._uids[pod.key] = pod.uid
        elif self._uids.get(pod.key) == pod.uid:
            del self._uids[pod.key]
        self._tending.changed(old, pod if pod.finished or not out else None)  # how it ended may matter
        self.admission.groups.heard(pod, out, now)
        yield from self._binding.heard(pod, out, now)
        if out or pod.node_name:
            self.state.nominations.drop(pod.uid)
            self.admission.withdraw(pod.uid, now)
            self.state.apply(Gone(pod) if out else Put(pod))
        else:
            self.state.pending_pods.update(pod, False)
            if pod.uid not in self.placings:
                self._keep_promise(old, pod)
                self.admission.submit(pod, now)
        self.admission.happened(cluster_events.of(old, None if out else pod, self.profiles), now)
        self._promise_changed(old, None if out else pod, now)

    def _keep_promise(self, old: Pod | None, pod: Pod) -> None:
        """The state follows what the pod's status says about its node; a promise not written yet stands till then."""
        said_before = "" if old is None else old.nominated_node
        promised = self.state.nominations.node_of(pod.uid) if pod.nominated_node == said_before else pod.nominated_node
        self.state.nominations.drop(pod.uid)
        if promised and not pod.terminating:
            self.admission.promise(pod, promised)

    def _promise_changed(self, old: Pod | None, new: Pod | None, now: float) -> None:
        """A node that is no longer kept for a pod is, for others no more important, as if that pod had left it."""
        if old is None or not old.nominated_node or old.node_name:
            return
        if new is None or (not new.node_name and new.nominated_node != old.nominated_node):
            left = ClusterEvent(ASSIGNED, "Delete", assumed(old, old.nominated_node), None)
            own = self.queue.units.get(self.admission.unit_of.get(old.uid))
            profile = self.profiles.get(old.scheduler_name)
            grouped = profile is not None and profile.groups  # then it may have been kept against everybody
            self.admission.happened([left], now, most_important=None if grouped else old.priority, besides=own)

    def _vanished(self, uid: str, now: float) -> Iterator[Any]:
        pod = self.admission.known.get(uid)
        return iter(()) if pod is None else self._pod_changed(pod, True, now)

    def _with_priority(self, pod: Pod) -> Pod:
        """Where no admission plugin did it: the priority of the pod's class."""
        if pod.spec.priority is not None:
            return pod
        return prioritised(pod, self.state.store.every(PriorityClass))

    def _old(self, found: Object) -> Object | None:
        if not isinstance(found, Node):
            return self.state.assumed.actual(type(found), found.key)
        row = self.state.table.row_of.get(found.name)
        return None if row is None else self.state.table.nodes[row]
