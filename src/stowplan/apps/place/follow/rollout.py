"""Which cluster has to do what now: have the workload, lose it, or keep it until the others have it.

    chosen                                        ─► have
    not chosen, and the choice is final           ─► lose, once every chosen cluster has the workload
    not chosen, and the choice is not final       ─► wait

A chosen cluster that does not answer (or that we have no kubeconfig of) delays removals for at most `hold` seconds, and
for as long as no other chosen cluster has the workload: the last copy that runs is never deleted for one that does not.
If no cluster is chosen at all, the workload is removed at once.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum

from stowplan.apps.place.follow.decisions import NOTHING_SEEN, ClusterChoice


class Duty(Enum):
    HAVE = "have"
    LOSE = "lose"
    WAIT = "wait"


class Rollout:
    def __init__(self, hold: float) -> None:
        self.choice = NOTHING_SEEN
        self._hold, self._since = hold, 0.0
        self._settled: set[str] = set()  # the chosen clusters that have the workload, as far as we know

    def choose(self, choice: ClusterChoice, now: float) -> bool:
        """Go by this choice from now on. Return whether it is another one."""
        if choice == self.choice:
            return False
        if choice.clusters != self.choice.clusters:
            self._since = now
        self.choice = choice
        self._settled &= choice.clusters
        return True

    def note(self, cluster: str, *, has_it: bool) -> bool:
        """Note whether a cluster has the workload. Return whether that is news."""
        known = cluster in self._settled
        if has_it and cluster in self.choice.clusters:
            self._settled.add(cluster)
        else:
            self._settled.discard(cluster)
        return known != (cluster in self._settled)

    def forget(self) -> None:
        """The manifest has changed: no cluster has the new workload yet."""
        self._settled.clear()

    @property
    def settled(self) -> Collection[str]:
        return self._settled

    def duty(self, cluster: str, now: float) -> Duty:
        if cluster in self.choice.clusters:
            return Duty.HAVE
        return Duty.LOSE if self.choice.final and self._others_have_it(now) else Duty.WAIT

    def _others_have_it(self, now: float) -> bool:
        if self._settled == self.choice.clusters:
            return True
        return bool(self._settled) and now - self._since >= self._hold
