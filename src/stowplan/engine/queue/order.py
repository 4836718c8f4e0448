"""The order of the active queue, by the queueSort plugin of the first profile.

A plugin may order by the pod alone (`sort_key`), know groups (`group_key`), or see the cluster (`cluster_key`). With
the last, keys go stale when something changes in the cluster, and the queue asks for new ones.

A unit for which the plugin raises, or whose key cannot be compared with others' (`sort_keys`), comes after all others,
and its attempt fails with what is wrong. Behind even these are units for which a plugin hung before: whatever they do
to the scheduler, all others had their turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeAlias

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine.groups.groups import Groups
from stowplan.engine.queue.cluster_events import ClusterEvent, concerns
from stowplan.engine.queue.sort_keys import SortKeys
from stowplan.engine.unit import Unit
from stowplan.framework.interfaces import QueueEntry, Wake
from stowplan.framework.plugin_calls import call, call_list
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import ObjectMeta
from stowplan.objects.pod_parts import PodSpec
from stowplan.objects.pods import Pod
from stowplan.objects.texts import shortened

Key: TypeAlias = tuple[int, Any]
UNUSABLE, HUNG = 2, 3  # the first part of a key; those of usable keys are smaller
PLAIN = Pod(  # the measure of keys: what every pod has once the API server took it
    metadata=ObjectMeta(
        name="plain", namespace="default", uid="plain", creation_timestamp=datetime.fromtimestamp(0, UTC)
    ),
    spec=PodSpec(priority=0),
)


class QueueOrder:
    def __init__(self, profiles: Mapping[str, Profile], state: ClusterState, groups: Groups) -> None:
        self._profiles, self._state, self._groups = profiles, state, groups
        self.clear()

    def clear(self) -> None:
        """The profiles have other plugins now."""
        self._enabled: EnabledPlugin[Any] = next(iter(self._profiles.values())).queue_sort
        self._sort: Any = self._enabled.plugin
        self.ages_after = float(getattr(self._sort, "ages_after", 0.0))
        self._by_cluster = hasattr(self._sort, "cluster_key")
        self._by_group = self._by_cluster or hasattr(self._sort, "group_key")
        self.reordered_by = self._events()  # the cluster events after which keys are stale
        self._keys: SortKeys | None = None  # made for the first unit: the plugin may look at the cluster

    def _events(self) -> tuple[Wake, ...]:
        if not self._by_cluster or not hasattr(self._sort, "reorders_on"):
            return ()
        try:
            return tuple(call_list(self._enabled, self._sort.reorders_on, Wake))
        except PluginError:
            return (Wake("*", ("*",)),)

    def changes_with(self, event: ClusterEvent) -> bool:
        """True if keys are stale after this event."""
        return any(concerns(wake, event) for wake in self.reordered_by)

    def key(self, unit: Unit) -> Key:
        """The unit's place. A unit for which the plugin has no usable key comes after all others."""
        if unit.queued.hung:
            return HUNG, unit.queued.timestamp
        try:
            return (self._keys or self._measured()).usable(self._key(unit))
        except PluginError as error:
            unit.broken = unit.broken or str(error)
        except Exception as error:  # also a comparison of types that are the plugin's own
            problem = PluginError(self._enabled.name, self._method, shortened(str(error)))
            unit.broken = unit.broken or str(problem)
        return UNUSABLE, unit.queued.timestamp

    def _measured(self) -> SortKeys:
        self._keys = SortKeys()
        with suppress(PluginError):
            self._keys.measure(self._ask(QueueEntry(PLAIN, 0.0, created=PLAIN.metadata.creation_timestamp)))
        return self._keys

    @property
    def _method(self) -> str:
        return "cluster_key" if self._by_cluster else "group_key" if self._by_group else "sort_key"

    def _key(self, unit: Unit) -> Any:
        if self._by_group:
            return self._ask(self._entry(unit))
        pod = unit.lead if unit.group else next(iter(unit.pods.values()))
        return call(self._enabled, self._sort.sort_key, pod, unit.queued.timestamp)

    def _ask(self, entry: QueueEntry) -> Any:
        if self._by_cluster:
            return call(self._enabled, self._sort.cluster_key, entry, Cluster(self._state))
        if self._by_group:
            return call(self._enabled, self._sort.group_key, entry)
        return call(self._enabled, self._sort.sort_key, entry.pod, entry.queued_at)

    def _entry(self, unit: Unit) -> QueueEntry:
        lead, since = unit.lead, unit.queued.timestamp
        found = self._groups.get(unit.group) if unit.group else None
        if found is None:
            return QueueEntry(lead, since, created=lead.metadata.creation_timestamp)
        aged = unit.queued.aged and not found.satisfied  # members beyond the minimum are not urgent
        return QueueEntry(lead, since, unit.group, found.created, found.left_behind() is not None, aged)
