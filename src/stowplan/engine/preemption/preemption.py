"""Preemption carried out: victims are evicted for a pod, or for a whole group.

Which pods are the victims is decided elsewhere: for a pod by the post-filter plugin, for a group by `group_preemption`.
A victim that is still in its binding cycle is rolled back instead of evicted. Pods of lower priority lose their
nominations on the node. The preemptor is attempted again once the API server has accepted the last eviction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from stowplan.columns.state import ClusterState
from stowplan.engine import messages
from stowplan.engine.attempt.placer import Placer
from stowplan.engine.binding.binding_cycle import BindingCycle
from stowplan.engine.groups.groups import Groups
from stowplan.engine.messages import Preemptor
from stowplan.engine.nominations import companions_left
from stowplan.engine.outbox import Outbox
from stowplan.engine.pods import assumed
from stowplan.engine.preemption.eviction_retry import EvictionRetry
from stowplan.engine.preemption.group_preemption import GroupPreemption, PreemptionPlan
from stowplan.engine.preemption.group_victims import GroupVictims
from stowplan.engine.preemption.min_resources_hold import MinResourcesHold
from stowplan.engine.queue.cluster_events import ASSIGNED, ClusterEvent
from stowplan.engine.queue.scheduling_queue import SchedulingQueue
from stowplan.engine.reports import PreemptionStarted, Report
from stowplan.engine.unit import Unit
from stowplan.framework.decision import Candidate, Decision
from stowplan.framework.profile import Profile
from stowplan.objects.actions import Evict, Nominate, Record
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod


class Preemption:
    def __init__(
        self,
        state: ClusterState,
        known: Mapping[str, Pod],
        queue: SchedulingQueue,
        groups: Groups,
        binding: BindingCycle,
        eviction_retry: EvictionRetry,
        outbox: Outbox,
        report: Callable[[Report], None],
    ) -> None:
        """`known`: every pod that the API server told us about, by uid."""
        self._state, self._known, self._queue, self._groups = state, known, queue, groups
        self._binding, self._retry, self._outbox, self._report = binding, eviction_retry, outbox, report
        self.group_victims = GroupVictims(state, groups)
        self.evicting: dict[str, None] = {}  # uids of pods whose eviction was requested, and that are still there
        self.min_resources_hold = MinResourcesHold(state, groups, self.evicting)

    # -- who is evicted

    def for_pod(self, unit: Unit, pod: Pod, candidate: Candidate, now: float) -> None:
        """Evict the victims of a single pod."""
        self._forget_deleted()
        self._report(PreemptionStarted(pod.key, candidate.node, len(candidate.victims)))
        self._evict(unit, messages.preemptor(pod), pod.priority, candidate.node, candidate.victims, now)

    def plan(
        self, unit: Unit, profile: Profile, placer: Placer, failed: Sequence[Decision] = ()
    ) -> PreemptionPlan | None:
        """Which pods to evict for a group, or for a pod with room for others; None if that does not help.

        `failed`: decisions about its members.
        """
        self._forget_deleted()
        search = GroupPreemption(self._state, placer, self._groups, self.evicting, self.min_resources_hold)
        return search.plan(unit, profile, failed)

    def for_group(self, unit: Unit, plan: PreemptionPlan, now: float) -> None:
        """Evict the victims of a group, or of a pod with room for others, node by node."""
        if plan.victims:
            self._report(PreemptionStarted(unit.group or unit.lead.key, "", len(plan.victims)))
        by_node: dict[str, list[Pod]] = {}
        for victim in plan.victims:
            by_node.setdefault(self._node_of(victim), []).append(victim)
        found = self._groups.get(unit.group)
        by = messages.preemptor(unit.lead, None if found is None else found.group)
        priority = unit.lead.priority if found is None else found.preemptor_priority(unit.ready)
        for node_name, victims in by_node.items():
            self._evict(unit, by, priority, node_name, victims, now)

    def _forget_deleted(self) -> None:
        for uid in [uid for uid in self.evicting if uid not in self._known]:
            del self.evicting[uid]

    def _node_of(self, pod: Pod) -> str:
        placed = self._state.pods.get(pod.uid)
        return pod.node_name if placed is None else self._state.table.names[placed.row]

    # -- evictions

    def _evict(
        self, unit: Unit, by: Preemptor, priority: int, node_name: str, victims: Sequence[Pod], now: float
    ) -> None:
        self._drop_nominations(unit, priority, node_name, now)
        victims = [*victims, *self.group_victims.of(victims, priority)]
        in_binding = {victim.uid: self._binding.assumed_pods.get(victim.uid) for victim in victims}
        for victim in victims:
            found = in_binding[victim.uid]
            if found is not None and found.can_roll_back:
                self._outbox.send(messages.preempted(victim, by, node_name, in_memory=True), now)
                if self._binding.assumed_pods.get(victim.uid) is found:  # not yet rolled back with its group
                    self._binding.rollback.roll_back(found, "preempted", now)
            elif not victim.terminating and victim.uid not in self.evicting:
                self._request(unit, by, victim, now)

    def _drop_nominations(self, unit: Unit, priority: int, node_name: str, now: float) -> None:
        """Pods of lower priority lose their nominations on this node."""
        nominated = self._state.nominated_pods
        others = nominated.by_node.get(node_name, {}).values()
        for other in {
            owner.uid: owner for each in others if (owner := nominated.owner_of.get(each.uid, each))
        }.values():
            if other.priority < priority:
                freed = nominated.drop(other.uid)
                self._outbox.send(Nominate(pod=messages.ref(other), node_name=""), now)
                event = ClusterEvent(ASSIGNED, "Delete", assumed(other, node_name))
                self._queue.event_for_pod(other.uid, event, now)
                companions_left(freed, self._queue, now, except_unit=unit)

    def _request(self, unit: Unit, by: Preemptor, victim: Pod, now: float) -> None:
        event = messages.preempted(victim, by, self._node_of(victim))
        eviction = messages.eviction(victim, by)
        group = self._groups.name_of(victim.uid)
        sent = self._outbox.send(eviction, now, partial(self._answered, unit, event, eviction, group))
        self.evicting[victim.uid] = None
        self._groups.evicting(victim.uid)
        unit.evicting.add(sent.id)

    def _answered(
        self, unit: Unit, event: Record, eviction: Evict, group: str, result: Result, now: float
    ) -> None:  # fmt: skip
        unit.evicting.discard(result.id)
        accepted = result.succeeded or result.status in (404, 410)
        if result.succeeded:
            self._outbox.send(event, now)
        if accepted:
            self._retry.accepted(eviction.pod.uid, group, now)
        else:
            self.evicting.pop(event.pod.uid, None)
            self._retry.refused(eviction, now, event)
        if self._queue.units.get(unit.key) is not unit:
            return
        if not accepted:
            self._queue.evictions_failed(unit, now)
        elif not unit.evicting:
            self._queue.evictions_done(unit, now)
