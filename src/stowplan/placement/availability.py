"""Taints on clusters that cannot be reached or do not work, so that placements deselect them.

    Available is True, and the lease is renewed ───────────► neither taint
    Available is False ────────────────────────────────────► unavailable
    Available is Unknown or missing, or the lease expired ─► unreachable
    neither a condition nor a lease ───────────────────────► left as it is

This is what Open Cluster Management's hub does, but for the last line: of a cluster that no agent speaks for nothing is
known, so its taints are the affair of whoever registered it. A lease has expired when it was not renewed for five times
the cluster's leaseDurationSeconds. Renewals are timed by our own clock, and after a start every cluster has at least
one duration to renew its lease. Without a lease the condition alone decides. Terminating clusters and all other taints
are left as they are.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import msgspec

from stowplan.framework.sent_actions import SentActions
from stowplan.objects.actions import Action, Patch
from stowplan.objects.changes import Change, Gone, Result
from stowplan.objects.clusters import NO_SELECT, ClusterCondition, ClusterTaint, ManagedCluster
from stowplan.objects.leases import Lease
from stowplan.placement.queue import Deadlines

LEASE_NAME = "managed-cluster-lease"  # in the cluster's namespace, renewed by its agent
AVAILABLE = "ManagedClusterConditionAvailable"
UNREACHABLE = "cluster.open-cluster-management.io/unreachable"
UNAVAILABLE = "cluster.open-cluster-management.io/unavailable"
DURATION = 60  # seconds, if a cluster does not say
DURATIONS = 5
RETRY_AFTER = 5.0  # seconds after a write that failed
CHECK_AFTER = 1.0  # seconds after a write that succeeded, by which the API server should have shown it


class Availability:
    """Like PlacementScheduler it has no clock and no I/O: `handle` and `step` return actions."""

    def __init__(self, *, answer_within: float = 30.0) -> None:
        self.clusters: dict[str, ManagedCluster] = {}
        self._renewed: dict[str, tuple[float, float]] = {}  # the lease's renewTime, and when we saw it
        self._first: dict[str, float] = {}  # when a lease was first seen
        self._due: dict[str, None] = {}
        self._deadlines = Deadlines()  # when a cluster is checked although nothing changed
        self._sent = SentActions[str](answer_within)  # each for the name of a cluster
        self._writing: set[str] = set()

    # -- changes come in

    def handle(self, change: Change | Result, now: float) -> list[Action]:
        if isinstance(change, Result):
            self._answered(change, now)
            return []
        found, gone = change.object, isinstance(change, Gone)
        if isinstance(found, ManagedCluster):
            self._put_cluster(found, gone)
        elif isinstance(found, Lease) and found.name == LEASE_NAME:
            self._put_lease(found, gone, now)
        return []

    def is_upkeep(self, action: Action) -> bool:  # noqa: ARG002
        return False

    def _put_cluster(self, cluster: ManagedCluster, gone: bool) -> None:
        if gone:
            self.clusters.pop(cluster.name, None)
            self._deadlines.cancel(cluster.name)
        else:
            self.clusters[cluster.name] = cluster
            self._due[cluster.name] = None

    def _put_lease(self, lease: Lease, gone: bool, now: float) -> None:
        name = lease.namespace
        if gone:
            self._renewed.pop(name, None)
            self._first.pop(name, None)
        elif name not in self._renewed or self._renewed[name][0] != lease.renewed:
            new = name not in self._renewed
            self._first.setdefault(name, now)
            seen = min(lease.renewed, now) if new else now
            expired = now >= self._valid_until(name)
            self._renewed[name] = lease.renewed, seen
            if not new and not expired:
                return  # a renewal in time changes nothing
        self._due[name] = None

    def _valid_until(self, name: str) -> float:
        """Return when the cluster's lease expires; infinity if it has none."""
        if name not in self._renewed:
            return math.inf
        cluster = self.clusters.get(name)
        duration = (cluster.spec.lease_duration_seconds if cluster is not None else 0) or DURATION
        return max(self._renewed[name][1] + DURATIONS * duration, self._first[name] + duration)

    # -- time passes

    def next_deadline(self) -> float | None:
        if self._due:
            return 0.0
        moments = [self._sent.next_deadline(), self._deadlines.next()]
        return min((each for each in moments if each is not None), default=None)

    def step(self, now: float) -> list[Action]:
        """Give up writes that are overdue, and check one cluster."""
        while (overdue := self._sent.overdue(now)) is not None:
            self._answered(overdue, now)
        while (name := self._deadlines.pop(now)) is not None:
            self._due[name] = None
        if not self._due:
            return []
        name = next(iter(self._due))
        del self._due[name]
        return self._check(name, now)

    def _check(self, name: str, now: float) -> list[Action]:
        """Return the patch of the cluster's taints, if they are not as they should be."""
        cluster = self.clusters.get(name)
        if cluster is None or cluster.terminating or name in self._writing:
            return []
        if name not in self._renewed and _available(cluster) is None:
            return []
        valid_until = self._valid_until(name)
        if now < valid_until:
            self._deadlines.set_earlier(name, valid_until)
        taints = tainted(cluster, _wanted_taint(cluster, expired=now >= valid_until), now)
        if taints == cluster.spec.taints:
            return []
        self._writing.add(name)
        body = {
            "metadata": {"resourceVersion": cluster.metadata.resource_version},
            "spec": {"taints": [_document(each) for each in taints]},
        }
        return [self._sent.send(Patch(kind="ManagedCluster", key=name, body=body), now, name)]

    def _answered(self, result: Result, now: float) -> None:
        name = self._sent.pop(result.id)
        if name is not None:
            self._writing.discard(name)
            self._deadlines.set_earlier(name, now + (CHECK_AFTER if result.succeeded else RETRY_AFTER))


def _available(cluster: ManagedCluster) -> ClusterCondition | None:
    return next((each for each in cluster.status.conditions if each.type == AVAILABLE), None)


def _wanted_taint(cluster: ManagedCluster, *, expired: bool) -> str:
    """Return the key of the taint that the cluster should have; "" for none."""
    found = _available(cluster)
    if expired or found is None or found.status not in ("True", "False"):
        return UNREACHABLE
    return UNAVAILABLE if found.status == "False" else ""


def tainted(cluster: ManagedCluster, wanted: str, now: float) -> tuple[ClusterTaint, ...]:
    """Return the cluster's taints, of our two only the wanted one. A taint that is there already stays as it is."""
    kept = tuple(
        each for each in cluster.spec.taints if each.key not in (UNREACHABLE, UNAVAILABLE) or each.key == wanted
    )
    if not wanted or any(each.key == wanted for each in kept):
        return kept
    added = datetime.fromtimestamp(int(now), UTC)
    return (*kept, ClusterTaint(wanted, NO_SELECT, time_added=added))


def _document(taint: ClusterTaint) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(taint)
    if taint.time_added is not None:
        found["timeAdded"] = taint.time_added.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return found
