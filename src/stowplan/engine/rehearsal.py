"""Rehearsing a waiting group: would it run in the cluster as it is now, with its members as they would be?

The caller changes the cluster in a trial of its own: nodes more, pods less, another PodGroup. What plugins say about
the group is asked again. Nothing in the engine changes, and nothing is left of the rehearsal.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

import numpy as np

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine.attempt import placer
from stowplan.engine.attempt.placer import Placer, UnitOutcome
from stowplan.engine.groups.group import GroupState
from stowplan.engine.groups.groups import Groups
from stowplan.engine.preemption import capacity_check
from stowplan.engine.preemption.group_preemption import GroupPreemption, PreemptionPlan
from stowplan.engine.preemption.min_resources_hold import MinResourcesHold
from stowplan.engine.queue.gate import GROUP
from stowplan.engine.unit import Unit
from stowplan.framework.decision import UNRESOLVABLE, RejectPod, Verdict
from stowplan.framework.group import Group
from stowplan.framework.plugin_calls import call_optional
from stowplan.framework.profile import Profile
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """How a group's attempt would go.

    group     what plugins say about it
    unit      its waiting members
    because   why it would not run; empty if it would
    lacking   that is because its minResources are not free
    outcome   which members would get which node; None if there were no attempt
    """

    group: Group
    unit: Unit
    because: str
    lacking: bool = False
    outcome: UnitOutcome | None = None

    @property
    def runs(self) -> bool:
        return not self.because

    @property
    def nodes(self) -> dict[str, str]:
        """The node of each member that would get one, by key."""
        return {} if self.outcome is None else {each.pod.key: each.node_name for each in self.outcome.assumed_pods}


class GroupRehearsals:
    """`evicting`: uids of pods whose eviction was requested, and that are still there."""

    def __init__(
        self,
        state: ClusterState,
        profiles: Mapping[str, Profile],
        groups: Groups,
        hold: MinResourcesHold,
        evicting: Container[str],
    ) -> None:
        self._state, self._profiles, self._groups = state, profiles, groups
        self._hold, self._evicting = hold, evicting

    def rehearse(self, unit: Unit, members: Mapping[str, Pod], *, seed: int = 0) -> Rehearsal | None:
        """Try the group of a waiting unit; None if it would be no group any more.

        `members`: all its pods as they would be, by uid; those that are on nodes are not attempted.
        """
        found = self._groups.get(unit.group)
        if found is None:
            return None
        return self._rehearse(unit, found, members, self._profiles[unit.profile], seed)

    def _rehearse(
        self, unit: Unit, found: GroupState, members: Mapping[str, Pod], profile: Profile, seed: int
    ) -> Rehearsal | None:
        group = self._groups.group_of(members.get(found.first.uid, found.first), profile)
        if group is None or group.name != unit.group:
            return None
        waiting = [pod for uid, pod in members.items() if uid in unit.pods or uid not in found.pods]
        trial = Unit(waiting, unit.profile, unit.since, unit.group, self._groups.needed_by(found, group))
        known = _with(found, group, members)
        trial.gated.verdicts = self._gated(waiting, known, profile)
        ready = len(trial.ready)
        if ready < trial.needed:
            return Rehearsal(group, trial, f"{known.placed + ready} of {group.minimum} pods exist")
        if lacking := capacity_check.lacking(known, self._state):
            return Rehearsal(group, trial, lacking, lacking=True)
        outcome = Placer(self._state, np.random.default_rng(seed)).rehearse(trial, profile, trial.needed)
        return Rehearsal(group, trial, self._because(trial, outcome), outcome=outcome)

    def _gated(self, members: list[Pod], known: GroupState, profile: Profile) -> dict[str, Verdict]:
        gated: dict[str, Verdict] = {}
        for pod in members:
            own = self._groups.group_of(pod, profile)
            reason = "it is in no group" if own is None else known.disagreement(pod, own)
            if reason:
                gated[pod.uid] = Verdict(GROUP, UNRESOLVABLE, (reason,))
                continue
            for enabled in profile.pre_enqueue:
                cluster = Cluster(self._state)
                refused = call_optional(enabled, enabled.plugin.pre_enqueue, RejectPod, pod, cluster)
                if refused is not None:
                    gated[pod.uid] = Verdict(enabled.name, refused.code, refused.reasons)
                    break
        return gated

    def _because(self, unit: Unit, outcome: UnitOutcome) -> str:
        if not outcome.whole:
            if outcome.refused is not None:
                return outcome.refused if isinstance(outcome.refused, str) else ", ".join(outcome.refused.reasons)
            return (
                placer.member_message(unit, outcome, outcome.failed[-1])
                if outcome.failed
                else "extenders must be asked"
            )
        if not self._state.nominated_pods:
            return ""
        with self._state.trial() as trial:
            for each in outcome.assumed_pods:
                trial.add_pod(each.pod, each.node_name)
            return self._hold.refusal([each.pod for each in outcome.assumed_pods], unit.group)

    def plan(self, rehearsal: Rehearsal) -> PreemptionPlan | None:
        """Which pods would be evicted for a group that would not run otherwise; None if that does not help."""
        unit, found = rehearsal.unit, self._groups.get(rehearsal.unit.group)
        if found is None or not unit.ready or len(unit.ready) < unit.needed:
            return None
        finding = Placer(self._state, np.random.default_rng(0))
        failed = () if rehearsal.outcome is None else rehearsal.outcome.failed
        search = GroupPreemption(self._state, finding, self._groups, self._evicting, self._hold)
        before, found.group = found.group, rehearsal.group  # what plugins say of it with the caller's changes
        try:
            return search.plan(unit, self._profiles[unit.profile], failed)
        except PluginError:
            return None
        finally:
            found.group = before


def _with(found: GroupState, group: Group, members: Mapping[str, Pod]) -> GroupState:
    """The group with other members, as a plugin defines it now."""
    known = GroupState(group, members.get(found.first.uid, found.first), found.since)
    known.pods = dict(members)
    known.bound, known.assumed = found.bound, found.assumed
    return known
