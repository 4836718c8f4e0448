"""The gate before the queue: who may be tried.

Plugins may hold a pod back (`pre_enqueue`). A group has a gate of its own: enough members must exist that pass, and
agree with the oldest of them. What was found out about a member stands until it changes, or what they must agree on
does; when a closed gate opens all are asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine.groups.groups import Groups
from stowplan.engine.queue.unit import QueueStage, Unit
from stowplan.framework.interfaces import UNKNOWN, Group
from stowplan.framework.plugin_calls import call_optional
from stowplan.framework.profile import Profile
from stowplan.framework.verdict import UNRESOLVABLE, Refuse, Verdict
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod

GROUP = "(pod group)"  # who holds back a group that is not complete


class Gate:
    def __init__(
        self,
        profiles: Mapping[str, Profile],
        state: ClusterState,
        groups: Groups,
        measure: Callable[[Unit], None],
        group_of: Callable[[Pod, Profile], Group | None],
    ) -> None:
        """`measure` finds out how many of a unit's pods must get a node, `group_of` what a pod says of its group."""
        self._profiles, self._state, self._groups = profiles, state, groups
        self._measure, self._group_of = measure, group_of

    def closed_to(self, unit: Unit, anew: bool) -> Verdict | None:
        """Members of a group that may not be tried are left out of it, and hold it only if the others are too few."""
        if not unit.group:
            return self._ask_those_left(unit)
        self._measure(unit)
        members = self._groups.get(unit.group)
        agreed = None if members is None else members.agreed
        too_few = len(unit.pods) < unit.needed
        if anew or agreed != unit.asked_on or (too_few and len(unit.unasked) < len(unit.pods)):
            unit.asked_on = agreed
            unit.ask_all_anew()
        if too_few:
            return Verdict(GROUP, UNRESOLVABLE, (self._too_few(unit),))
        everybody = len(unit.unasked) == len(unit.pods)
        refused = self._ask_those_left(unit)
        if refused is None and unit.stage is QueueStage.GATED and not everybody:  # it opens: do the others still pass?
            unit.ask_all_anew()
            refused = self._ask_those_left(unit)
        return refused

    def _ask_those_left(self, unit: Unit) -> Verdict | None:
        for uid in unit.unasked if unit.group else unit.pods:
            try:
                refused = self.refused(unit.pods[uid], unit.profile)
            except PluginError as error:
                unit.broken = str(error)  # it is let in, to be told so when it is tried
                return None
            if not unit.group:
                return refused
            unit.held.pop(uid, None)
            if refused is not None:
                unit.held[uid] = refused
                unit.holders.add(refused.plugin)
        unit.unasked = {}
        if not unit.held or len(unit.pods) - len(unit.held) >= unit.needed:
            return None
        first = next(iter(unit.held.values()))
        return Verdict(first.plugin, first.code, (*first.reasons, self._too_few(unit)))

    def refused(self, pod: Pod, profile: str) -> Verdict | None:
        members = self._groups.of(pod.uid)
        group = None if members is None else self._group_of(pod, self._profiles[profile])
        odd = members.odd(pod, group) if members is not None and group is not None else ""
        if odd:
            return Verdict(GROUP, UNRESOLVABLE, (odd,))
        for enabled in self._profiles[profile].pre_enqueue:
            refused = call_optional(enabled, enabled.plugin.pre_enqueue, Refuse, pod, Cluster(self._state))
            if refused is not None:
                return Verdict(enabled.name, refused.code, refused.reasons)
        return None

    def _too_few(self, unit: Unit) -> str:
        members = self._groups.get(unit.group)
        if members is None:
            return f"pod group {unit.group}: {len(unit.pods)} of {unit.needed} pods exist"
        there, minimum = members.placed + len(unit.pods) - len(unit.held), members.group.minimum
        if minimum >= UNKNOWN:
            return f"pod group {unit.group}: nobody says how many of its pods are needed"
        held = f", {len(unit.held)} held back" if unit.held else ""
        advice = f" ({members.group.advice})" if members.group.advice else ""
        return f"pod group {unit.group}: {there} of {minimum} pods exist{held}{advice}"

    def told(self, unit: Unit) -> dict[str, str]:
        """What the pods of a group that is held back should know, each for itself."""
        reasons = unit.gate.reasons if unit.gate is not None else ()
        told = dict.fromkeys(unit.pods, reasons[-1] if reasons else "")
        for uid, pod in unit.pods.items():
            try:
                refused = unit.held.get(uid) or self.refused(pod, unit.profile)
            except PluginError as error:
                told[uid] = str(error)
                continue
            if refused is not None:
                told[uid] = "; ".join((*refused.reasons, told[uid]))
        return told
