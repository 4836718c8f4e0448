"""When placements are looked at again although nothing happened: each at a moment of its own, and all that go by a
score when the first of its values runs out.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator

import numpy as np

from stowplan.columns.fleet.clusters import Fleet
from stowplan.objects.clusters import ManagedCluster


class PlacementDeadlines:
    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._wake_at: dict[str, float] = {}
        self._wakes: list[tuple[float, str]] = []
        self._armed: dict[str, float] = {}
        self._expiries: list[tuple[float, str]] = []
        self._looked: dict[str, float] = {}  # up to when the scores of a resource were seen to be valid

    def next_deadline(self) -> float | None:
        self._drop_void()
        return min((queue[0][0] for queue in (self._wakes, self._expiries) if queue), default=None)

    # -- placements

    def wake(self, key: str, at: float) -> None:
        """Instead of what was agreed upon before."""
        self._wake_at[key] = at
        heapq.heappush(self._wakes, (at, key))

    def forget(self, key: str) -> None:
        self._wake_at.pop(key, None)

    def due(self, now: float) -> Iterator[str]:
        """The placements whose moment has come."""
        self._drop_void()
        while self._wakes and self._wakes[0][0] <= now:
            _, key = heapq.heappop(self._wakes)
            del self._wake_at[key]
            yield key
            self._drop_void()

    def _drop_void(self) -> None:
        for queue, agreed in ((self._wakes, self._wake_at), (self._expiries, self._armed)):
            while queue and agreed.get(queue[0][1]) != queue[0][0]:
                heapq.heappop(queue)

    # -- scores

    def watches(self, resource: str) -> bool:
        return resource in self._looked

    def watch(self, resource: str, now: float) -> None:
        """From now on somebody goes by it."""
        self._looked[resource] = now
        self._arm(resource, now)

    def changed(self, resource: str, until: float) -> None:
        """A value is valid until then. An earlier moment is awaited instead; a later one is seen when that has come."""
        at = math.nextafter(until, math.inf)
        if self.watches(resource) and math.isfinite(until) and at < self._armed.get(resource, math.inf):
            self._await(resource, at)

    def _arm(self, resource: str, now: float) -> None:
        until = self._fleet.scores(resource).until
        later = until[(until >= now) & np.isfinite(until)]
        self._armed.pop(resource, None)
        if len(later):
            self._await(resource, math.nextafter(float(later.min()), math.inf))

    def _await(self, resource: str, at: float) -> None:
        self._armed[resource] = at
        heapq.heappush(self._expiries, (at, resource))

    def expired(self, now: float) -> Iterator[tuple[str, list[ManagedCluster]]]:
        """The resources of which values have run out, and whose."""
        self._drop_void()
        while self._expiries and self._expiries[0][0] <= now:
            _, resource = heapq.heappop(self._expiries)
            until, since = self._fleet.scores(resource).until, self._looked[resource]
            late = np.flatnonzero((until < now) & (until >= since)).tolist()
            self._looked[resource] = now
            self._arm(resource, now)
            clusters = self._fleet.clusters
            yield resource, [each for row in late if (each := clusters[row]) is not None]
            self._drop_void()
