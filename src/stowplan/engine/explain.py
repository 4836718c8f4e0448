"""Explaining a pod: where it would go now, and why not elsewhere. Nothing in the engine changes.

A pod of a group is looked at with its group, as in an attempt: it gets its node only if enough members get one at the
same time. Pods that would be evicted for it, or for its group, are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from stowplan.columns.pods.pod_order import PodOrder
from stowplan.columns.state import ClusterState
from stowplan.columns.trial import without_pods
from stowplan.engine.attempt import placer
from stowplan.engine.attempt.placer import Placer, UnitOutcome
from stowplan.engine.groups.groups import Groups
from stowplan.engine.preemption import capacity_check
from stowplan.engine.preemption.preemption import Preemption
from stowplan.engine.queue.gate import GROUP
from stowplan.engine.queue.scheduling_queue import SchedulingQueue
from stowplan.engine.unit import Unit
from stowplan.framework.decision import UNRESOLVABLE, Decision, Verdict
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod


@dataclass(frozen=True, slots=True)
class GroupExplanation:
    """A what-if of a group's attempt: which node each waiting pod found, and whether these are enough."""

    name: str
    needed: int
    whole: bool
    nodes: dict[str, str | None]  # by the pod's key


@dataclass(frozen=True, slots=True)
class Evictions:
    """What would be evicted for a pod or for its group, and which node each of these pods gets then, by its key."""

    victims: tuple[Pod, ...]
    nodes: dict[str, str]
    violations: int = 0  # victims that are protected by a disruption budget


@dataclass(frozen=True, slots=True)
class Explanation:
    """The decision about a pod, with its group if it is in one. `because`: what keeps the pod from its node."""

    decision: Decision
    group: GroupExplanation | None = None
    because: str = ""
    for_group: Evictions | None = None

    @property
    def evictions(self) -> Evictions | None:
        """What the scheduler would evict, if that helps."""
        result = self.decision.post_filter
        if self.for_group is not None or result is None or result.candidate is None or self.group is not None:
            return self.for_group
        found = result.candidate
        return Evictions(found.victims, {self.decision.pod.key: found.node}, found.violations)

    @property
    def node(self) -> str | None:
        return None if self.because else self.decision.node

    @property
    def why_not(self) -> str:
        gate = self.decision.gated
        return self.because or (", ".join(gate.reasons) if gate is not None else self.decision.full_message)


class Explainer:
    def __init__(self, state: ClusterState, queue: SchedulingQueue, groups: Groups, preemption: Preemption) -> None:
        self._state, self._queue, self._groups, self._preemption = state, queue, groups, preemption
        self._hold = preemption.min_resources_hold

    def explain(self, pods: Iterable[Pod], profiles: Mapping[str, Profile]) -> dict[str, Explanation]:
        """Explain each pod as if it had no node, a pending pod of a group together with its group. Return them by uid.

        Each group is looked at once, however many of its pods are asked about.
        """
        found: dict[str, Explanation] = {}
        for pod in pods:
            profile, unit = profiles[pod.scheduler_name], self._queue.find(pod.uid) if pod.pending else None
            if unit is None or not unit.group or unit.broken:
                found[pod.uid] = self.alone(pod, profile)
            elif pod.uid not in found:
                found |= self._group(unit, profile)
        return found

    def alone(self, pod: Pod, profile: Profile) -> Explanation:
        """A pod without its group, if it has one."""
        decision = self.decide(pod, profile)
        waits = pod.pending and pod.uid not in self._state.pods
        because = self._kept([(pod, decision.node)]) if waits else ""
        with_slots = decision.post_filter is not None and decision.post_filter.with_slots
        unit = Unit([pod], profile.scheduler_name, self._state.now)
        evicting = self._evictions(unit, profile, (decision,)) if waits and with_slots else None
        return Explanation(decision, because=because, for_group=evicting)

    def _evictions(self, unit: Unit, profile: Profile, failed: Sequence[Decision]) -> Evictions | None:
        """What would be evicted for a group, or for a pod with room for others."""
        order = PodOrder(self._state)
        order.keep_all()
        try:
            found = self._preemption.plan(unit, profile, Placer(self._state, np.random.default_rng(0)), failed)
        finally:
            order.restore()
        if found is None or not found.victims:
            return None
        return Evictions(found.victims, {unit.pods[uid].key: node for uid, node in found.nodes.items()})

    def _kept(self, placed: Iterable[tuple[Pod, str | None]], group: str = "") -> str:
        """Why pods would not get the nodes that they found: room is kept for another group. Empty if they would."""
        found = [(pod, node) for pod, node in placed if node is not None] if self._groups.enabled else []
        if not found:
            return ""
        with self._state.trial() as trial:
            for pod, node in found:
                trial.add_pod(pod, node)
            return self._hold.refusal([pod for pod, _ in found], group)

    def decide(self, pod: Pod, profile: Profile, *, preempt: bool = True) -> Decision:
        """About one pod alone, as if it had no node. `preempt`: whether evictions are looked for."""
        unbound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
        if pod.uid not in self._state.pods:
            return schedule_one(unbound, self._state, profile, preempt=preempt)
        with without_pods(self._state, [pod.uid]):
            return schedule_one(unbound, self._state, profile, preempt=preempt)

    def _group(self, unit: Unit, profile: Profile) -> dict[str, Explanation]:
        """All pods of a waiting group. A copy of the unit is looked at, with what plugins say about the group now."""
        what_if = Unit(unit.pods.values(), unit.profile, unit.since, unit.group, self._groups.needed_now(unit))
        what_if.gated.verdicts = dict(unit.gated.verdicts)
        if unit.queued.gated_by is not None or len(what_if.ready) < what_if.needed:
            return self._gated(unit, profile)
        return self._attempted(what_if, profile)

    def _gated(self, unit: Unit, profile: Profile) -> dict[str, Explanation]:
        """Too few members exist, or may be attempted."""
        messages, found = self._queue.gate.messages(unit), {}
        for uid, pod in unit.pods.items():
            gate = Verdict(GROUP, UNRESOLVABLE, (messages[uid] or self._queue.gate.too_few(unit),))
            found[uid] = Explanation(replace(self.decide(pod, profile), gated=gate, node=None))
        return found

    def _attempted(self, unit: Unit, profile: Profile) -> dict[str, Explanation]:
        lacking = capacity_check.lacking(self._groups.get(unit.group), self._state)
        outcome = Placer(self._state, np.random.default_rng(0)).rehearse(unit, profile, unit.needed)
        if outcome.whole and not lacking:
            lacking = self._kept(((each.pod, each.node_name) for each in outcome.assumed_pods), unit.group)
        whole = outcome.whole and not lacking
        nodes = {each.pod.key: each.node for each in outcome.decisions}
        group = GroupExplanation(unit.group, unit.needed, whole, nodes)
        evicting = None if whole or outcome.refused is not None else self._evictions(unit, profile, outcome.failed)
        decided, found = {each.pod.uid: each for each in outcome.decisions}, {}
        for uid, pod in unit.pods.items():
            decision = decided.get(uid) or self.decide(pod, profile)
            because = "" if whole else lacking or _because(unit, outcome, decision)
            found[uid] = Explanation(decision, group, because, evicting)
        return found


def _because(unit: Unit, outcome: UnitOutcome, decision: Decision) -> str:
    if outcome.refused is None:
        return placer.member_message(unit, outcome, decision)
    return outcome.refused if isinstance(outcome.refused, str) else ", ".join(outcome.refused.reasons)
