"""One attempt at a unit: find nodes for its pods and start their binding cycles; or fail, and preempt if that helps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from stowplan.columns.pods.nominated_pods import Companions
from stowplan.columns.state import ClusterState
from stowplan.engine import messages
from stowplan.engine.attempt import placer
from stowplan.engine.attempt.extender_round import ExtenderRound, ExtenderRounds
from stowplan.engine.attempt.placer import Placer, UnitOutcome
from stowplan.engine.binding.assumed_pod import AssumedPod
from stowplan.engine.binding.binding_cycle import BindingCycle
from stowplan.engine.decision_log import DecisionLog
from stowplan.engine.failure import Failure, FailureHandler
from stowplan.engine.groups.groups import Groups
from stowplan.engine.groups.nomination_hold import NominationHold
from stowplan.engine.outbox import Outbox
from stowplan.engine.preemption import capacity_check
from stowplan.engine.preemption.group_preemption import PreemptionPlan
from stowplan.engine.preemption.preemption import Preemption
from stowplan.engine.queue.cluster_events import pod_left
from stowplan.engine.queue.scheduling_queue import SchedulingQueue
from stowplan.engine.reports import GroupAttempted, Report
from stowplan.engine.unit import Unit
from stowplan.framework.config.settings import Extender
from stowplan.framework.decision import PENDING, Decision, Verdict
from stowplan.framework.plugin_faults import error_text
from stowplan.framework.profile import Profile
from stowplan.framework.ranking import Draw
from stowplan.objects.errors import PluginError

NO_PLAN = PreemptionPlan((), {})
NO_HELP = "even without pods of lower priority there is too little room for the pod and all that it needs"
NOT_WITH_EXTENDERS = "with HTTP extenders no pods are evicted for more than one pod"


class Attempts:
    def __init__(
        self,
        profiles: Mapping[str, Profile],
        state: ClusterState,
        generator: Draw,
        queue: SchedulingQueue,
        groups: Groups,
        binding: BindingCycle,
        preemption: Preemption,
        failures: FailureHandler,
        outbox: Outbox,
        report: Callable[[Report], None],
        extenders: Sequence[Extender] = (),
    ) -> None:
        self.decisions = DecisionLog()
        self.rounds = ExtenderRounds(profiles, state, outbox, extenders)
        self._profiles, self._state, self._queue, self._groups = profiles, state, queue, groups
        self._binding, self._preemption, self._failures, self._report = binding, preemption, failures, report
        self._placer = Placer(state, generator, preemption.group_victims.join)
        self._hold = preemption.min_resources_hold
        self._claim = NominationHold(queue, groups)
        self._outbox = outbox
        self._current: Unit | None = None  # being attempted

    def next(self, now: float) -> None:
        """Attempt the unit whose extenders have all answered, or else the next one in the queue."""
        while self.rounds.answered:
            answered = self.rounds.answered.pop(0)
            if self._queue.units.get(answered.unit.key) is answered.unit and answered.is_current:
                self._attempt_safely(answered.unit, answered, now)
                return
        unit = self._queue.pop(now)
        if unit is not None:
            self._attempt_safely(unit, ExtenderRound(unit) if self.rounds.extenders else None, now)

    def _attempt_safely(self, unit: Unit, extender_round: ExtenderRound | None, now: float) -> None:
        """Whatever goes wrong in an attempt ends only that attempt."""
        self._current = unit
        try:
            if not (unit.broken or unit.group) or self._is_ready(unit, now):
                self._attempt(unit, extender_round, now)
        except Exception as error:
            self._failed(unit, f"internal error: {error_text(error)}", now)
        self._current = None

    def _failed(self, unit: Unit, problem: str, now: float) -> None:
        assumed_pods = self._binding.assumed_pods.values()
        for each in [each for each in assumed_pods if each.unit is unit and each.can_roll_back]:
            self._binding.rollback.release(each)
            self._queue.return_pod(unit, each.pod)
        self._fail(unit, Failure(problem), now)

    def give_up(self, problem: str, now: float) -> None:
        """Even the failure of the last attempt failed. Its unit goes back into the queue; at worst untold."""
        unit, self._current = self._current, None
        if unit is None:
            return
        try:
            self._failed(unit, f"internal error: {problem}", now)
        except Exception:
            if unit.pods and self._queue.units.get(unit.key) is unit:
                self._queue.fail(unit, now)
            raise

    def _attempt(self, unit: Unit, extender_round: ExtenderRound | None, now: float) -> None:
        """Place the unit's pods. All of them go on together, or all fail."""
        consultations = {} if extender_round is None else self.rounds.consult(extender_round)
        held = bool(unit.group) and self._hold.holds(unit.group)
        outcome = self._placer.place(unit, self._profiles[unit.profile], consultations)
        if outcome.asking and extender_round is not None:
            self.rounds.ask(extender_round, outcome, now)
            return
        if unit.group and not outcome.whole:
            self._report(placer.group_report(unit, outcome))
        if outcome.refused is not None:
            self._refused(unit, outcome.refused, now)
        elif outcome.whole and (reason := self._taken_from_a_group(unit, outcome)):
            self._give_back(unit, outcome, reason, now, nominate=not held)
        elif outcome.whole:
            self._placed(unit, outcome, now)
        elif not unit.group:
            self._no_node(unit, outcome.failed[-1], now)
        else:
            self._no_room(unit, outcome, now)
        if held and outcome.whole:  # what the group does not need of it is for others now
            first = outcome.assumed_pods[0]
            left = pod_left(first.pod, first.node_name)
            self._queue.events([left], now, max_priority=first.pod.priority, except_unit=unit)
        for decision in outcome.decisions:
            self.decisions.keep(decision)

    def _fail(self, unit: Unit, failure: Failure, now: float) -> None:
        self._failures.requeue(unit, failure, now)

    # -- before the attempt

    def _is_ready(self, unit: Unit, now: float) -> bool:
        """False if the unit cannot be attempted; then it has gone back into the queue."""
        if unit.group and not unit.broken:
            self._groups.refresh(unit)
        if unit.broken:  # a plugin raised before: it is not known how many pods the unit needs
            wrong = self._queue.repair(unit, now)
            if wrong:
                self._fail(unit, Failure(wrong), now)
            return False
        if unit.gated.unchecked:  # members that joined while extenders were asked about the others
            self._queue.gate.check(unit, again=False)
        if len(unit.ready) < unit.needed:  # members left in the meantime
            self._queue.done(unit)
            self._queue.enter(unit, now)
            return False
        lacking = capacity_check.lacking(self._groups.get(unit.group), self._state)
        if lacking:
            self._report(GroupAttempted(unit.group, unit.profile, 0, unit.needed, False, message=lacking))
            self._too_little_free(unit, lacking, now)
        return not lacking

    # -- all pods have a node

    def _placed(self, unit: Unit, outcome: UnitOutcome, now: float) -> None:
        """Everything is reserved. Ask for permits and start the binding cycles."""
        permits = self._profiles[unit.profile].permitters
        if permits:
            outcome.refused = self._refused_permit(outcome.assumed_pods)
            outcome.whole = outcome.refused is None
        if unit.group:
            self._report(placer.group_report(unit, outcome))
        if outcome.refused is not None:
            self._refused(unit, outcome.refused, now)
            return
        for each in outcome.assumed_pods:
            self._queue.drop_pod(unit, each.uid)
            self._state.nominated_pods.drop(each.uid)
        self._binding.add(outcome.assumed_pods, now)  # from here on they are found, whatever goes wrong
        if outcome.failed:
            self._extra_members_failed(unit, outcome, now)
        elif unit.pods:  # gated members
            self._queue.done(unit)
            self._queue.enter(unit, now)
        else:
            self._queue.take_out(unit)
            if not permits:  # otherwise when its pods are permitted
                self._queue.done(unit)
        self._binding.start(outcome.assumed_pods, now)

    def _refused_permit(self, assumed_pods: list[AssumedPod]) -> Verdict | str | None:
        """Why a pod is refused; then all pods are released in reverse order."""
        for at, each in enumerate(assumed_pods):
            refused: Verdict | str | None
            try:
                refused = each.ask_permits()
            except PluginError as error:
                each.release()
                refused = str(error)
            if refused is not None:
                for other in reversed(assumed_pods[:at] + assumed_pods[at + 1 :]):
                    other.release()
                return refused
        return None

    def _refused(self, unit: Unit, refused: Verdict | str, now: float) -> None:
        if isinstance(refused, str):
            self._fail(unit, Failure(refused), now)
        else:
            self._fail(unit, Failure(messages.refused(refused.reasons), frozenset((refused.plugin,))), now)

    def _extra_members_failed(self, unit: Unit, outcome: UnitOutcome, now: float) -> None:
        """Members beyond the group's minimum found no node. They wait on their own, and preempt if that helps."""
        message = f"Pod group {unit.group} runs without this pod"
        own = {each.pod.uid: each.full_message for each in outcome.failed}
        self._groups.refresh(unit)
        error = unit.broken or any(each.error for each in outcome.failed)
        plan = NO_PLAN if error else self._evict_for(unit, outcome.failed, now)
        failure = Failure(
            message,
            rejectors(*outcome.failed),
            nominated_nodes=plan.nodes or "",
            companions=plan.companions,
            messages=own,
        )
        self._fail(unit, failure, now)

    # -- all pods have a node, but the room is kept for a group

    def _taken_from_a_group(self, unit: Unit, outcome: UnitOutcome) -> str:
        """Why the unit's pods may not have their nodes; empty if they may."""
        if not self._groups.enabled or not self._state.nominated_pods:
            return ""
        return self._hold.refusal([each.pod for each in outcome.assumed_pods], unit.group)

    def _give_back(self, unit: Unit, outcome: UnitOutcome, reason: str, now: float, *, nominate: bool) -> None:
        """Release the unit's pods. `nominate`: they keep their nominated nodes.

        A group that keeps room itself loses them: otherwise two groups could wait for each other.
        """
        outcome.whole = False
        for each in reversed(outcome.assumed_pods):
            each.release()
        if unit.group:
            self._report(GroupAttempted(unit.group, unit.profile, 0, unit.needed, False, message=reason))
        nominated = {pod.uid: pod.nominated_node for pod in unit.pods.values()} if nominate else ""
        plugins = capacity_check.resource_plugins(self._profiles[unit.profile])
        self._fail(unit, Failure(reason, plugins, nominated_nodes=nominated), now)

    # -- no node

    def _no_node(self, unit: Unit, decision: Decision, now: float) -> None:
        """A single pod found no node."""
        if decision.error:
            self._fail(unit, Failure(decision.error), now)
            return
        result = decision.post_filter
        nominated: str | Mapping[str, str] | None = "" if result is None or result.clears_nomination else None
        companions: Mapping[str, Companions] = {}
        self._queue.forget_wakes(unit)
        for action in () if result is None else result.actions:
            self._outbox.send(action, now)
        if result is not None and result.candidate is not None:
            nominated = result.candidate.node
            self._preemption.for_pod(unit, decision.pod, result.candidate, now)
        elif result is not None and result.with_slots:
            plan = self._evict_for(unit, (decision,), now)
            nominated, companions = plan.nodes or "", plan.companions
            if not plan.nodes:
                why = NOT_WITH_EXTENDERS if self.rounds.extenders else NO_HELP
                decision.post_filter = replace(result, reasons=(*result.reasons, f"preemption: {why}."))
        waits = decision.refused is not None and decision.refused.code == PENDING
        pending = frozenset((decision.refused.plugin,)) if waits and decision.refused is not None else frozenset[str]()
        failure = Failure(
            decision.full_message,
            rejectors(decision),
            pending,
            is_error=False,
            nominated_nodes=nominated,
            companions=companions,
        )
        self._fail(unit, failure, now)

    def _no_room(self, unit: Unit, outcome: UnitOutcome, now: float) -> None:
        """A group does not fit as a whole."""
        decision = outcome.failed[-1]
        nominated = self._claim.nominations(unit, outcome.assumed_pods, now)
        plan = NO_PLAN if decision.error else self._evict_for(unit, outcome.failed, now)
        failure = Failure(
            f"Pod group {unit.group} does not fit as a whole: {decision.full_message}",
            frozenset() if decision.error else rejectors(*outcome.failed),
            is_error=bool(decision.error),
            nominated_nodes=plan.nodes or nominated,
            companions=plan.companions,
            messages={each.pod.uid: placer.member_message(unit, outcome, each) for each in outcome.decisions},
        )
        self._fail(unit, failure, now)

    def _too_little_free(self, unit: Unit, lacking: str, now: float) -> None:
        """Less is free in the cluster than the group's minResources."""
        nominated: str | None = None if self._groups.is_partially_bound(unit.group) else ""
        plan = self._evict_for(unit, (), now)
        plugins = capacity_check.resource_plugins(self._profiles[unit.profile])
        failure = Failure(lacking, plugins, nominated_nodes=plan.nodes or nominated, companions=plan.companions)
        self._fail(unit, failure, now)

    def _evict_for(self, unit: Unit, failed: Sequence[Decision], now: float) -> PreemptionPlan:
        """Evict pods for a group, or for a pod with room for others, if that helps. Return what was planned.

        Extenders are not asked about that, so with extenders none are.
        """
        self._queue.forget_wakes(unit)
        profile = self._profiles[unit.profile]
        plan = None if self.rounds.extenders else self._preemption.plan(unit, profile, self._placer, failed)
        if plan is None:
            return NO_PLAN
        self._preemption.for_group(unit, plan, now)
        return plan


def rejectors(*decisions: Decision) -> frozenset[str]:
    """The plugins that rejected the pod, narrowed its search, or rejected a node."""
    return frozenset[str]().union(*map(_rejectors, decisions))


def _rejectors(decision: Decision) -> frozenset[str]:
    if decision.refused is not None:
        return frozenset((decision.refused.plugin, *decision.limited_by)) - {""}
    used = np.unique(decision.trail.verdict_of)
    names = {decision.trail.verdicts[number].plugin for number in used.tolist() if number >= 0}
    return frozenset((*names, *decision.limited_by)) - {""}
