"""Placing the pods of a unit, one or many: member by member inside a what-if, then kept whole, or not at all.

The largest member goes first. As soon as too many have failed for the rest to be enough, no more are tried; if members
are not all alike, one more order is: those like the one that failed first, because they are the hardest to place;
unless there is too little room in any order (`outlook`). If extenders must be asked about members, each is placed
provisionally, so that all questions come up at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from stowplan.columns.state import ClusterState
from stowplan.engine.binding.assumed_pod import AssumedPod
from stowplan.engine.preemption.feasibility import Feasibility
from stowplan.engine.queue.unit import Unit
from stowplan.engine.reports import GroupTried
from stowplan.framework.evaluation import Join, schedule_one
from stowplan.framework.extenders import Consultation
from stowplan.framework.profile import Profile
from stowplan.framework.search import NodeSearch
from stowplan.framework.verdict import WOULD_FIT, Decision, Verdict
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod


@dataclass(slots=True)
class UnitOutcome:
    """Who got a node, and who did not; `whole` says whether those who did are enough.

    `refused`: why one that got a node was refused what goes with it, by which plugin or because of what error.
    `asking`: all this is provisional, because extenders must be asked first.
    """

    placings: list[AssumedPod] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    failed: list[Decision] = field(default_factory=list)
    refused: Verdict | str | None = None
    whole: bool = False
    asking: bool = False


class Placer:
    """Finds nodes for the pods of one unit after the other."""

    def __init__(self, state: ClusterState, generator: np.random.Generator, join: Join | None = None) -> None:
        self._state, self._generator, self._search, self._join = state, generator, NodeSearch(), join

    def place(self, unit: Unit, profile: Profile, consultations: Mapping[str, Consultation]) -> UnitOutcome:
        """Find nodes for a unit's pods. If they are enough, all is reserved; if not, nothing is left of the attempt."""
        outcome = UnitOutcome()
        if len(unit.pods) == 1:  # one pod alone is decided and then placed: nothing to undo, so no journal is kept
            (pod,) = unit.pods.values()
            # Nobody is evicted for a part of a group here.
            self._try(pod, unit, profile, consultations, outcome, provisionally=False, make_room=not unit.group)
            outcome.whole = bool(outcome.placings)
            return outcome
        return self._in_either_order(unit, profile, consultations)

    def rehearse(self, unit: Unit, profile: Profile) -> UnitOutcome:
        """The same in a cluster that is otherwise only for now; nothing is left of it."""
        return self._in_either_order(unit, profile, {}, keep=False)

    def _in_either_order(
        self, unit: Unit, profile: Profile, consultations: Mapping[str, Consultation], *, keep: bool = True
    ) -> UnitOutcome:
        members = largest_first(unit.ready, self._state)
        if not members:
            return UnitOutcome()
        outcome = self._all_or_none(members, unit, profile, consultations, keep=keep)
        if outcome.whole or outcome.asking or outcome.refused is not None or outcome.failed[-1].error:
            return outcome
        again = _hardest_first(members, outcome.failed)
        if again == members or Feasibility(self._state, unit, None, profile, outcome.decisions).hopeless(()):
            return outcome
        second = self._all_or_none(again, unit, profile, consultations, keep=keep)
        return second if second.whole or second.asking else outcome

    def _all_or_none(
        self,
        pods: Sequence[Pod],
        unit: Unit,
        profile: Profile,
        consultations: Mapping[str, Consultation],
        *,
        keep: bool = True,
    ) -> UnitOutcome:
        outcome, can_fail = UnitOutcome(), len(pods) - unit.needed
        with self._state.trial() as trial:
            for pod in pods:
                self._try(pod, unit, profile, consultations, outcome, provisionally=True, make_room=False)
                if outcome.refused is not None or len(outcome.failed) > can_fail:
                    break
            enough = len(outcome.failed) <= can_fail and bool(outcome.placings)
            outcome.whole = enough and outcome.refused is None and not outcome.asking
            if outcome.whole and keep:
                trial.keep()
            else:
                _release(outcome)
        return outcome

    def _try(
        self, pod: Pod, unit: Unit, profile: Profile, consultations: Mapping[str, Consultation], outcome: UnitOutcome,
        *, provisionally: bool, make_room: bool,
    ) -> None:  # fmt: skip
        """Decide about one pod, and reserve; if extenders must be asked first, only where that can be undone."""
        decision = schedule_one(
            pod, self._state, profile, self._generator,
            gate=False, make_room=make_room, search=self._search, consultation=consultations.get(pod.uid),
            join=self._join,
        )  # fmt: skip
        outcome.decisions.append(decision)
        outcome.asking = outcome.asking or bool(decision.asks)
        if decision.node is None:
            outcome.failed.append(decision)
        elif provisionally or not decision.asks:
            idle = decision.skipped & profile.done_by_skipping
            placing = AssumedPod(pod, decision.node, unit, profile, self._state, idle)
            outcome.refused = placing.take_room()
            if outcome.refused is None:
                outcome.placings.append(placing)


def _release(outcome: UnitOutcome) -> None:
    """What plugins hold besides the state is not undone with the what-if; the state is, even if one of them raises."""
    for placing in reversed(outcome.placings):
        try:
            placing.release()
        except PluginError:
            continue


def largest_first(pods: Iterable[Pod], state: ClusterState) -> list[Pod]:
    """By the greatest share that each would take of any resource of the node that has most of it."""
    pods = sorted(pods, key=lambda pod: pod.uid)
    sizes: dict[bytes, float] = {}
    for pod in pods:
        shape = pod.shape
        if shape.key not in sizes:
            sizes[shape.key] = _share(shape.request, state)
    if len(sizes) < 2:
        return pods
    return sorted(pods, key=lambda pod: -sizes[pod.shape.key])


def _share(request: Mapping[str, int], state: ClusterState) -> float:
    columns = state.table.allocatable
    offered = {name: int(columns[name].max(initial=0)) for name in request if name in columns}
    return max((amount / offered[name] for name, amount in request.items() if offered.get(name)), default=0.0)


def _hardest_first(pods: list[Pod], failed: Iterable[Decision]) -> list[Pod]:
    """Those like the ones that failed, then the others as they were."""
    shapes = {decision.pod.shape.key for decision in failed}
    return sorted(pods, key=lambda pod: pod.shape.key not in shapes)


def tried(unit: Unit, outcome: UnitOutcome) -> GroupTried:
    """The attempt in a few words, for whoever watches."""
    refused, failed = outcome.refused, outcome.failed[-1:]
    message = "" if outcome.whole or not failed else failed[0].full_message
    if refused is not None:
        message = refused if isinstance(refused, str) else ", ".join(refused.reasons)
    error = isinstance(refused, str) or any(each.error for each in failed)
    found = len(outcome.placings)
    return GroupTried(unit.group, unit.profile, found, unit.needed, outcome.whole, error and not outcome.whole, message)


def blocked(unit: Unit, outcome: UnitOutcome, decision: Decision) -> str:
    """A member's own reason, and what stands in its group's way: how many fit, and who did not for which reason."""
    own = decision.full_message if decision.node is None else f"{WOULD_FIT} on {decision.node}."
    culprit, tried = outcome.failed[-1], len(outcome.decisions)
    lacks = f"{len(outcome.placings)} of {tried} pods tried found a node, {unit.needed} of {len(unit.ready)} must"
    if culprit.pod.uid != decision.pod.uid:
        lacks = f"{lacks}; pod {culprit.pod.name} did not: {culprit.full_message.rstrip('.')}"
    return f"{own} Pod group {unit.group}: {lacks}."
