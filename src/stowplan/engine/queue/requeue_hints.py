"""Which cluster events may help a rejected unit: what its plugins registered for (`wakes_on`), and their hints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine.queue.cluster_events import EVERYTHING, ClusterEvent, concerns
from stowplan.engine.queue.gate import GROUP
from stowplan.engine.unit import Unit
from stowplan.framework.interfaces import Wake
from stowplan.framework.plugin_calls import call, call_list
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.errors import PluginError


class RequeueHints:
    def __init__(self, profiles: Mapping[str, Profile], state: ClusterState) -> None:
        self._profiles, self._state = profiles, state
        self._registered: dict[tuple[str, str], tuple[Wake, ...] | None] = {}
        self._matters: dict[tuple[str, str], bool] = {}

    def clear(self) -> None:
        """The profiles have other plugins now."""
        self._registered.clear()
        self._matters.clear()

    def matters(self, event: ClusterEvent) -> bool:
        """True if any plugin of any profile registered for such events."""
        kind = (event.resource, event.action)
        if kind not in self._matters:
            plugins = ((name, each.name) for name, profile in self._profiles.items() for each in profile.all)
            self._matters[kind] = any(self.concerns(name, plugin, event) for name, plugin in plugins)
        return self._matters[kind]

    def concerns(self, profile: str, plugin: str, event: ClusterEvent) -> bool:
        """True if this plugin registered for such events."""
        wakes = self._wakes(profile, plugin)
        return event is EVERYTHING or wakes is None or any(concerns(wake, event) for wake in wakes)

    def helps(self, unit: Unit, plugin: str, event: ClusterEvent) -> bool:
        """True if this event may help a unit that this plugin rejected."""
        wakes = self._wakes(unit.profile, plugin)
        if event is EVERYTHING or wakes is None:
            return True
        return any(concerns(wake, event) and self._hint(unit, plugin, wake, event) for wake in wakes)

    def _hint(self, unit: Unit, plugin: str, wake: Wake, event: ClusterEvent) -> bool:
        """Ask the plugin's hint. A hint that raises counts as yes."""
        if plugin == GROUP and wake.own:
            return getattr(event.new, "uid", None) in unit.pods
        if not wake.hint and not wake.own:
            return True
        profile = self._profiles[unit.profile]
        asked = profile.group_plugins if plugin == GROUP else [_enabled(profile, plugin)]
        pods = [unit.lead] if plugin == GROUP else unit.pods.values()  # all members of a group wait for the same
        try:
            cluster = Cluster(self._state)
            return any(
                call(each, wake.helps, each.plugin, pod, event.old, event.new, cluster)
                for each in asked
                for pod in pods
            )
        except PluginError:
            return True

    def _wakes(self, profile: str, plugin: str) -> tuple[Wake, ...] | None:
        """What a plugin registered for, None for everything. A group waits for what its plugins registered for."""
        key = (profile, plugin)
        if key not in self._registered:
            found = self._profiles[profile]
            enabled = found.group_plugins if plugin == GROUP else [each for each in found.all if each.name == plugin]
            self._registered[key] = _registered_by(enabled, plugin)
        return self._registered[key]


def _enabled(profile: Profile, plugin: str) -> EnabledPlugin[Any]:
    return next(each for each in profile.all if each.name == plugin)


def _registered_by(plugins: Iterable[EnabledPlugin[Any]], name: str) -> tuple[Wake, ...] | None:
    wakes: tuple[Wake, ...] = ()
    asked = False
    for enabled in plugins:
        if hasattr(enabled.plugin, "wakes_on"):
            asked = True
            try:
                wakes += tuple(call_list(enabled, enabled.plugin.wakes_on, Wake))
            except PluginError:
                return None
    if name == GROUP:
        return wakes  # a new member opens the gate in any case
    return _with_taints(wakes) if asked else None


def _with_taints(wakes: tuple[Wake, ...]) -> tuple[Wake, ...]:
    """To most pods a node is new when its first taints are removed, so NodeAdd implies UpdateNodeTaint."""
    of_nodes = {action for wake in wakes if wake.resource == "Node" for action in wake.actions}
    if "Add" not in of_nodes or of_nodes & {"UpdateNodeTaint", "Update", "*"}:
        return wakes
    return (*wakes, Wake("Node", ("UpdateNodeTaint",)))
