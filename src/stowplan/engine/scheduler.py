"""The scheduler of pods. It has no clock and no I/O: `handle` takes changes, `step` decides, both return actions.

    submitted ─┬─► gated ◄─── its gate closes ─┐
               │     │ its gate opens          │
               ▼     ▼                         │
             active ◄── backoff ◄── requeued ─ unschedulable ◄────┐
               │ step      ▲                                      │
               ▼           └── error backoff ◄────────────┤       │ rejected
    ┌────► attempted ── no feasible node ─────────────────│──────►┤  (evictions, nomination, condition, event)
    │          │ │  └── a plugin raises ────────────────► │       │
    │ answered │ └── extenders must be asked ─► asking    │       │
    └──────────│─────────────────────────────────┘        │       │
               │ node                                     │       │
               ▼                                          │       │
           reserved ── reserve or permit rejects ─────────│──────►┤  (released in reverse order)
               │  └── reserve or permit raises ─────────► │       │
               ├─► waiting ── rejected, or timed out ─────│──────►┘
               │      │   └── preempted ────────────────► │
               ▼      ▼ permitted                         │
          pre-binding ── raises, or an action fails ────► │
               │  │ └── must take effect first ─► awaiting│
               │  └◄─── it took effect ────────────┤      │
               ▼             refused, or timed out └────► │
               │ all members of its group are ready       │
               ▼                                          │
            binding ── refused, or never answered ──────► ┘  (the pod is read again if its state is in doubt)
               ▼
             bound ── the watch shows it, too ─► out  (if not, it is read: active again if it has no node)

    from every state       deleted, finished, or bound by another scheduler ─► out, everything released
    active, backoff,       a group with too few members ─► gated
      unschedulable, attempted
    unschedulable          an eviction for it failed ─► error backoff
    waiting, pre-binding   another member of its group failed, or took too long ─► rolled back with it
    bound                  its group is partially bound, and asks for all or nothing ─► evicted

A pod goes through four packages in one direction: `queue` (with `groups`), `attempt` (with `preemption`), `binding`,
and out. An assumed pod is counted in the one cluster state, so nothing is counted twice. Actions leave through the
outbox; a result finds its receiver there. Writes of plugins that are no decisions are in `reconcilers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from stowplan.columns.state import ClusterState
from stowplan.engine.attempt.attempt import Attempts
from stowplan.engine.binding.binding_cycle import BindingCycle
from stowplan.engine.explain import Explainer, Explanation
from stowplan.engine.failure import FailureHandler
from stowplan.engine.groups.groups import Groups
from stowplan.engine.groups.monitor import GroupMonitor
from stowplan.engine.nominations import Nominations, companions_left
from stowplan.engine.outbox import Outbox
from stowplan.engine.preemption.eviction_retry import EvictionRetry
from stowplan.engine.preemption.preemption import Preemption
from stowplan.engine.queue.cluster_events import ClusterEvents
from stowplan.engine.queue.scheduling_queue import SchedulingQueue
from stowplan.engine.reconcilers import Reconcilers
from stowplan.engine.rehearsal import GroupRehearsals
from stowplan.engine.reports import BoundByAnother, Report
from stowplan.framework.config.settings import Extender
from stowplan.framework.profile import Profile
from stowplan.framework.ranking import Draw
from stowplan.objects.actions import Action
from stowplan.objects.changes import Gone, Put, Result
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.priority import with_priority
from stowplan.objects.workloads import PriorityClass

ANSWER_WITHIN = 30.0  # seconds until an action counts as lost


class Scheduler:
    """`now` is the caller's clock, in seconds; it must not run backwards."""

    def __init__(
        self,
        profiles: Mapping[str, Profile],
        generator: Draw,
        *,
        state: ClusterState | None = None,
        extenders: Sequence[Extender] = (),
        report: Callable[[Report], None] = lambda _: None,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        longest_wait: float = 300.0,
        answer_within: float = ANSWER_WITHIN,
        clock_began: float = 0.0,
    ) -> None:
        """`clock_began`: when the caller's clock showed 0, in seconds since the epoch."""
        self.profiles, self._report = dict(profiles), report
        self.state = state or ClusterState()
        self.state.clock_began = clock_began or self.state.clock_began
        self.pods: dict[str, Pod] = {}  # every pod that the API server told us about, by uid
        self._attach_plugins()
        self._uids: dict[str, str] = {}  # the uid of the pod that has a name now, by namespace/name
        self._outbox = outbox = Outbox(answer_within)
        self.groups = Groups(self.profiles, self.state)
        self.queue = SchedulingQueue(
            self.profiles,
            self.state,
            self.groups,
            initial_backoff=initial_backoff,
            max_backoff=max_backoff,
            longest_wait=longest_wait,
        )
        self._nominations = Nominations(self.profiles, self.state, self.groups, self.queue)
        self._failures = failures = FailureHandler(
            self.profiles, self.pods, self.queue, self.groups, self._nominations, outbox, report
        )
        self._cluster_events = ClusterEvents(self.profiles)
        self.binding = BindingCycle(self.queue, self.groups, failures, self._cluster_events, outbox, report, extenders)
        retry = EvictionRetry(self.groups, self.pods, outbox)
        self.preemption = Preemption(
            self.state, self.pods, self.queue, self.groups, self.binding, retry, outbox, report
        )
        self.attempts = Attempts(
            self.profiles,
            self.state,
            generator,
            self.queue,
            self.groups,
            self.binding,
            self.preemption,
            failures,
            outbox,
            report,
            extenders,
        )
        self._monitor = GroupMonitor(self.state, self.queue, self.groups, retry, outbox, report)
        self._explainer = Explainer(self.state, self.queue, self.groups, self.preemption)
        self.rehearsals = GroupRehearsals(
            self.state, self.profiles, self.groups, self.preemption.min_resources_hold, self.preemption.evicting
        )
        self._reconcilers = Reconcilers(self.profiles, self.state, outbox, report, self._node_for)
        self.state.known_pods, self.state.scheduler_names = self.pods, self.profiles
        self.assumed_pods, self.decisions = self.binding.assumed_pods, self.attempts.decisions

    # -- what comes in

    def handle(self, change: Put | Gone | Result, now: float) -> list[Action]:
        """Take in a change of the cluster, or the result of an action. Return the actions that follow at once."""
        self.state.now = now
        if isinstance(change, Result):
            self._outbox.deliver(change, now)
            if self.binding.missing:
                self._remove_missing(now)
        elif isinstance(change.object, Pod):
            self._pod_changed(self._with_priority(change.object), isinstance(change, Gone), now)
        else:
            self._object_changed(change, now)
        return self._outbox.take() if self._outbox.outgoing else []

    def step(self, now: float) -> list[Action]:
        """Settle what is due, then attempt one unit."""
        self.state.now = now
        if self.binding.waits.to_ask:
            self.binding.ask_waiting(now)
        if self._outbox.next_due <= now:
            self._outbox.expire(now)
            self._remove_missing(now)
            self._take_back_unbound(now)
        if self._reconcilers.plugins:
            self._reconcilers.reconcile(now)
        if self.groups.changed:
            self._monitor.look(now)
        self.attempts.next(now)
        return self._outbox.take()

    def next_deadline(self) -> float | None:
        """When time alone makes a step worth taking; minus infinity if one is already."""
        if self.attempts.rounds.answered or self.binding.waits.to_ask or self.groups.changed or self._outbox.outgoing:
            return float("-inf")
        moments = (self._outbox.next_deadline(), self.queue.next_deadline(), self._reconcilers.next_deadline())
        return min((moment for moment in moments if moment is not None), default=None)

    def is_upkeep(self, action: Action) -> bool:
        """True for a write of a plugin that reconciles objects. No decision waits for it."""
        return self._reconcilers.awaits(action.id)

    def allow(self, uid: str, plugin: str, now: float) -> list[Action]:
        """A plugin that made the pod wait permits its binding."""
        self.binding.allow(uid, plugin, now)
        return self._outbox.take()

    def reject(self, uid: str, plugin: str, message: str, now: float) -> list[Action]:
        """A plugin that made the pod wait rejects it."""
        self.binding.reject(uid, plugin, message, now)
        return self._outbox.take()

    def plugin_hung(self, uid: str, problem: str, now: float) -> list[Action]:
        """A call of a plugin about this pod had to be ended from outside: its attempt failed like after any error.

        After three such attempts the pod, or its group, is set aside until it or the configuration changes.
        """
        unit = self.queue.find(uid)
        if unit is not None:
            self._failures.plugin_hung(unit, problem, now)
        return self._outbox.take()

    def step_failed(self, problem: str, now: float) -> list[Action]:
        """A step raised, which is a fault of ours: the unit that was attempted fails with an error. Nothing may be left
        of the step but what is in the outbox.
        """
        self.attempts.give_up(problem, now)
        return self._outbox.take()

    def explain(self, uid: str) -> Explanation:
        """Where this pod would go now, and why not elsewhere. Nothing changes.

        The pod must be known, and its scheduler must be one of our profiles.
        """
        return self.explain_all([uid])[uid]

    def explain_pod(self, pod: Pod) -> Explanation:
        """Where a pod would go that the scheduler does not know: a finished one, or one from a manifest."""
        return self._explainer.alone(self._with_priority(pod), self.profiles[pod.scheduler_name])

    def explain_all(self, uids: Iterable[str]) -> dict[str, Explanation]:
        """Explain these pods, by uid. Each group is looked at once."""
        return self._explainer.explain((self.pods[uid] for uid in uids), self.profiles)

    def _node_for(self, pod: Pod) -> str | None:
        """Where a pod that has a node would go if it were scheduled again, without evictions."""
        profile = self.profiles.get(pod.scheduler_name)
        return None if profile is None else self._explainer.decide(pod, profile, preempt=False).node

    def adopt(
        self,
        profiles: Mapping[str, Profile],
        now: float,
        *,
        extenders: Sequence[Extender] = (),
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
    ) -> None:
        """Go on with another configuration. Pods in their binding cycle finish it as they started. All other pods are
        taken in again: those of removed profiles are dropped, those of new profiles are added.
        """
        self.profiles.clear()
        self.profiles.update(profiles)
        self._attach_plugins()
        self._cluster_events.clear()
        self.binding.extenders = extenders
        self.attempts.rounds.clear(extenders)
        self._reconcilers.clear()
        self._monitor.clear()
        self.groups.clear()
        self.queue.clear(initial_backoff=initial_backoff, max_backoff=max_backoff)
        for pod in self.pods.values():
            self.groups.pod_changed(pod, False, now)
        for uid in self.assumed_pods:
            self.groups.assume(uid)
        for uid in self.preemption.evicting:
            self.groups.evicting(uid)
        for pod in list(self.pods.values()):
            if not pod.node_name and pod.uid not in self.queue.unit_of and pod.uid not in self.state.pods:
                self.queue.add_pod(pod, now)

    def _attach_plugins(self) -> None:
        """Let the cluster state know which plugins hold room on nodes."""
        for profile in self.profiles.values():
            profile.attach(self.state)

    # -- pods

    def _pod_changed(self, pod: Pod, gone: bool, now: float) -> None:
        """A pod was added, changed or deleted. If another pod had its name, that one is gone: a list may skip that."""
        before = self._uids.get(pod.key, pod.uid)
        if before != pod.uid and not gone:
            self._remove(before, now)
        self._take_in(pod, gone or pod.finished, now)

    def _remove(self, uid: str, now: float) -> None:
        pod = self.pods.get(uid)
        if pod is not None:
            self._take_in(pod, True, now)

    def _remove_missing(self, now: float) -> None:
        """Remove the pods that the API server turned out not to have."""
        while self.binding.missing:
            self._remove(self.binding.missing.pop(0), now)

    def _take_back_unbound(self, now: float) -> None:
        """Schedule the pods again that turned out not to be bound."""
        unbound = self.binding.confirmations.unbound
        while unbound:
            assumed_pod = unbound.pop(0)
            self.binding.take_back(assumed_pod, now)
            pod = self.pods.get(assumed_pod.uid)
            if pod is not None and not pod.node_name:
                self._take_in(pod, False, now)

    def _take_in(self, pod: Pod, out: bool, now: float) -> None:
        """`out`: the pod was deleted or has finished."""
        if out and not pod.node_name:
            pod = self.binding.as_bound(pod)
        old = self._remember(pod, out)
        if self._reconcilers.plugins:
            self._reconcilers.object_changed(old, pod if pod.finished or not out else None)
        if self.groups.enabled:
            self.groups.pod_changed(pod, out, now)
        if old is not None and pod.node_name and not old.node_name and pod.scheduler_name in self.profiles:
            self._bound_by_whom(pod, out)
        assumed_pod = self.assumed_pods.get(pod.uid)
        if assumed_pod is not None:
            self.binding.pod_changed(assumed_pod, pod, out, now)
        if out or pod.node_name:
            freed = self._nominations.end(pod.uid)
            if pod.uid in self.queue.unit_of:
                self.queue.remove_pod(pod.uid, now)
            self.state.apply(Gone(pod) if out else Put(pod))
            if freed:
                companions_left(freed, self.queue, now)
        else:
            self.state.pending_pods.update(pod, False)
            if pod.uid not in self.assumed_pods:
                if pod.nominated_node or self.state.nominated_pods:
                    self._nominations.pending_pod_changed(old, pod, now)
                self.queue.add_pod(pod, now)
        if old is not None or (pod.node_name and not out):  # a new pod without a node is no event for others
            self.queue.events(self._cluster_events.of(old, None if out else pod), now)
        if old is not None and old.nominated_node:
            self._nominations.withdrawn(old, None if out else pod, now)

    def _bound_by_whom(self, pod: Pod, out: bool) -> None:
        """A pod of ours got a node. A finished or deleted one is not asked about: it may have been bound long ago."""
        if not self.binding.is_own(pod) and not out:
            self._report(BoundByAnother(pod.key, pod.node_name, pod.scheduler_name))

    def _remember(self, pod: Pod, out: bool) -> Pod | None:
        """Keep the pod, or forget it. Return its last version."""
        old = self.pods.pop(pod.uid, None)
        if not out:
            self.pods[pod.uid] = pod
            self._uids[pod.key] = pod.uid
        elif self._uids.get(pod.key) == pod.uid:
            del self._uids[pod.key]
        return old

    def _with_priority(self, pod: Pod) -> Pod:
        """Where no admission plugin did it: the priority of the pod's class."""
        if pod.spec.priority is not None:
            return pod
        return with_priority(pod, self.state.store.every(PriorityClass))

    # -- other objects

    def _object_changed(self, change: Put | Gone, now: float) -> None:
        found = change.object
        old, new = self._last_version(found), None if isinstance(change, Gone) else found
        self.state.apply(change)
        self.binding.waits.object_changed(found)
        if self._reconcilers.plugins:
            self._reconcilers.object_changed(old, new)
        self.queue.events(self._cluster_events.of(old, new), now)

    def _last_version(self, found: Object) -> Object | None:
        if not isinstance(found, Node):
            return self.state.assumed.actual(type(found), found.key)
        row = self.state.table.row_of.get(found.name)
        return None if row is None else self.state.table.nodes[row]
