"""The gate in front of the queue: which pods may be attempted.

Plugins may gate a pod (`pre_enqueue`). A group has a gate of its own: enough of its members must exist, pass the
plugins, and agree with the oldest member. The result for a member is cached until the member changes, or until the
values that all members must share change. When a closed gate opens, all members are checked again.
"""

from __future__ import annotations

from collections.abc import Mapping

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine.groups.groups import Groups
from stowplan.engine.queue.record import QueueStage
from stowplan.engine.unit import Unit
from stowplan.framework.decision import UNRESOLVABLE, RejectPod, Verdict
from stowplan.framework.group import UNKNOWN
from stowplan.framework.plugin_calls import call_optional
from stowplan.framework.profile import Profile
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod

GROUP = "(pod group)"  # the name that stands for a plugin where a group gates its own members


class Gate:
    def __init__(self, profiles: Mapping[str, Profile], state: ClusterState, groups: Groups) -> None:
        self._profiles, self._state, self._groups = profiles, state, groups

    def check(self, unit: Unit, *, again: bool) -> Verdict | None:
        """Who gates the unit, None if it may be attempted. `again`: check all members, not only new ones."""
        if unit.group:
            return self._check_group(unit, again)
        (pod,) = unit.pods.values()
        try:
            return self.check_member(pod, unit.profile) if self._groups.enabled else self._ask(pod, unit.profile)
        except PluginError as error:
            unit.broken = str(error)  # the unit is let in; its attempt reports the error
            return None

    def _ask(self, pod: Pod, profile: str) -> Verdict | None:
        for enabled in self._profiles[profile].pre_enqueue:
            refused = call_optional(enabled, enabled.plugin.pre_enqueue, RejectPod, pod, Cluster(self._state))
            if refused is not None:
                return Verdict(enabled.name, refused.code, refused.reasons)
        return None

    # -- groups

    def _check_group(self, unit: Unit, again: bool) -> Verdict | None:
        """Gated members are left out. They gate the group only if the others are too few."""
        self._groups.refresh(unit)
        found, gated = self._groups.get(unit.group), unit.gated
        agreed = None if found is None else found.agreed
        too_few = len(unit.pods) < unit.needed
        if again or agreed != gated.agreed or (too_few and len(gated.unchecked) < len(unit.pods)):
            gated.agreed = agreed
            unit.check_all_again()
        if too_few:
            return Verdict(GROUP, UNRESOLVABLE, (self.too_few(unit),))
        everybody = len(gated.unchecked) == len(unit.pods)
        refused = self._check_members(unit)
        if refused is None and unit.queued.stage is QueueStage.GATED and not everybody:  # do the others still pass?
            unit.check_all_again()
            refused = self._check_members(unit)
        return refused

    def _check_members(self, unit: Unit) -> Verdict | None:
        gated = unit.gated
        for uid in gated.unchecked:
            try:
                refused = self.check_member(unit.pods[uid], unit.profile)
            except PluginError as error:
                unit.broken = str(error)
                return None
            gated.verdicts.pop(uid, None)
            if refused is not None:
                gated.verdicts[uid] = refused
                gated.plugins.add(refused.plugin)
        gated.unchecked = {}
        if not gated.verdicts or len(unit.pods) - len(gated.verdicts) >= unit.needed:
            return None
        first = next(iter(gated.verdicts.values()))
        return Verdict(first.plugin, first.code, (*first.reasons, self.too_few(unit)))

    def check_member(self, pod: Pod, profile: str) -> Verdict | None:
        """Who gates this pod, as a member of its group if it has one."""
        found = self._groups.of(pod.uid)
        group = None if found is None else self._groups.group_of(pod, self._profiles[profile])
        disagreement = found.disagreement(pod, group) if found is not None and group is not None else ""
        if disagreement:
            return Verdict(GROUP, UNRESOLVABLE, (disagreement,))
        return self._ask(pod, profile)

    def too_few(self, unit: Unit) -> str:
        """How many members exist, and how many the group needs."""
        found, gated = self._groups.get(unit.group), len(unit.gated.verdicts)
        if found is None:
            return f"pod group {unit.group}: {len(unit.pods)} of {unit.needed} pods exist"
        existing, minimum = found.placed + len(unit.pods) - gated, found.group.minimum
        if minimum >= UNKNOWN:
            return f"pod group {unit.group}: its minimum is unknown (no PodGroup, no label says it)"
        held = f", {gated} held back" if gated else ""
        advice = f" ({found.group.advice})" if found.group.advice else ""
        return f"pod group {unit.group}: {existing} of {minimum} pods exist{held}{advice}"

    def messages(self, unit: Unit) -> dict[str, str]:
        """Why a group is gated, for each of its pods by uid."""
        by = unit.queued.gated_by
        reasons = by.reasons if by is not None else ()
        messages = dict.fromkeys(unit.pods, reasons[-1] if reasons else "")
        for uid, pod in unit.pods.items():
            try:
                refused = unit.gated.verdicts.get(uid) or self.check_member(pod, unit.profile)
            except PluginError as error:
                messages[uid] = str(error)
                continue
            if refused is not None:
                messages[uid] = "; ".join((*refused.reasons, messages[uid]))
        return messages
