"""Who serves a scheduler name: which program renews its lease, or has been seen at work.

    lease                  renewed                 not renewed            absent, or not to be read
    kube-scheduler         serves default-scheduler  stopped                unknown: it may run without a lease
    stowplan (or that of   serves the profiles     stopped                nobody, unless a pod shows its work
      the configuration)     of the configuration
    the name itself        serves it               stopped                nobody, unless a pod shows its work

A pod shows the work of its scheduler if it has a node, or the condition that a scheduler writes (PodScheduled=False). A
mirror pod of a kubelet shows nothing. If it was created after a lease ran out, somebody works without that lease.
For the profiles that are known here, and without the right to read leases, nothing is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stowplan.apps.explain.sources import moment
from stowplan.apps.explain.texts import ago
from stowplan.apps.leader_election import KUBE_SCHEDULER, is_stowplan
from stowplan.objects.pods import Pod

DEFAULT = "default-scheduler"
MIRROR = "kubernetes.io/config.mirror"
GATED = "SchedulingGated"  # the API server itself writes this condition
SERVES, STOPPED, NOBODY, UNKNOWN = "serves", "stopped", "nobody", "unknown"


@dataclass(frozen=True)
class Serving:
    """Who serves a scheduler name.

    state    serves, stopped, nobody or unknown
    by       the program
    holder   the identity in its lease
    assumed  the profile that the pod is judged with, because that of its scheduler is not known here
    """

    name: str
    state: str
    by: str = ""
    holder: str = ""
    renewed: float | None = None  # seconds before now
    lasts: float = 15.0  # seconds that its lease lasts
    assumed: str = ""

    @property
    def absent(self) -> bool:
        """True if nobody will schedule the pod as things are."""
        return self.state in (STOPPED, NOBODY)

    @property
    def text(self) -> str:
        """One sentence; empty if nothing is known."""
        if self.assumed:
            who = f"{self.by} serves {self.name}" if self.state == SERVES else f"{self.name} is at work"
            held = f" ({self.holder})" if self.holder else ""
            return f"{who}{held}, and its profile is not known: judged with that of {self.assumed}, an assumption"
        if self.state == SERVES:
            return f"{self.by} serves {self.name}" + (f" ({self.holder})" if self.holder else "")
        if self.state == STOPPED:
            last = "" if self.renewed is None else f": {self.by} last renewed its lease {ago(self.renewed)} ago"
            return f"nobody serves {self.name}{last}"
        return f"nobody serves {self.name}" if self.state == NOBODY else ""


class Schedulers:
    """`leases`: of kube-system, None if they cannot be seen. `configured`: the names of the profiles known here."""

    def __init__(
        self,
        leases: Iterable[Mapping[str, Any]] | None,
        pods: Iterable[Pod],
        configured: Collection[str],
        own_lease: str,
        now: float,
    ) -> None:
        self._readable = leases is not None
        self._leases = {each.get("metadata", {}).get("name", ""): each.get("spec") or {} for each in leases or ()}
        self._seen: dict[str, float] = {}  # when the youngest pod that shows its work was created, by scheduler name
        for pod in filter(_shows_work, pods):
            created = moment(pod.metadata.creation_timestamp) or 0.0
            self._seen[pod.scheduler_name] = max(self._seen.get(pod.scheduler_name, 0.0), created)
        self._configured, self._own, self._now = configured, own_lease, now

    def of(self, name: str) -> Serving:
        stopped = None
        for lease in self._candidates(name):
            found = self._by_lease(name, lease)
            if found is not None and found.state == SERVES:
                return found
            stopped = stopped or found
        if stopped is not None and not self._works_since(stopped):
            return stopped
        if name in self._seen or name == DEFAULT or (name in self._configured and not self._readable):
            return Serving(name, UNKNOWN)
        return Serving(name, NOBODY)

    def _works_since(self, stopped: Serving) -> bool:
        """True if a pod that came after the lease ran out shows that somebody serves the name."""
        last = -math.inf if stopped.renewed is None else self._now - stopped.renewed + stopped.lasts
        return self._seen.get(stopped.name, -math.inf) > last

    def _candidates(self, name: str) -> list[str]:
        own = [self._own] if name in self._configured else []
        return [KUBE_SCHEDULER, *own] if name == DEFAULT or own else [name]

    def _by_lease(self, name: str, lease: str) -> Serving | None:
        """Return what a lease says of a name; None if there is no such lease, or it is about other names."""
        spec = self._leases.get(lease)
        if spec is None:
            return None
        holder = str(spec.get("holderIdentity") or "")
        ours = is_stowplan(holder)
        if lease == KUBE_SCHEDULER and name != DEFAULT and not ours:
            return None
        if lease == self._own != KUBE_SCHEDULER and name == DEFAULT and not holder:
            return None
        by = "Stowplan" if ours or lease == self._own else "kube-scheduler" if lease == KUBE_SCHEDULER else lease
        at = moment(spec.get("renewTime"))
        since = None if at is None else max(self._now - at, 0.0)
        lasts = float(spec.get("leaseDurationSeconds") or 15)
        fresh = since is not None and since < lasts and bool(holder)
        return Serving(name, SERVES if fresh else STOPPED, by, holder, since, lasts)


def _shows_work(pod: Pod) -> bool:
    if pod.node_name:
        return MIRROR not in pod.annotations
    condition = pod.condition("PodScheduled")
    return condition is not None and condition.reason != GATED
