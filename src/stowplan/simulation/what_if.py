"""What would happen if a cluster were changed: a run that settles, is changed, and settles again.

    what_if = WhatIfRun(cluster, [Drain(at=0, nodes=("n1",))], profiles)
    what_if.run()
    what_if.effects                 # which pods moved, started, wait now, are lost

First everything happens that would happen anyway: pods that wait get nodes, if there are any for them. What is
different afterwards is due to the changes. Pods that run go on running: no Job ends, and no CronJob starts one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence

import msgspec

from stowplan.framework.profile import Profile
from stowplan.kube.resources import ApiResource
from stowplan.objects.pods import Pod
from stowplan.simulation.administered_cluster import AdministeredCluster, Begin, Drain
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.missing_owners import missing_owners
from stowplan.simulation.node_fill import NodeFill, fills_of
from stowplan.simulation.pod_effects import Effects, PodsThen, effects
from stowplan.simulation.run import Progress, Simulation
from stowplan.simulation.settings import QUIET, RunSettings
from stowplan.simulation.stream_events import Document, StreamEvent

SETTLED = QUIET  # seconds after which the cluster has settled
SETTLING = 2 * QUIET  # seconds after the changes; budgets may take longer
EACH_EVICTION = 10.0  # seconds, if budgets let one pod go after the other
ENDLESS = 10.0**9  # seconds that Jobs run
LEFT_OUT = ("CronJob", "Event", "Lease")


def settings_for(changes: Collection[StreamEvent], pods: int, seed: int = 0) -> RunSettings:
    """Return settings with enough time for the changes. `pods`: how many there are on nodes that are drained."""
    draining = EACH_EVICTION * pods if any(isinstance(each, Drain) for each in changes) else 0.0
    return RunSettings(seed=seed, until=SETTLED + SETTLING + draining, job_seconds=ENDLESS, sample_seconds=0)


def loaded(
    pairs: Sequence[tuple[str, Document]], settings: RunSettings, problems: InputProblems
) -> AdministeredCluster:
    """Return a cluster with these objects. What is being deleted is gone already."""
    cluster = AdministeredCluster(settings)
    kept = [(file, each) for file, each in pairs if each["kind"] not in LEFT_OUT and not _is_going(each)]
    going = {_metadata(each).get("name") for _, each in pairs if each["kind"] == "Namespace" and _is_going(each)}
    kept = [pair for pair in kept if not going or _metadata(pair[1]).get("namespace") not in going]
    cluster.daemons = set(_daemons(kept))
    made = list(missing_owners(kept))
    cluster.made = len(made)
    cluster.load([*made, *kept], problems)
    return cluster


def _is_going(document: Document) -> bool:
    return bool(_metadata(document).get("deletionTimestamp"))


def _metadata(document: Document) -> Document:
    found = document.get("metadata")
    return found if isinstance(found, dict) else {}


def _daemons(pairs: Iterable[tuple[str, Document]]) -> Iterator[str]:
    """Yield the keys of pods that belong to a DaemonSet."""
    for _, document in pairs:
        if document["kind"] != "Pod":
            continue
        metadata = _metadata(document)
        owners = metadata.get("ownerReferences") or ()
        if any(isinstance(each, dict) and each.get("kind") == "DaemonSet" for each in owners):
            yield f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"


class WhatIfRun:
    """`cluster`: as `loaded` made it. `changes`: what happens, in order; `at` counts from when the cluster has settled.
    `policies`: by name, for PolicyChanges.
    """

    def __init__(
        self,
        cluster: AdministeredCluster,
        changes: Iterable[StreamEvent],
        profiles: Mapping[str, Profile],
        settings: RunSettings,
        *,
        policies: Mapping[str, Mapping[str, Profile]] | None = None,
        brought: Mapping[str, ApiResource] | None = None,
        problems: InputProblems | None = None,
    ) -> None:
        events = [Begin(at=SETTLED), *(msgspec.structs.replace(each, at=SETTLED + each.at) for each in changes)]
        self.cluster = cluster
        self.simulation = Simulation(
            cluster, events, profiles, settings, policies=policies, brought=brought, problems=problems
        )
        self._pods, self._sets = dict[str, Pod](), dict[str, str]()
        self._fills: dict[str, NodeFill] = {}
        cluster.on_begin = self._begin

    def _begin(self) -> None:
        """Remember the cluster as it is without the changes."""
        self._pods, self._sets = dict(self.simulation.engine.pods), self._owners_of_sets()
        self._fills = fills_of(self.simulation.engine.state.table)

    def _owners_of_sets(self) -> dict[str, str]:
        """Return the Deployment of each ReplicaSet that has one, both by key."""
        items = self.cluster.api.store.collection("replicasets.apps").items
        found = dict[str, str]()
        for key, stored in items.items():
            metadata = stored.document["metadata"]
            for owner in metadata.get("ownerReferences", ()):
                if owner.get("controller") and owner["kind"] == "Deployment":
                    found[key] = f"{metadata['namespace']}/{owner['name']}"
        return found

    def run(self, on_moment: Progress | Callable[[Simulation], None] = lambda _: None) -> None:
        """Run to the end. Raises ConfigError for input, or a change, that the API server refuses."""
        self.simulation.run(on_moment)

    @property
    def effects(self) -> Effects:
        """What the changes did to pods. The run must have ended."""
        after = self.simulation.engine.pods
        sets = {**self._sets, **self._owners_of_sets()}
        return effects(
            PodsThen(self._pods), PodsThen(after), sets, self.cluster.gone, self._nodes, self.cluster.daemons
        )

    @property
    def _nodes(self) -> Container[str]:
        return self.cluster.api.store.collection("nodes").items.keys()

    @property
    def fills(self) -> tuple[dict[str, NodeFill], dict[str, NodeFill]]:
        """How full each node was without the changes, and is with them."""
        return self._fills, fills_of(self.simulation.engine.state.table)
