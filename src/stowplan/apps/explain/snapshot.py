"""A cluster as some objects have it, and what is decided about the pods in it as things stand.

The pods of a group are looked at together, as the engine does: each has its node if enough of them have one at the same
time. Whether others would be evicted for a group is not looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import numpy as np

from stowplan.columns.state import ClusterState
from stowplan.engine.attempt import placer
from stowplan.engine.preemption import feasibility
from stowplan.engine.queue.admission import Admission
from stowplan.engine.queue.gate import GROUP
from stowplan.engine.queue.unit import Unit
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.profile import Profile
from stowplan.framework.verdict import UNRESOLVABLE, Decision, Verdict
from stowplan.objects.changes import Put
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.priority import prioritised
from stowplan.objects.workloads import PriorityClass


@dataclass(frozen=True)
class GroupExplanation:
    """A group's attempt: which node each of its waiting pods found, and whether these are enough."""

    name: str
    needed: int
    whole: bool
    nodes: dict[str, str | None]  # by the pod's key


@dataclass(frozen=True)
class Explanation:
    """What is decided about a pod, with its group if it is in one; `because` is what keeps it from its node."""

    decision: Decision
    together: GroupExplanation | None = None
    because: str = ""

    @property
    def node(self) -> str | None:
        return None if self.because else self.decision.node

    @property
    def why_not(self) -> str:
        gate = self.decision.gated
        return self.because or (", ".join(gate.reasons) if gate is not None else self.decision.full_message)


class Snapshot:
    def __init__(self, objects: Iterable[Object], profiles: dict[str, Profile]) -> None:
        self.state, self.pods, self.profiles = ClusterState(), dict[str, Pod](), profiles
        for profile in profiles.values():
            profile.attach(self.state)
        self._answers: dict[Hashable, dict[str, Explanation]] = {}  # of groups
        for each in map(_identified, objects):
            self.state.apply(Put(each))
            if isinstance(each, Pod):
                self.pods[each.key] = each
        self.state.known_pods = {pod.uid: pod for pod in self.pods.values() if not pod.finished}
        grouped = any(profile.groups for profile in profiles.values())
        for pod in self.pods.values():
            if pod.pending and pod.nominated_node and not pod.terminating:
                promise = self._admission.promise if grouped else self.state.nominations.add
                promise(self._with_priority(pod), pod.nominated_node)

    def pod(self, key: str) -> Pod:
        if key not in self.pods:
            raise ConfigError(f"there is no pod {key}", remedy="name it as it is, and its namespace by -n")
        return self.pods[key]

    def answer(self, pod: Pod) -> Explanation:
        """About a pod, with its group if it waits with one."""
        profile = self._profile(pod)
        unit = self._unit(pod) if profile.groups and pod.pending else None
        if unit is None or unit.broken:
            return Explanation(self._decide(pod, profile))
        if unit.key not in self._answers:
            self._answers[unit.key] = self._held(unit, profile) if unit.gate else self._tried(unit, profile)
        return self._answers[unit.key][pod.uid]

    def _profile(self, pod: Pod) -> Profile:
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None:
            problem = f"{pod.key} has schedulerName {pod.scheduler_name}, of which there is no profile"
            remedy = f"there is {', '.join(self.profiles)}; name that scheduler's configuration by --config"
            raise ConfigError(problem, remedy=remedy)
        return profile

    def _decide(self, pod: Pod, profile: Profile) -> Decision:
        """About one pod alone, which from now on counts as having no node."""
        unbound = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=""))
        if pod.uid in self.state.pods:
            self.state.remove_pod(pod.uid)
        return schedule_one(self._with_priority(unbound), self.state, profile)

    # -- groups

    @cached_property
    def _admission(self) -> Admission:
        """Who waits with whom."""
        found = Admission(self.profiles, self.state, initial_backoff=1.0, max_backoff=1.0, longest_wait=1.0)
        alive = [self._with_priority(pod) for pod in self.pods.values() if not pod.finished]
        for pod in alive:
            found.groups.heard(pod, False, 0.0)
        for pod in alive:
            if pod.pending:
                found.submit(pod, 0.0)
        return found

    def _unit(self, pod: Pod) -> Unit | None:
        unit = self._admission.queue.units.get(self._admission.unit_of.get(pod.uid))
        return unit if unit is not None and unit.group else None

    def _held(self, unit: Unit, profile: Profile) -> dict[str, Explanation]:
        """Too few of its pods exist, or may be tried."""
        told, answers = self._admission.gate.told(unit), {}
        for uid, pod in unit.pods.items():
            gate = Verdict(GROUP, UNRESOLVABLE, (told[uid],))
            answers[uid] = Explanation(replace(self._decide(pod, profile), gated=gate, node=None))
        return answers

    def _tried(self, unit: Unit, profile: Profile) -> dict[str, Explanation]:
        lacking = feasibility.lacking(self._admission.groups.get(unit.group), self.state)
        outcome = placer.Placer(self.state, np.random.default_rng(0)).rehearse(unit, profile)
        found = {decision.pod.uid: decision for decision in outcome.decisions}
        whole = outcome.whole and not lacking
        together = GroupExplanation(
            unit.group, unit.needed, whole, {each.pod.key: each.node for each in outcome.decisions}
        )
        answers = {}
        for uid, pod in unit.pods.items():
            decision = found.get(uid) or self._decide(pod, profile)
            because = "" if whole else lacking or _because(unit, outcome, decision)
            answers[uid] = Explanation(decision, together, because)
        return answers

    def _with_priority(self, pod: Pod) -> Pod:
        return pod if pod.spec.priority is not None else prioritised(pod, self.state.store.every(PriorityClass))


def _because(unit: Unit, outcome: placer.UnitOutcome, decision: Decision) -> str:
    if outcome.refused is None:
        return placer.blocked(unit, outcome, decision)
    return outcome.refused if isinstance(outcome.refused, str) else ", ".join(outcome.refused.reasons)


def _identified(found: Object) -> Object:
    """Pods are told apart by their uids, and one that somebody wrote by hand has none."""
    if not isinstance(found, Pod) or found.uid:
        return found
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, uid=found.key))
