"""Trying changes by a rehearsal of a pod, which reserves what it needs, room for executors, say."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.columns.nodes.views import Cluster
from stowplan.diagnosis.changed_cluster import ChangedCluster
from stowplan.diagnosis.edits import Edit
from stowplan.engine.attempt.placer import Placer
from stowplan.engine.unit import Unit
from stowplan.framework.decision import RejectPod
from stowplan.framework.plugin_calls import call_optional
from stowplan.objects.errors import ConfigError, PluginError
from stowplan.objects.pods import Pod
from stowplan.objects.priority import with_priority
from stowplan.objects.workloads import PriorityClass

SEEDS = (0, 1, 2)  # of draws among equal nodes, for the last proof


class Rehearsing(ChangedCluster):
    """One member is rehearsed. A group is another sort of rehearsal (`groups/trying`)."""

    @property
    def waiting(self) -> list[Pod]:
        """The pods that get a node, or do not."""
        return list(self.members.values())

    def where(self, edits: Sequence[Edit], *, seed: int = 0) -> dict[str, str] | None:
        """Return the node of each pod, by key, with these edits made; None if the pods would not run."""
        try:
            with self.changed(edits) as members:
                (pod,) = members.values()
                return self._where(self.classed(pod), seed)
        except (ConfigError, LookupError, ValueError, PluginError):
            return None

    def _where(self, pod: Pod, seed: int) -> dict[str, str] | None:
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None:
            return None
        for enabled in profile.pre_enqueue:
            cluster = Cluster(self.state)
            if call_optional(enabled, enabled.plugin.pre_enqueue, RejectPod, pod, cluster) is not None:
                return None
        unit = Unit([pod], pod.scheduler_name, 0.0)
        outcome = Placer(self.state, np.random.default_rng(seed)).rehearse(unit, profile, 1)
        return {each.pod.key: each.node_name for each in outcome.assumed_pods} if outcome.whole else None

    def runs(self, edits: Sequence[Edit]) -> bool:
        """True if the pods would run, without evictions."""
        return self.where(edits) is not None

    def surely_runs(self, edits: Sequence[Edit]) -> bool:
        """True if they would run, whichever of equal nodes are drawn."""
        return all(self.where(edits, seed=seed) is not None for seed in SEEDS)

    def classed(self, pod: Pod) -> Pod:
        """The pod with the priority of its class, where no admission plugin has set it."""
        return pod if pod.spec.priority is not None else with_priority(pod, self.state.store.every(PriorityClass))
