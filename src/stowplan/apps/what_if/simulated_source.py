"""A simulated cluster as a source of explanations: what its API server and its scheduler have at the end of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stowplan.apps.explain.snapshot import Snapshot
from stowplan.apps.explain.sources import LISTED, OWNERS, Document
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.profile import Profile
from stowplan.kube.resources import RESOURCES, ApiResource
from stowplan.objects import kinds
from stowplan.objects.meta import Object
from stowplan.simulation.simulated_cluster import SimulatedCluster


class SimulatedSource:
    """Nobody renews leases in a simulation, and nothing is kept of events."""

    is_live = False

    def __init__(self, cluster: SimulatedCluster, namespace: str) -> None:
        self.namespace = namespace
        self.unseen: list[str] = []
        self._store = cluster.api.store

    def objects(self, wanted: Iterable[str], brought: Mapping[str, ApiResource]) -> list[Object]:
        raise NotImplementedError("the scheduler of the run has them")

    def document(self, kind: str, key: str) -> Document | None:
        resource = OWNERS.get(kind) or RESOURCES.get(kind)
        return None if resource is None else self._store.get(_collection(resource), key)

    def leases(self) -> list[Document] | None:
        return None

    def events(self, key: str) -> list[Document]:  # noqa: ARG002
        return []

    def limit_ranges(self, namespace: str) -> list[Document]:
        return [each.document for each in self._store.all("limitranges", namespace)]

    def quotas(self, namespace: str) -> list[Document]:
        return [each.document for each in self._store.all("resourcequotas", namespace)]

    def workloads(self, namespace: str) -> list[tuple[str, Document]]:
        found = ((kind, self._store.all(_collection(OWNERS[kind]), namespace)) for kind in LISTED)
        return [(kind, each.document) for kind, listed in found for each in listed]

    def now(self) -> float:
        """No time: how long a pod waits in a simulation says nothing."""
        return 0.0


def _collection(resource: ApiResource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def snapshot_of(engine: Scheduler, profiles: dict[str, Profile]) -> Snapshot:
    """Return the cluster that a scheduler knows. Nothing is copied: it is asked about its own pods."""
    found = Snapshot((), profiles)
    found.engine, found.state = engine, engine.state
    found.pods = {pod.key: pod for pod in engine.pods.values()}
    nodes = (each for each in engine.state.table.nodes if each is not None)
    others = (each for kind in kinds.KINDS.values() for each in engine.state.store.every(kind).values())
    found.objects = {(type(each).__name__, each.key): each for each in (*nodes, *others, *found.pods.values())}
    return found
