"""Who enters the queue, who leaves it, and what wakes whom.

A pod without a node that is ours becomes a unit, or joins that of its group. It goes through the gate (`pre_enqueue`,
and a group's own: enough members must exist) into the active queue, or is held until the gate may open. What happens in
the cluster is put to the plugins that rejected a unit: does it help?
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from stowplan.columns.state import ClusterState
from stowplan.columns.views import Cluster
from stowplan.engine.happenings import UNSCHEDULED, Happening
from stowplan.engine.queue import Queue
from stowplan.engine.unit import Stage, Unit
from stowplan.framework.asking import ask
from stowplan.framework.interfaces import Group, Wake
from stowplan.framework.profile import Profile
from stowplan.framework.verdict import UNRESOLVABLE, Verdict
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod

GROUP = "(pod group)"  # who holds back a group that is not complete


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
        self.queue = Queue(
            next(iter(profiles.values())).at("queueSort")[0].plugin.sort_key,
            self._helps,
            self._wakes,
            self._gate,
            initial_backoff=initial_backoff,
            max_backoff=max_backoff,
            longest_wait=longest_wait,
        )
        self.known: dict[str, Pod] = {}  # every pod the API told us of, by uid
        self.unit_of: dict[str, Hashable] = {}  # the key of the unit that a pod is in
        self._registered: dict[tuple[str, str], tuple[Wake, ...] | None] = {}

    def adopt(self, now: float, *, initial_backoff: float, max_backoff: float) -> None:
        """The profiles are others now: every unit is made anew."""
        self._registered.clear()
        for unit in list(self.queue.units.values()):
            self.queue.remove(unit.key)
        self.unit_of.clear()
        sort_key = next(iter(self.profiles.values())).at("queueSort")[0].plugin.sort_key
        self.queue.adopt(sort_key, initial_backoff=initial_backoff, max_backoff=max_backoff)
        for pod in list(self.known.values()):
            if not pod.node_name and pod.uid not in self.unit_of and pod.uid not in self.state.pods:
                self.submit(pod, now)

    def submit(self, pod: Pod, now: float) -> None:
        """A pod without a node, new or changed: into the queue if it is ours and may be tried."""
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None or pod.terminating:
            self.withdraw(pod.uid, now)
            return
        group = self.group_of(pod, profile)
        unit = self.queue.units.get(self.unit_of.get(pod.uid) or (group.name if group else pod.uid))
        if unit is None:
            unit = Unit([pod], profile.scheduler_name, now, group.name if group else "")
        elif pod.uid in unit.pods and (unit.gate is None or unit.gate.plugin != GROUP):
            unit.pods[pod.uid] = pod  # whether that helps it, its plugins are asked
            return
        unit.pods[pod.uid] = pod
        self.measure(unit)
        self.unit_of[pod.uid] = unit.key
        if unit.stage is not Stage.IN_FLIGHT:
            self.queue.enter(unit, now)

    def measure(self, unit: Unit) -> None:
        """How many of its pods must get a node? Those of a group that have one already count for it."""
        group = self.group_of(unit.lead, self.profiles[unit.profile]) if unit.group else None
        unit.needed = 1 if group is None else max(group.missing, 1)

    def group_of(self, pod: Pod, profile: Profile) -> Group | None:
        for plugin in profile.groups:
            group: Group | None = plugin.group_of(pod, Cluster(self.state))
            if group is not None:
                return group
        return None

    def withdraw(self, uid: str, now: float) -> None:
        """A pod is no longer to be placed; the rest of its group, if there is any, may be too few now."""
        unit = self.queue.units.get(self.unit_of.pop(uid, None))
        if unit is None:
            return
        unit.pods.pop(uid, None)
        if not unit.pods:
            self.queue.remove(unit.key)
        elif unit.stage is not Stage.IN_FLIGHT and len(unit.pods) < unit.needed:
            self.queue.enter(unit, now)

    def _gate(self, unit: Unit) -> Verdict | None:
        if len(unit.pods) < unit.needed:
            reason = f"pod group {unit.group}: {len(unit.pods)} of {unit.needed} pods exist"
            return Verdict(GROUP, UNRESOLVABLE, (reason,))
        cluster = Cluster(self.state)
        for bound in self.profiles[unit.profile].at("preEnqueue"):
            for pod in unit.pods.values():
                try:
                    refused = ask(bound, "pre_enqueue", pod, cluster)
                except PluginError:
                    continue  # what raises at the gate raises again, and is reported, when the pod is tried
                if refused is not None:
                    return Verdict(bound.name, refused.code, refused.reasons)
        return None

    def happened(
        self,
        what: Iterable[Happening],
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
            for unit in self.queue.happen(happening, now, most_important=most_important, besides=besides):
                self.queue.enter(unit, now)

    def happened_to(self, uid: str, happening: Happening, now: float) -> None:
        """Something that concerns this pod alone."""
        unit = self.queue.units.get(self.unit_of.get(uid))
        if unit is not None:
            self.queue.happen_to(unit, happening, now)

    def try_soon(self, uids: Iterable[str]) -> None:
        """Activate these pods, where they are waiting."""
        for uid in uids:
            unit = self.queue.units.get(self.unit_of.get(uid))
            if unit is not None:
                self.queue.activate(unit)

    def _wakes(self, profile: str, plugin: str) -> tuple[Wake, ...] | None:
        if plugin == GROUP:
            return ()  # a new member opens the gate, nothing else does
        key = (profile, plugin)
        if key not in self._registered:
            wakes_on = getattr(self.profiles[profile].plugin(plugin), "wakes_on", None)
            self._registered[key] = None if wakes_on is None else _with_taints(tuple(wakes_on()))
        return self._registered[key]

    def _helps(self, unit: Unit, plugin: str, wake: Wake, happening: Happening) -> bool:
        """Ask the plugin's hint; one that raises counts as yes."""
        asked = self.profiles[unit.profile].plugin(plugin)
        try:
            return any(wake.helps(asked, pod, happening.old, happening.new) for pod in unit.pods.values())
        except Exception:
            return True


def _with_taints(wakes: tuple[Wake, ...]) -> tuple[Wake, ...]:
    """Whoever waits for new nodes waits for open ones, too: to most pods a node is new when its first taints go."""
    of_nodes = {action for wake in wakes if wake.resource == "Node" for action in wake.actions}
    if "Add" not in of_nodes or of_nodes & {"UpdateNodeTaint", "Update", "*"}:
        return wakes
    return (*wakes, Wake("Node", ("UpdateNodeTaint",)))
