"""Which clusters cannot be reached or do not work, as taints on them: placements leave such clusters by themselves.

    Available is True, and the lease is renewed ────────► neither taint
    Available is False ─────────────────────────────────► unavailable
    Available is Unknown or missing, or the lease stopped ► unreachable

As Open Cluster Management's hub does it. A lease has stopped when nothing was heard of it for five times the cluster's
leaseDurationSeconds; that is measured by our own clock once we have seen it renewed, and after a start every cluster
has at least one duration to show that it is alive. A cluster without a lease goes by its condition alone. Clusters on
their way out are left as they are, and so are all taints but these two.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from stowplan.framework.pending_actions import PendingActions
from stowplan.objects.actions import Action, Patch
from stowplan.objects.changes import Change, Gone, Result
from stowplan.objects.clusters import NO_SELECT, ClusterTaint, ManagedCluster
from stowplan.objects.leases import Lease

LEASE_NAME = "managed-cluster-lease"  # in the cluster's namespace, kept by its agent
AVAILABLE = "ManagedClusterConditionAvailable"
UNREACHABLE = "cluster.open-cluster-management.io/unreachable"
UNAVAILABLE = "cluster.open-cluster-management.io/unavailable"
DURATION = 60  # seconds, where a cluster does not say
DURATIONS = 5
AGAIN_AFTER = 5.0  # seconds until a write that failed is tried again
SHOWN_AFTER = 1.0  # seconds until the server ought to have shown one that did not


class Availability:
    def __init__(self, *, answer_within: float = 30.0) -> None:
        self.clusters: dict[str, ManagedCluster] = {}
        self._renewed: dict[str, tuple[float, float]] = {}  # the lease's own word, and until when that counts
        self._first: dict[str, float] = {}  # when a lease was first seen
        self._due: dict[str, None] = {}
        self._later: list[tuple[float, str]] = []
        self._armed: dict[str, float] = {}  # when each is looked at next although nothing happened
        self._outbox = PendingActions(answer_within)
        self._writing: set[str] = set()

    def handle(self, change: Change | Result, now: float) -> list[Action]:
        if isinstance(change, Result):
            return self._outbox.numbered(list(self._outbox.answered(change, now)), now)
        found, gone = change.object, isinstance(change, Gone)
        if isinstance(found, ManagedCluster):
            self._cluster(found, gone)
        elif isinstance(found, Lease) and found.name == LEASE_NAME:
            self._lease(found, gone, now)
        return []

    def is_upkeep(self, action: Action) -> bool:  # noqa: ARG002
        return False

    def _cluster(self, cluster: ManagedCluster, gone: bool) -> None:
        if gone:
            self.clusters.pop(cluster.name, None)
            self._armed.pop(cluster.name, None)
        else:
            self.clusters[cluster.name] = cluster
            self._due[cluster.name] = None

    def _lease(self, lease: Lease, gone: bool, now: float) -> None:
        name = lease.namespace
        if gone:
            self._renewed.pop(name, None)
            self._first.pop(name, None)
        elif name not in self._renewed or self._renewed[name][0] != lease.renewed:
            new = name not in self._renewed
            self._first.setdefault(name, now)
            heard = min(lease.renewed, now) if new else now
            silent = now >= self._until(name)
            self._renewed[name] = lease.renewed, heard
            if not new and not silent:
                return  # as it should be
        self._due[name] = None

    def _until(self, name: str) -> float:
        """Up to when the cluster counts as alive by its lease; for ever, if it has none."""
        if name not in self._renewed:
            return math.inf
        cluster = self.clusters.get(name)
        duration = (cluster.spec.lease_duration_seconds if cluster is not None else 0) or DURATION
        return max(self._renewed[name][1] + DURATIONS * duration, self._first[name] + duration)

    # -- time

    def next_deadline(self) -> float | None:
        if self._due:
            return 0.0
        self._drop_void()
        moments = [self._outbox.next_deadline(), self._later[0][0] if self._later else None]
        return min((each for each in moments if each is not None), default=None)

    def step(self, now: float) -> list[Action]:
        """Settle what is overdue, and look at one cluster."""
        actions = list(self._outbox.expire(now))
        self._drop_void()
        while self._later and self._later[0][0] <= now:
            _, name = heapq.heappop(self._later)
            del self._armed[name]
            self._due[name] = None
            self._drop_void()
        if self._due:
            name = next(iter(self._due))
            del self._due[name]
            actions += self._look(name, now)
        return self._outbox.numbered(actions, now)

    def _arm(self, name: str, at: float) -> None:
        if at < self._armed.get(name, math.inf):
            self._armed[name] = at
            heapq.heappush(self._later, (at, name))

    def _drop_void(self) -> None:
        while self._later and self._armed.get(self._later[0][1]) != self._later[0][0]:
            heapq.heappop(self._later)

    def _look(self, name: str, now: float) -> Iterator[Any]:
        cluster = self.clusters.get(name)
        if cluster is None or cluster.terminating or name in self._writing:
            return
        until = self._until(name)
        if now < until:
            self._arm(name, until)
        taints = tainted(cluster, self._state(cluster, now >= until), now)
        if taints != cluster.spec.taints:
            self._writing.add(name)
            body = {
                "metadata": {"resourceVersion": cluster.metadata.resource_version},
                "spec": {"taints": [_written(each) for each in taints]},
            }
            patch = Patch(kind="ManagedCluster", key=name, body=body)
            yield self._outbox.send(patch, now, partial(self._answered, name))

    def _answered(self, name: str, result: Result, now: float) -> Iterator[Any]:
        self._writing.discard(name)
        self._arm(name, now + (SHOWN_AFTER if result.fine else AGAIN_AFTER))
        return iter(())

    @staticmethod
    def _state(cluster: ManagedCluster, silent: bool) -> str:
        """The taint that it ought to have, or none."""
        found = next((each for each in cluster.status.conditions if each.type == AVAILABLE), None)
        if silent or found is None or found.status not in ("True", "False"):
            return UNREACHABLE
        return UNAVAILABLE if found.status == "False" else ""


def tainted(cluster: ManagedCluster, wanted: str, now: float) -> tuple[ClusterTaint, ...]:
    """The cluster's taints, of ours just the one that is wanted; one that is there already stays as it is."""
    kept = tuple(
        each for each in cluster.spec.taints if each.key not in (UNREACHABLE, UNAVAILABLE) or each.key == wanted
    )
    if not wanted or any(each.key == wanted for each in kept):
        return kept
    added = datetime.fromtimestamp(int(now), UTC)
    return (*kept, ClusterTaint(wanted, NO_SELECT, time_added=added))


def _written(taint: ClusterTaint) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(taint)
    if taint.time_added is not None:
        found["timeAdded"] = taint.time_added.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return found
