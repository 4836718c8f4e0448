"""The order of the active queue, by the queueSort plugin of the first profile.

A plugin may order by the pod alone (`sort_key`), know groups (`group_key`), or see the cluster (`cluster_key`). With
the last, keys go stale when something changes in the cluster, and the queue asks for new ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine.groups.groups import Groups
from stowplan.engine.queue.cluster_events import ClusterEvent, concerns
from stowplan.engine.unit import Unit
from stowplan.framework.interfaces import QueueEntry, Wake
from stowplan.framework.profile import Profile

Key: TypeAlias = tuple[int, Any]


class QueueOrder:
    def __init__(self, profiles: Mapping[str, Profile], state: ClusterState, groups: Groups) -> None:
        self._profiles, self._state, self._groups = profiles, state, groups
        self.clear()

    def clear(self) -> None:
        """The profiles have other plugins now."""
        self._sort: Any = next(iter(self._profiles.values())).queue_sort.plugin
        self.ages_after = float(getattr(self._sort, "ages_after", 0.0))
        self._by_cluster = hasattr(self._sort, "cluster_key")
        self._by_group = self._by_cluster or hasattr(self._sort, "group_key")
        self.reordered_by = self._events()  # the cluster events after which keys are stale
        self._sample: Any = None  # a key that all others must be comparable with

    def _events(self) -> tuple[Wake, ...]:
        if not self._by_cluster or not hasattr(self._sort, "reorders_on"):
            return ()
        try:
            return tuple(self._sort.reorders_on())
        except Exception:
            return (Wake("*", ("*",)),)

    def changes_with(self, event: ClusterEvent) -> bool:
        """True if keys are stale after this event."""
        return any(concerns(wake, event) for wake in self.reordered_by)

    def key(self, unit: Unit) -> Key:
        """The unit's place. A unit for which the plugin has no usable key comes after all others."""
        try:
            key = self._key(unit)
            if self._sample is None:
                self._sample = key
            bool(key < self._sample), bool(self._sample < key)
        except Exception:
            return 1, unit.queued.timestamp
        return 0, key

    def _key(self, unit: Unit) -> Any:
        if not self._by_group:
            pod = unit.lead if unit.group else next(iter(unit.pods.values()))
            return self._sort.sort_key(pod, unit.queued.timestamp)
        entry = self._entry(unit)
        return self._sort.cluster_key(entry, Cluster(self._state)) if self._by_cluster else self._sort.group_key(entry)

    def _entry(self, unit: Unit) -> QueueEntry:
        lead, since = unit.lead, unit.queued.timestamp
        found = self._groups.get(unit.group) if unit.group else None
        if found is None:
            return QueueEntry(lead, since, created=lead.metadata.creation_timestamp)
        aged = unit.queued.aged and not found.satisfied  # members beyond the minimum are not urgent
        return QueueEntry(lead, since, unit.group, found.created, found.left_behind() is not None, aged)
