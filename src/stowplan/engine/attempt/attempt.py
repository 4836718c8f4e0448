"""One attempt at a unit: place its pods, ask extenders where that takes it, reserve; or fail, making room if possible.

An attempt that needs extenders ends with questions. Nothing is held meanwhile; when the last answer is there, the
decision is made again with what they said.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine import messages
from stowplan.engine.attempt import placer
from stowplan.engine.binding.assumed_pod import AssumedPod, assumed
from stowplan.engine.binding.binding import Binding
from stowplan.engine.binding.failure import FailureHandler
from stowplan.engine.decision_log import DecisionLog
from stowplan.engine.preemption import feasibility
from stowplan.engine.preemption.eviction_retry import EvictionRetry
from stowplan.engine.preemption.group_preemption import GroupPreemption, PreemptionPlan
from stowplan.engine.preemption.group_victims import GroupVictims
from stowplan.engine.queue.admission import Admission
from stowplan.engine.queue.cluster_events import ASSIGNED, ClusterEvent
from stowplan.engine.queue.unit import QueueStage, Unit
from stowplan.engine.reports import GroupTried, PreemptionStarted, Report
from stowplan.framework.config.settings import Extender
from stowplan.framework.extenders import Consultation, Labels, labels_for
from stowplan.framework.pending_actions import PendingActions
from stowplan.framework.profile import Profile
from stowplan.framework.verdict import PENDING, Decision, Verdict
from stowplan.objects.actions import Ask, Evict, Nominate, Record
from stowplan.objects.changes import Result
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod

SAVES_FOR = 300.0  # seconds


class Attempt:
    """A unit, what extenders said about its pods, and which of their answers are still to come."""

    __slots__ = ("_number", "awaited", "consultations", "unit")

    def __init__(self, unit: Unit) -> None:
        self.unit, self._number = unit, unit.attempts
        self.consultations: dict[str, Consultation] = {}
        self.awaited: set[int] = set()

    @property
    def goes_on(self) -> bool:
        """Is the unit still in this very attempt?"""
        return self.unit.stage is QueueStage.IN_FLIGHT and self.unit.attempts == self._number

    def consult(self, extenders: Sequence[Extender], labels: Labels) -> dict[str, Consultation]:
        """What is known of each of its pods, those that joined since the first try included."""
        for uid, pod in self.unit.pods.items():
            self.consultations.setdefault(uid, Consultation(extenders, pod, labels))
        return self.consultations


class Attempts:
    def __init__(
        self,
        profiles: Mapping[str, Profile],
        state: ClusterState,
        generator: np.random.Generator,
        admission: Admission,
        binding: Binding,
        failing: FailureHandler,
        insisting: EvictionRetry,
        outbox: PendingActions,
        report: Callable[[Report], None],
        extenders: Sequence[Extender] = (),
    ) -> None:
        self.trails = DecisionLog()
        self.asking: dict[Hashable, Attempt] = {}
        self._profiles, self._state, self._company = profiles, state, GroupVictims(state, admission.groups)
        self._placer = placer.Placer(state, generator, self._company.join)
        self._admission, self._binding, self._failing, self._outbox = admission, binding, failing, outbox
        self._report, self.extenders = report, extenders
        self._resumed: list[Attempt] = []
        self.told: dict[str, None] = {}  # uids of pods that were told to go, and are not gone yet
        self._saving = ("", float("-inf"))  # the group that keeps what room it finds, and until when
        self._saved: dict[str, None] = {}  # those that have had their turn
        self._insisting = insisting
        self._clearing = GroupPreemption(state, self._placer, admission.groups, self.told)

    def adopt(self, extenders: Sequence[Extender]) -> None:
        """Other extenders from now on; attempts that wait for answers of the old ones are forgotten."""
        for attempt in self.asking.values():
            self._outbox.forget(attempt.awaited)
        self.asking.clear()
        self._resumed.clear()
        self.extenders = extenders

    def next(self, now: float) -> Attempt | None:
        """What to try now: an attempt that has its answers, else the first in the queue."""
        while self._resumed:
            attempt = self._resumed.pop(0)
            if self._admission.queue.units.get(attempt.unit.key) is attempt.unit and attempt.goes_on:
                return attempt
        unit = self._admission.queue.pop(now)
        return None if unit is None else Attempt(unit)

    @property
    def ready(self) -> bool:
        return bool(self._resumed)

    def try_out(self, attempt: Attempt, now: float) -> Iterator[Any]:
        """The last net: whatever goes wrong in an attempt ends that attempt, and nothing else."""
        try:
            yield from self.attempt(attempt, now)
        except Exception as error:
            unit = attempt.unit
            for placing in [each for each in self._binding.placings.values() if each.unit is unit and each.recallable]:
                self._binding.recall.drop(placing)
                unit.join(placing.pod)
                self._admission.unit_of[placing.uid] = unit.key
            yield from self._failing.back(unit, f"internal error: {type(error).__name__}: {error}", now)

    def attempt(self, attempt: Attempt, now: float) -> Iterator[Any]:
        """Place the unit's pods; all of them go on together, or all fail."""
        unit = attempt.unit
        if unit.group and not unit.broken:
            self._admission.measure(unit)
        if unit.broken:  # of a group: nobody knows how many it takes
            yield from self._broken(unit, now)
            return
        if unit.group and unit.unasked:  # some came while extenders were asked about the others
            self._admission.gate.closed_to(unit, False)
        if len(unit.ready) < unit.needed:  # some left while it was asked about, or pods they counted on did
            self._admission.queue.done(unit)
            self._admission.queue.enter(unit, now)
            return
        lacking = feasibility.lacking(self._admission.groups.get(unit.group), self._state) if unit.group else ""
        if lacking:
            self._report(GroupTried(unit.group, unit.profile, 0, unit.needed, False, message=lacking))
            yield from self._too_little(unit, lacking, now)
            return
        said = self._consult(attempt) if self.extenders else attempt.consultations
        outcome = self._placer.place(unit, self._profiles[unit.profile], said)
        if outcome.asking:
            yield from self._ask(attempt, outcome, now)
            return
        if unit.group and not outcome.whole:
            self._report(placer.tried(unit, outcome))
        if outcome.refused is not None:
            yield from self._refused(unit, outcome.refused, now)
        elif outcome.whole:
            yield from self._permit(unit, outcome, now)
        elif not unit.group:
            yield from self._no_node(unit, outcome.failed[-1], now)
        else:
            yield from self._no_room(unit, outcome, now)
        for decision in outcome.decisions:
            self.trails.keep(decision)

    def _broken(self, unit: Unit, now: float) -> Iterator[Any]:
        wrong = self._admission.mend(unit, now)
        if wrong:
            yield from self._failing.back(unit, wrong, now)

    # -- extenders

    def _consult(self, attempt: Attempt) -> dict[str, Consultation]:
        profile = self._profiles[attempt.unit.profile]
        return attempt.consult(self.extenders, lambda pod: labels_for(pod, profile, Cluster(self._state)))

    def _ask(self, attempt: Attempt, outcome: placer.UnitOutcome, now: float) -> Iterator[Any]:
        self.asking[attempt.unit.key] = attempt
        for ask in (ask for decision in outcome.decisions for ask in decision.asks):
            within = self.extenders[ask.extender].http_timeout
            sent = self._outbox.send(ask, now, partial(self._answered, attempt, ask), within=within)
            attempt.awaited.add(sent.id)
            yield sent

    def _answered(self, attempt: Attempt, question: Ask, result: Result, now: float) -> Iterator[Any]:  # noqa: ARG002
        attempt.awaited.discard(result.id)
        attempt.consultations[question.pod.uid].answer(question, result)
        if not attempt.awaited:
            self.asking.pop(attempt.unit.key, None)
            self._resumed.append(attempt)
        return iter(())

    # -- a node for everybody

    def _permit(self, unit: Unit, outcome: placer.UnitOutcome, now: float) -> Iterator[Any]:
        """All is reserved, may they go on?"""
        refused = self._not_permitted(outcome.placings) if self._profiles[unit.profile].at("permit") else None
        outcome.refused, outcome.whole = refused, refused is None
        if unit.group:
            self._report(placer.tried(unit, outcome))
        if refused is not None:
            yield from self._refused(unit, refused, now)
            return
        for placing in outcome.placings:
            unit.leave(placing.uid)
            self._admission.unit_of.pop(placing.uid, None)
            self._state.nominations.drop(placing.uid)
        self._binding.take(outcome.placings, now)  # from here on they are found, whatever goes wrong
        if outcome.failed:
            yield from self._left_over(unit, outcome, now)
        elif unit.pods:  # members that may not be tried yet
            self._admission.queue.done(unit)
            self._admission.queue.enter(unit, now)
        else:
            self._admission.queue.forget(unit)
        yield from self._binding.start(outcome.placings, now)

    def _not_permitted(self, placings: list[AssumedPod]) -> Verdict | str | None:
        """Why not; if one is refused everything is given back, the last first."""
        for at, placing in enumerate(placings):
            refused: Verdict | str | None
            try:
                refused = placing.ask_permits()
            except PluginError as error:
                placing.release()
                refused = str(error)
            if refused is not None:
                for other in reversed(placings[:at] + placings[at + 1 :]):
                    other.release()
                return refused
        return None

    def _refused(self, unit: Unit, refused: Verdict | str, now: float) -> Iterator[Any]:
        if isinstance(refused, str):
            yield from self._failing.back(unit, refused, now)
        else:
            message = messages.refused(refused.reasons)
            yield from self._failing.back(unit, message, now, plugins=(refused.plugin,))

    def _left_over(self, unit: Unit, outcome: placer.UnitOutcome, now: float) -> Iterator[Any]:
        """Members beyond those that the group needs, for whom there was no room: they go on by themselves."""
        told = {each.pod.uid: each.full_message for each in outcome.failed}
        message = f"Pod group {unit.group} runs without this pod"
        yield from self._failing.back(unit, message, now, plugins=rejectors(*outcome.failed), told=told)

    # -- no node

    def _no_room(self, unit: Unit, outcome: placer.UnitOutcome, now: float) -> Iterator[Any]:
        decision = outcome.failed[-1]
        nominated = self._promised(unit, outcome, now)
        unit.woken = False
        plan = None if decision.error else self._plan(unit, outcome.failed)
        if plan is not None:
            nominated = plan.nodes
            yield from self._clear(unit, plan, now)
        told = {each.pod.uid: placer.blocked(unit, outcome, each) for each in outcome.decisions}
        rest = f"Pod group {unit.group} does not fit as a whole: {decision.full_message}"
        plugins = () if decision.error else rejectors(*outcome.failed)
        yield from self._failing.back(
            unit, rest, now, plugins=plugins, error=bool(decision.error), told=told, nominated=nominated
        )

    def _too_little(self, unit: Unit, lacking: str, now: float) -> Iterator[Any]:
        """Less is free in the cluster than the group wants before it is even tried."""
        unit.woken = False
        nominated: str | dict[str, str] | None = None if self._in_part(unit) else ""
        plan = self._plan(unit)
        if plan is not None:
            nominated = plan.nodes
            yield from self._clear(unit, plan, now)
        yield from self._failing.back(unit, lacking, now, plugins=("NodeResourcesFit",), nominated=nominated)

    def _no_node(self, unit: Unit, decision: Decision, now: float) -> Iterator[Any]:
        if decision.error:
            yield from self._failing.back(unit, decision.error, now)
            return
        made = decision.post_filter
        nominated: str | None = "" if made is None or made.breaks_promise else None
        unit.woken = False
        if made is not None and made.candidate is not None:
            nominated = made.candidate.node
            self._forget_gone()
            self._report(PreemptionStarted(decision.pod.key, nominated, len(made.candidate.victims)))
            yield from self._evict(unit, decision.pod, nominated, made.candidate.victims, now)
        message, plugins = decision.full_message, rejectors(decision)
        waits = decision.refused is not None and decision.refused.code == PENDING
        pending = (decision.refused.plugin,) if waits and decision.refused is not None else ()
        yield from self._failing.back(
            unit, message, now, plugins=plugins, pending=pending, error=False, nominated=nominated
        )

    def _promised(self, unit: Unit, outcome: placer.UnitOutcome, now: float) -> str | dict[str, str] | None:
        """What is kept for a group that does not fit: what is missing of one bound in part keeps its nodes. One that
        has waited for long keeps those that it found, so that room can come together for it; one group at a time, and
        each for a while only.
        """
        if self._in_part(unit):
            return None
        members, (name, until) = self._admission.groups.get(unit.group), self._saving
        short = members is not None and not members.satisfied  # those that it could do without have time
        if short and unit.aged and (name == unit.group or now >= until or name not in self._admission.queue.units):
            if name != unit.group and unit.group not in self._saved:
                self._saving = name, until = unit.group, now + SAVES_FOR
                self._saved = {each: None for each in self._saved if each in self._admission.queue.units}
                self._saved[unit.group] = None
            if name == unit.group and now < until:
                return {placing.uid: placing.node_name for placing in outcome.placings}
        return ""

    def _in_part(self, unit: Unit) -> bool:
        members = self._admission.groups.get(unit.group)
        return members is not None and self._admission.groups.half_bound(members) is not None

    # -- making room

    def _plan(self, unit: Unit, failed: Sequence[Decision] = ()) -> PreemptionPlan | None:
        """Who would have to go for a group; extenders are not asked about that, so with them nobody does."""
        self._forget_gone()
        return None if self.extenders else self._clearing.plan(unit, self._profiles[unit.profile], failed)

    def _forget_gone(self) -> None:
        for uid in [uid for uid in self.told if uid not in self._admission.known]:
            del self.told[uid]

    def _clear(self, unit: Unit, plan: PreemptionPlan, now: float) -> Iterator[Any]:
        """Evict for a group, node by node."""
        if plan.victims:
            self._report(PreemptionStarted(unit.group, "", len(plan.victims)))
        by_node: dict[str, list[Pod]] = {}
        for victim in plan.victims:
            by_node.setdefault(self._node_of(victim), []).append(victim)
        for node_name, victims in by_node.items():
            yield from self._evict(unit, unit.lead, node_name, victims, now)

    def _node_of(self, pod: Pod) -> str:
        placed = self._state.pods.get(pod.uid)
        return pod.node_name if placed is None else self._state.table.names[placed.row]

    def _evict(self, unit: Unit, pod: Pod, node_name: str, victims: Sequence[Pod], now: float) -> Iterator[Any]:
        """Victims go, those not yet sent to be bound without being deleted; lesser pods lose promises on that node."""
        for other in list(self._state.nominations.by_node.get(node_name, {}).values()):
            if other.priority < pod.priority:
                self._state.nominations.drop(other.uid)
                yield Nominate(pod=messages.ref(other), node_name="")
                self._admission.happened_to(other.uid, ClusterEvent(ASSIGNED, "Delete", assumed(other, node_name)), now)
        victims = [*victims, *self._company.of(victims, pod.priority)]
        placings = {victim.uid: self._binding.placings.get(victim.uid) for victim in victims}
        for victim in victims:
            placing = placings[victim.uid]
            if placing is not None and placing.recallable:
                yield messages.preempted(victim, pod, node_name, in_memory=True)
                if self._binding.placings.get(victim.uid) is placing:  # it may have gone with another one of its group
                    yield from self._binding.give_up(placing, "preempted", now)
            elif not victim.terminating and victim.uid not in self.told:
                event, wanted = messages.preempted(victim, pod, self._node_of(victim)), messages.eviction(victim, pod)
                group = self._admission.groups.name_of(victim.uid)
                eviction = self._outbox.send(wanted, now, partial(self._evicted, unit, event, wanted, group))
                self.told[victim.uid] = None
                self._admission.groups.told_to_go(victim.uid)
                unit.evicting.add(eviction.id)
                yield eviction

    def _evicted(
        self, unit: Unit, event: Record, wanted: Evict, group: str, result: Result, now: float
    ) -> Iterator[Any]:
        """The pod that needs the room waits until the last victim was told to go; if that fails it is tried again."""
        unit.evicting.discard(result.id)
        told = result.fine or result.status in (404, 410)
        if result.fine:
            yield event
        if told:
            self._insisting.goes(wanted.pod.uid, group, now)
        else:
            self.told.pop(event.pod.uid, None)
            self._insisting.refused(wanted, now, event)
        if self._admission.queue.units.get(unit.key) is not unit:
            return
        if not told:
            self._admission.queue.retry(unit, now)
        elif not unit.evicting:
            self._admission.queue.evicted(unit, now)


def rejectors(*decisions: Decision) -> frozenset[str]:
    """The plugins that stood in the way: who refused the pod or narrowed the search, or whose verdict some node has."""
    return frozenset[str]().union(*map(_rejectors, decisions))


def _rejectors(decision: Decision) -> frozenset[str]:
    if decision.refused is not None:
        return frozenset((decision.refused.plugin, *decision.narrowed_by)) - {""}
    used = np.unique(decision.trail.verdict_of)
    names = {decision.trail.verdicts[number].plugin for number in used.tolist() if number >= 0}
    return frozenset((*names, *decision.narrowed_by)) - {""}
