"""What `stowplan explain` says of the pods on a stage, whose API server is read without a connection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stowplan.apps import cluster_objects
from stowplan.apps.demo.stage import NodeStage
from stowplan.apps.explain.answers import Answer
from stowplan.apps.explain.pod_explainer import PodExplainer, SearchSettings
from stowplan.apps.explain.schedulers import Schedulers
from stowplan.apps.explain.snapshot import Snapshot
from stowplan.apps.explain.sources import OWNERS
from stowplan.apps.explain.targets import WorkloadOwners
from stowplan.apps.profile_loader import OWN_NAME
from stowplan.kube.resources import RESOURCES, ApiResource
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import ReplicaSet

KINDS = ("Node", "Pod", "ReplicaSet", "PriorityClass", "Namespace")


def explained(stage: NodeStage, pod: Pod) -> Answer:
    """Return the answer of `stowplan explain POD`."""
    source = StageSource(stage)
    objects = source.objects(KINDS, {})
    snapshot = Snapshot(objects, stage.profiles)
    schedulers = Schedulers(source.leases(), snapshot.pods.values(), stage.profiles, OWN_NAME, source.now())
    owners = WorkloadOwners(each for each in objects if isinstance(each, ReplicaSet))
    return PodExplainer(snapshot, source, owners, schedulers, SearchSettings()).answer(snapshot.pods[pod.key])


class StageSource:
    """A source of objects (`explain.sources.ObjectSource`): the API server of a stage."""

    namespace = "default"
    is_live = True

    def __init__(self, stage: NodeStage) -> None:
        self.unseen: list[str] = []
        self._stage = stage

    def objects(self, wanted: Iterable[str], brought: Mapping[str, ApiResource]) -> list[Object]:
        documents = [("", each) for kind in wanted for each in self._documents(RESOURCES[kind])]
        return cluster_objects.from_documents(documents, brought)[0]

    def _documents(self, resource: ApiResource) -> list[dict[str, Any]]:
        return self._stage.documents(f"{resource.plural}.{resource.group}" if resource.group else resource.plural)

    def document(self, kind: str, key: str) -> Mapping[str, Any] | None:
        resource = OWNERS.get(kind) or RESOURCES[kind]
        found = (each for each in self._documents(resource) if _key(each) == key)
        return next(found, None)

    def leases(self) -> list[Mapping[str, Any]] | None:
        return None  # its scheduler holds none

    def events(self, key: str) -> list[Mapping[str, Any]]:  # noqa: ARG002
        return []  # the last condition says the same

    def limit_ranges(self, namespace: str) -> list[Mapping[str, Any]]:  # noqa: ARG002
        return []

    def quotas(self, namespace: str) -> list[Mapping[str, Any]]:  # noqa: ARG002
        return []

    def workloads(self, namespace: str) -> list[tuple[str, Mapping[str, Any]]]:  # noqa: ARG002
        return []

    def now(self) -> float:
        return self._stage.now


def _key(document: Mapping[str, Any]) -> str:
    metadata = document["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])
