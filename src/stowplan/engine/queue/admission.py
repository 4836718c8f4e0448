"""Who enters the queue, who leaves it, and what wakes whom.

A pod without a node that is ours becomes a unit, or joins that of its group. It goes through the gate into the active
queue, or is held until that may open. What happens in the cluster is put to the plugins that rejected a unit: does it
help?
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import msgspec

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine.groups.groups import Groups
from stowplan.engine.queue.cluster_events import ASSIGNED, UNSCHEDULED, ClusterEvent, concerns
from stowplan.engine.queue.gate import GROUP, Gate
from stowplan.engine.queue.queue import SchedulingQueue
from stowplan.engine.queue.unit import QueueStage, Unit
from stowplan.framework.interfaces import TIMEOUT, Group, QueueEntry, Wake
from stowplan.framework.plugin_calls import ask, ask_list, expect
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod


class Admission:
    def __init__(
        self,
        profiles: Mapping[str, Profile],
        state: ClusterState,
        *,
        initial_backoff: float,
        max_backoff: float,
        longest_wait: float,
    ) -> None:
        self.profiles, self.state = profiles, state
        self._sort = next(iter(profiles.values())).at("queueSort")[0].plugin
        self.groups = Groups(self._grouped)
        self.gate = Gate(profiles, state, self.groups, self.measure, self.group_of)
        self.queue = SchedulingQueue(
            self._sort_key,
            self._helps,
            self._wakes,
            self.gate.closed_to,
            self._matters,
            initial_backoff=initial_backoff,
            max_backoff=max_backoff,
            longest_wait=longest_wait,
            ages_after=self.ages_after,
        )
        self.known: dict[str, Pod] = {}  # every pod the API told us of, by uid
        self.unit_of: dict[str, Hashable] = {}  # the key of the unit that a pod is in
        self._registered: dict[tuple[str, str], tuple[Wake, ...] | None] = {}
        self._mattering: dict[tuple[str, str], bool] = {}

    def adopt(
        self,
        now: float,
        *,
        initial_backoff: float,
        max_backoff: float,
        on_their_way: Iterable[str],
        told: Iterable[str],
    ) -> None:
        """The profiles are others now: every unit is made anew. Pods `on_their_way` to a node, or `told` to go, are so
        still, by their uids.
        """
        self._registered.clear()
        self._mattering.clear()
        for unit in list(self.queue.units.values()):
            self.queue.remove(unit.key)
        self.unit_of.clear()
        self.groups.clear()
        for pod in self.known.values():
            self.groups.heard(pod, False, now)
        for uid in on_their_way:
            self.groups.given_a_node(uid)
        for uid in told:
            self.groups.told_to_go(uid)
        self._sort = next(iter(self.profiles.values())).at("queueSort")[0].plugin
        self.queue.adopt(self.ages_after, initial_backoff=initial_backoff, max_backoff=max_backoff)
        for pod in list(self.known.values()):
            if not pod.node_name and pod.uid not in self.unit_of and pod.uid not in self.state.pods:
                self.submit(pod, now)

    # -- the order

    @property
    def ages_after(self) -> float:
        return float(getattr(self._sort, "ages_after", 0.0))

    def _sort_key(self, unit: Unit) -> Any:
        if not hasattr(self._sort, "group_key"):
            return self._sort.sort_key(unit.lead, unit.timestamp)
        members = self.groups.get(unit.group) if unit.group else None
        if members is None:
            created = unit.lead.metadata.creation_timestamp
            return self._sort.group_key(QueueEntry(unit.lead, unit.timestamp, created=created))
        in_part = self.groups.half_bound(members) is not None
        aged = unit.aged and not members.satisfied  # those that it could do without have time
        waiting = QueueEntry(unit.lead, unit.timestamp, unit.group, members.created, in_part, aged)
        return self._sort.group_key(waiting)

    # -- pods come, change and go

    def submit(self, pod: Pod, now: float) -> None:
        """A pod without a node, new or changed: into the queue if it is ours and may be tried."""
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None or pod.terminating:
            self.withdraw(pod.uid, now)
            return
        name, broken = self._group_name(pod, profile)
        unit = self.queue.units.get(self.unit_of.get(pod.uid, name or pod.uid))
        if unit is not None and pod.uid in unit.pods:
            if (unit.group, unit.profile) == (name, profile.scheduler_name):
                self._changed(unit, pod, now)
                return
            self.withdraw(pod.uid, now)  # it went over to another group
            unit = self.queue.units.get(name or pod.uid)
        if unit is None or unit.profile != profile.scheduler_name:
            unit = self._unit(pod, profile.scheduler_name, name, now)
        unit.join(pod)
        unit.broken = broken
        self.unit_of[pod.uid] = unit.key
        if unit.group and unit.stage in (QueueStage.BACKOFF, QueueStage.UNSCHEDULABLE):
            self.queue.joined(unit, now)
        elif unit.stage is not QueueStage.IN_FLIGHT:
            self.queue.enter(unit, now, anew=False)

    def _unit(self, pod: Pod, profile: str, group: str, now: float) -> Unit:
        """A new one; if it is of a group that failed before it goes on waiting where that was."""
        unit, members = Unit([pod], profile, now, group), self.groups.get(group)
        if members is not None and members.errors:
            unit.errors, unit.timestamp = members.errors, members.failed_at
        return unit

    def _changed(self, unit: Unit, pod: Pod, now: float) -> None:
        """Whether that helps it, its plugins are asked; only a group that waits for members is looked at at once."""
        held = pod.uid in unit.held
        unit.join(pod)
        if unit.gate is not None and unit.gate.plugin == GROUP:
            self.queue.enter(unit, now, anew=False)
        elif held and unit.stage is not QueueStage.IN_FLIGHT:
            self._let_in(unit, pod, now)

    def _let_in(self, unit: Unit, pod: Pod, now: float) -> None:
        """A member that was left out of its group may have passed its gate."""
        try:
            refused = self.gate.refused(pod, unit.profile)
        except PluginError:
            return
        if refused is None:
            self.queue.enter(unit, now, anew=False)

    def withdraw(self, uid: str, now: float) -> None:
        """A pod is no longer to be placed; the rest of its group, if there is any, may be too few now, or agree now."""
        unit = self.queue.units.get(self.unit_of.pop(uid, None))
        if unit is None:
            return
        unit.leave(uid)
        if not unit.pods:
            self.queue.remove(unit.key)
        elif unit.stage is QueueStage.GATED:
            self.queue.enter(unit, now, anew=False)
        elif unit.stage is not QueueStage.IN_FLIGHT:
            self.queue.check(unit)

    def promise(self, pod: Pod, node_name: str) -> None:
        """A node is kept for a pod against all that matter no more than it; for what is missing of a group bound in
        part, against everybody who could not evict the others of it, either.
        """
        members = self.groups.of(pod.uid)
        self.state.nominations.add(pod, node_name, firm=members is not None and members.in_part)

    # -- groups

    def mend(self, unit: Unit, now: float) -> str:
        """A plugin raised before the unit was tried: what is wrong still, nothing if it could be taken in anew."""
        wrong, unit.broken = unit.broken, ""
        name, unit.broken = self._group_name(unit.lead, self.profiles[unit.profile])
        if unit.broken or name == unit.group:
            return unit.broken or wrong
        self.queue.remove(unit.key)
        for pod in unit.pods.values():
            self.unit_of.pop(pod.uid, None)
            self.submit(pod, now)
        return ""

    def measure(self, unit: Unit) -> None:
        """How many of its pods must get a node? Those of a group that have one already count for it."""
        members = self.groups.get(unit.group) if unit.group and unit.pods else None
        if members is None:
            return
        try:
            group = self.group_of(members.first, self.profiles[unit.profile])
        except PluginError as error:
            unit.broken = str(error)
            return
        if group is not None:
            self.groups.told_anew(members, group)
        unit.needed = max(self.groups.missing(unit.group), 1)

    def lacks(self, group: str) -> bool:
        """Is the group short of pods on nodes?"""
        return self.groups.missing(group) > 0

    def timeout(self, name: str) -> float:
        """How long a group's members may take to be ready once all have a node."""
        members = self.groups.get(name)
        return TIMEOUT if members is None else members.group.timeout

    def _grouped(self, pod: Pod) -> Group | None:
        profile = self.profiles.get(pod.scheduler_name)
        return None if profile is None or not profile.groups else self.group_of(pod, profile)

    def _group_name(self, pod: Pod, profile: Profile) -> tuple[str, str]:
        """The pod's group and what went wrong in finding it; both may be nothing."""
        try:
            group = self.group_of(pod, profile)
        except PluginError as error:
            return "", str(error)
        members = None if group is None else self.groups.get(group.name)
        if group is None or members is None or pod.uid in members.pods:
            return ("" if group is None else group.name), ""
        return "", members.odd(pod, group)

    def group_of(self, pod: Pod, profile: Profile) -> Group | None:
        for bound in profile.groups:
            group = expect(bound, "group_of", Group, ask(bound, "group_of", pod, Cluster(self.state)))
            if group is not None:
                return self._with_slots(group, pod, profile) if profile.holding else group
        return None

    def _with_slots(self, group: Group, pod: Pod, profile: Profile) -> Group:
        held = (ask(bound, "slots_of", pod, Cluster(self.state)) for bound in profile.holding)
        return msgspec.structs.replace(group, slots=group.slots + sum(int(each) for each in held))

    # -- what happens

    def happened(
        self,
        what: Iterable[ClusterEvent],
        now: float,
        *,
        most_important: int | None = None,
        besides: Unit | None = None,
    ) -> None:
        """Wake whom it helps; it is nothing to pods of a higher priority than `most_important`, and to `besides`."""
        for happening in what:
            if happening.resource == UNSCHEDULED:
                self.happened_to(happening.new.uid, happening, now)
                continue
            if happening.resource == ASSIGNED:
                self._ask_its_group(happening, now)
            elif happening.new is not None:
                self._group_changed(happening.new.key, now)
            self.queue.happen(happening, now, most_important=most_important, besides=besides)

    def happened_to(self, uid: str, happening: ClusterEvent, now: float) -> None:
        """Something that concerns this pod alone."""
        unit = self.queue.units.get(self.unit_of.get(uid))
        if unit is not None:
            self.queue.happen_to(unit, happening, now)

    def _ask_its_group(self, happening: ClusterEvent, now: float) -> None:
        """A pod that comes to a node or leaves one changes what its group lacks."""
        pod = happening.new or happening.old
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None or not profile.groups or happening.action not in ("Add", "Delete"):
            return
        try:
            group = self.group_of(pod, profile)
        except PluginError:
            return
        unit = None if group is None else self.queue.units.get(group.name)
        if unit is not None and unit.stage is QueueStage.GATED:
            self.queue.enter(unit, now, anew=False)
        elif unit is not None and unit.stage is not QueueStage.IN_FLIGHT:
            self.queue.check(unit)

    def _group_changed(self, name: str, now: float) -> None:
        """The object of a group may ask for less now. Whatever else is written in it, its status say, helps nobody."""
        unit, members = self.queue.units.get(name), self.groups.get(name)
        if unit is not None and members is not None and unit.stage in (QueueStage.BACKOFF, QueueStage.UNSCHEDULABLE):
            before = members.group
            self.measure(unit)
            if members.group != before:
                self.queue.joined(unit, now)

    def try_soon(self, uids: Iterable[str]) -> None:
        """Activate these pods, where they are waiting."""
        for uid in uids:
            unit = self.queue.units.get(self.unit_of.get(uid))
            if unit is not None:
                self.queue.activate(unit)

    def _matters(self, happening: ClusterEvent) -> bool:
        """Did any plugin of any profile register for such a thing?"""
        kind = (happening.resource, happening.action)
        if kind not in self._mattering:
            every = ((name, bound.name) for name, profile in self.profiles.items() for bound in profile.all)
            wakes = (self._wakes(*each) for each in every)
            self._mattering[kind] = any(w is None or any(concerns(each, happening) for each in w) for w in wakes)
        return self._mattering[kind]

    def _wakes(self, profile: str, plugin: str) -> tuple[Wake, ...] | None:
        """What a plugin registered for, None if for everything. A group waits for what its plugins registered for."""
        key = (profile, plugin)
        if key not in self._registered:
            found = self.profiles[profile]
            bounds = found.groups if plugin == GROUP else [each for each in found.all if each.name == plugin]
            self._registered[key] = self._registered_by(bounds, plugin)
        return self._registered[key]

    @staticmethod
    def _registered_by(bounds: Iterable[EnabledPlugin], plugin: str) -> tuple[Wake, ...] | None:
        wakes: tuple[Wake, ...] = ()
        asked = False
        for bound in bounds:
            if hasattr(bound.plugin, "wakes_on"):
                asked = True
                try:
                    wakes += tuple(ask_list(bound, "wakes_on", Wake))
                except PluginError:
                    return None
        if plugin == GROUP:
            return wakes  # a new member opens the gate in any case
        return _with_taints(wakes) if asked else None

    def _helps(self, unit: Unit, plugin: str, wake: Wake, happening: ClusterEvent) -> bool:
        """Ask the plugin's hint; one that raises counts as yes."""
        if plugin == GROUP and wake.own:
            return getattr(happening.new, "uid", None) in unit.pods
        profile = self.profiles[unit.profile]
        asked = [each.plugin for each in profile.groups] if plugin == GROUP else [profile.plugin(plugin)]
        pods = [unit.lead] if plugin == GROUP else unit.pods.values()  # what a group waits for is the same for all
        try:
            return any(wake.helps(each, pod, happening.old, happening.new) for each in asked for pod in pods)
        except Exception:
            return True


def _with_taints(wakes: tuple[Wake, ...]) -> tuple[Wake, ...]:
    """Whoever waits for new nodes waits for open ones, too: to most pods a node is new when its first taints go."""
    of_nodes = {action for wake in wakes if wake.resource == "Node" for action in wake.actions}
    if "Add" not in of_nodes or of_nodes & {"UpdateNodeTaint", "Update", "*"}:
        return wakes
    return (*wakes, Wake("Node", ("UpdateNodeTaint",)))
