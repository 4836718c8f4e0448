"""All pod groups: which pods belong to each, and what they still need.

A plugin says which group a pod belongs to (`group_of`). The members are counted here, for all plugins alike. Members
that have finished or are terminating do not count. A group is remembered for a while after its last member is gone, so
that people can still look it up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine.groups.group import GroupState, age
from stowplan.engine.unit import Unit
from stowplan.framework.group import TIMEOUT, Group
from stowplan.framework.plugin_calls import call, call_optional
from stowplan.framework.profile import Profile
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod

REMEMBERED = 600.0  # seconds after the last member is gone
MOST_REMEMBERED = 10_000


class Groups:
    def __init__(self, profiles: Mapping[str, Profile], state: ClusterState) -> None:
        self._profiles, self._state = profiles, state
        self.enabled = _any_groups(profiles)  # False: no profile has a plugin that knows groups
        self._groups: dict[str, GroupState] = {}
        self._name_of: dict[str, str] = {}  # the group of each pod, by uid
        self._empty: dict[str, float] = {}  # groups without members, and since when; the oldest first
        self.changed: dict[str, None] = {}  # groups that `monitor` has to look at
        self._any_all_together = False  # a group came that is evicted only as a whole

    def __iter__(self) -> Iterator[GroupState]:
        return iter(self._groups.values())

    def get(self, name: str) -> GroupState | None:
        return self._groups.get(name)

    def of(self, uid: str) -> GroupState | None:
        """The group of a pod."""
        return self._groups.get(self._name_of.get(uid, ""))

    def name_of(self, uid: str) -> str:
        """The name of a pod's group; empty if it has none."""
        return self._name_of.get(uid, "")

    def victim_priority(self, pod: Pod) -> int:
        """The priority by which a pod is preempted: its own, or that of a group which is evicted only as a whole."""
        found = self.of(pod.uid) if self._any_all_together else None
        own = None if found is None or not found.all_together else found.group.priority
        return pod.priority if own is None else own

    def any_victims(self, priority: int) -> bool:
        """True if a group that is evicted only as a whole has a lower priority of its own."""
        if not self._any_all_together:
            return False
        own = (found.group.priority for found in self._groups.values() if found.all_together)
        return any(each is not None and each < priority for each in own)

    # -- what plugins say

    def group_of(self, pod: Pod, profile: Profile) -> Group | None:
        """Ask the profile's plugins for the pod's group."""
        for enabled in profile.group_plugins:
            group = call_optional(enabled, enabled.plugin.group_of, Group, pod, Cluster(self._state))
            if group is not None:
                return self._with_slots(group, pod, profile) if profile.slot_plugins else group
        return None

    def _with_slots(self, group: Group, pod: Pod, profile: Profile) -> Group:
        held = (call(enabled, enabled.plugin.slots_of, pod, Cluster(self._state)) for enabled in profile.slot_plugins)
        return msgspec.structs.replace(group, slots=group.slots + sum(int(each) for each in held))

    def find_name(self, pod: Pod, profile: Profile) -> tuple[str, str]:
        """The name of the pod's group, and what went wrong in finding it. Both may be empty."""
        try:
            group = self.group_of(pod, profile)
        except PluginError as error:
            return "", str(error)
        found = None if group is None else self._groups.get(group.name)
        if group is None or found is None or pod.uid in found.pods:
            return ("" if group is None else group.name), ""
        return "", found.disagreement(pod, group)

    def refresh(self, unit: Unit) -> None:
        """Ask again what a unit's group wants, and work out how many of the unit's pods must get a node."""
        found = self._groups.get(unit.group) if unit.group and unit.pods else None
        if found is None:
            return
        try:
            group = self.group_of(found.first, self._profiles[unit.profile])
        except PluginError as error:
            unit.broken = str(error)
            return
        if group is not None:
            self._redefine(found, group)
        unit.needed = max(self.missing(unit.group), 1)

    def needed_now(self, unit: Unit) -> int:
        """How many of the unit's pods must get a node, by what plugins say now. Nothing changes."""
        found = self._groups.get(unit.group)
        if found is None:
            return unit.needed
        try:
            group = self.group_of(found.first, self._profiles[unit.profile])
        except PluginError:
            return unit.needed
        return self.needed_by(found, group or found.group)

    def needed_by(self, found: GroupState, group: Group) -> int:
        """How many waiting pods must get a node, if the group were defined like this."""
        return max(_missing(found, group), 1)

    def _redefine(self, found: GroupState, group: Group) -> None:
        if group != found.group:
            self.changed[group.name] = None
        found.group = group
        self._any_all_together = self._any_all_together or found.all_together
        found.count(group)

    # -- pods come, change and go

    def clear(self) -> None:
        """Start again: other plugins define the groups from now on."""
        for index in (self._groups, self._name_of, self._empty, self.changed):
            index.clear()
        self.enabled = _any_groups(self._profiles)

    def pod_changed(self, pod: Pod, gone: bool, now: float) -> None:
        """A pod was added or changed, or is `gone`: deleted or finished."""
        profile = self._profiles.get(pod.scheduler_name)
        try:
            group = None if gone or profile is None or not profile.group_plugins else self.group_of(pod, profile)
        except PluginError:
            group = None  # the pod is told when it is attempted
        before = self._name_of.get(pod.uid, "")
        if before and (group is None or group.name != before):
            self._leave(pod, before, now)
        found = None if group is None else self._groups.get(group.name)
        if found is not None and found.pods and found.first.scheduler_name != pod.scheduler_name:
            group = None  # `find_name` tells the pod
        if group is not None:
            self._join(pod, group, now)

    def _join(self, pod: Pod, group: Group, now: float) -> None:
        found = self._groups.get(group.name)
        if found is None:
            found = self._groups[group.name] = GroupState(group, pod, now)
        if not found.pods or pod.uid == found.first.uid or age(pod) < age(found.first):
            found.first, found.group = pod, group
        self._any_all_together = self._any_all_together or found.all_together
        found.add(pod)
        found.updated = now
        self.changed[group.name] = None
        self._name_of[pod.uid] = group.name
        self._empty.pop(group.name, None)
        if pod.node_name:
            found.assumed.pop(pod.uid, None)
            if pod.terminating or pod.uid in found.evicting:
                found.bound.pop(pod.uid, None)
            else:
                found.bound[pod.uid] = None
            found.count(group)
            if found.all_terminating:
                found.satisfied = found.observed = False  # new members are another group

    def _leave(self, pod: Pod, name: str, now: float) -> None:
        found = self._groups[name]
        torn = found.torn or (found.all_together and pod.uid in found.evicting)
        found.pods.pop(pod.uid, None)
        for uids in (found.bound, found.assumed, found.evicting, found.evicted):
            uids.pop(pod.uid, None)
        found.torn = torn and bool(found.bound or found.assumed or found.evicting)
        found.updated = now
        del self._name_of[pod.uid]
        self.changed[name] = None
        if not found.pods:
            self._empty[name] = now
            found.satisfied = found.observed = False  # new members of this name are another group
            found.messages = {}
        elif found.first.uid == pod.uid:
            found.first = found.oldest()
        self._expire(now)

    def _expire(self, now: float) -> None:
        """Forget groups whose last member has been gone for long, and the oldest if there are too many."""
        while self._empty:
            name, since = next(iter(self._empty.items()))
            if now - since < REMEMBERED and len(self._empty) <= MOST_REMEMBERED:
                return
            del self._empty[name], self._groups[name]

    def recent(self, now: float) -> list[GroupState]:
        """The groups with members, and those whose last member has not been gone for long."""
        return [each for name, each in self._groups.items() if now - self._empty.get(name, now) < REMEMBERED]

    # -- members are assumed, evicted, rolled back

    def assume(self, uid: str) -> None:
        """The pod was given a node."""
        found = self.of(uid)
        if found is not None and uid not in found.bound:
            if not found.bound and not found.assumed:  # the group starts, or starts again after it lost all members
                found.observed = True
                found.satisfied = found.satisfied and found.group.match == "once-satisfied"
            found.assumed[uid] = None

    def rolled_back(self, uid: str) -> None:
        """The pod does not get its node."""
        found = self.of(uid)
        if found is not None:
            found.assumed.pop(uid, None)
            self.changed[found.group.name] = None

    def evicting(self, uid: str) -> None:
        """The pod's eviction was requested: it no longer counts, though it is still there."""
        found = self.of(uid)
        if found is not None and uid in found.bound:
            del found.bound[uid]
            found.evicting[uid] = None

    def evicted(self, uid: str) -> None:
        """The API server accepted the pod's eviction."""
        found = self.of(uid)
        if found is not None and uid in found.evicting:
            found.evicted[uid] = None
            found.torn = found.all_together

    def eviction_failed(self, uid: str) -> None:
        """The pod stays, and counts again."""
        found = self.of(uid)
        if found is not None and uid in found.evicting:
            del found.evicting[uid]
            found.evicted.pop(uid, None)
            found.bound[uid] = None
            self.changed[found.group.name] = None

    def attempted(self, uid: str) -> None:
        """The pod was told how an attempt at its group failed. If it is gated again, it is told that again."""
        found = self.of(uid)
        if found is not None:
            found.messages.pop(uid, None)

    def failed(self, name: str, errors: int, now: float) -> None:
        """An attempt at the group failed. A new unit of the group goes on with its count of errors."""
        found = self._groups.get(name)
        if found is not None:
            found.errors, found.failed_at = errors, now

    # -- questions

    def missing(self, name: str) -> int:
        """How many more members must get a node, all at once."""
        found = self._groups.get(name)
        return 0 if found is None else _missing(found, found.group)

    def timeout(self, name: str) -> float:
        """Seconds within which all members must be ready to bind, once all have a node."""
        found = self._groups.get(name)
        return TIMEOUT if found is None else found.group.timeout

    def is_partially_bound(self, name: str) -> bool:
        found = self._groups.get(name)
        return found is not None and found.left_behind() is not None


def _missing(found: GroupState, group: Group) -> int:
    if found.satisfied and group.match == "once-satisfied":
        return 0
    lost_members = group.match == "only-waiting" and found.left_behind() is None
    placed = group.slots + len(found.bound) + len(found.assumed)
    return max(group.minimum - (group.slots if lost_members else placed), 0)


def _any_groups(profiles: Mapping[str, Profile]) -> bool:
    return any(profile.group_plugins for profile in profiles.values())
