"""What an API server and its controllers would make of manifests: validated objects with defaults, and their pods.

The verbs and controllers of the embedded cluster do it, in memory. It knows what they read of the real cluster:
priority classes, storage classes, nodes (for DaemonSets), claims, and the LimitRanges and quotas of a namespace.
"""

from __future__ import annotations

import copy
import difflib
import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stowplan.apps.explain.plain_documents import checked
from stowplan.apps.explain.quotas import QuotaRefusal, Quotas
from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.api.verbs import Api
from stowplan.embedded.controllers.action_runner import ActionRunner
from stowplan.embedded.controllers.actions import Action, CreateDocument
from stowplan.embedded.controllers.controller_manager import ControllerManager
from stowplan.embedded.controllers.registry import workload_controllers
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.schema import typed
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.objects import kinds
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.priority import SYSTEM
from stowplan.objects.storage import PersistentVolumeClaim, StorageClass
from stowplan.objects.workloads import Namespace, PriorityClass

REPLICAS = {
    "Deployment": "replicas",
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "ReplicationController": "replicas",
    "Job": "parallelism",
}
WITH_PODS = ("Pod", "DaemonSet", *REPLICAS)
_READ = {
    PriorityClass: "priorityclasses.scheduling.k8s.io",
    StorageClass: "storageclasses.storage.k8s.io",
    Node: "nodes",
    PersistentVolumeClaim: "persistentvolumeclaims",
}
_PRIORITY_CLASSES = _READ[PriorityClass]
IN_EVERY_CLUSTER = ("default", "kube-system", "kube-public", "kube-node-lease")


@dataclass(frozen=True)
class Submission:
    """An object of a manifest, with its pods and what else its controller creates.

    missing_class   the PriorityClass without which the API server refuses its pods; they are here without it
    refused         pods that a quota refuses, by key; they are among the objects
    quotas          what the quotas admit after this object
    replicas        how many pods are asked about, if that is not what the manifest says
    """

    kind: str
    key: str
    file: str
    document: Document
    objects: tuple[Object, ...] = ()
    missing_class: str = ""
    refused: Mapping[str, QuotaRefusal] = field(default_factory=dict)
    quotas: Quotas = field(default_factory=Quotas)
    replicas: int | None = None

    @property
    def pods(self) -> list[Pod]:
        return [each for each in self.objects if isinstance(each, Pod)]


class Admission:
    def __init__(
        self,
        objects: Iterable[Object],
        limit_ranges: Iterable[Mapping[str, Any]],
        now: float,
        quotas: Quotas | None = None,
    ) -> None:
        self.warnings: list[str] = []
        self._quotas = quotas or Quotas()
        self._api, self._now = Api(DocumentStore(), random.Random(0)), now
        self._limit_ranges = list(limit_ranges)
        self._created: list[Document] = []
        objects = list(objects)
        self._namespaces = {each.name for each in objects if isinstance(each, Namespace)}
        for name, value in SYSTEM.items():
            self._api.store.put(_PRIORITY_CLASSES, name, {"metadata": {"name": name}, "value": value})
        for each in objects:
            if type(each) in _READ:
                self._api.store.put(_READ[type(each)], each.key, _document(each))
        store = self._api.store
        self._actions, self._refusals = ActionRunner(self._api), list[str]()
        self._controllers = ControllerManager(store, workload_controllers(store), self._perform)
        self._api.store.listeners.append(self._note)

    def _perform(self, action: Action, now: float) -> ApiError | None:
        error = self._actions.perform(action, now)
        if error is not None and isinstance(action, CreateDocument):
            self._refusals.append(error.message)
        return error

    def _note(self, change: StoreChange) -> None:
        if change.before is None and change.now is not None:
            self._created.append(change.now)

    def submit(self, document: Document, file: str, namespace: str, replicas: int | None = None) -> Submission | None:
        """Return what a document would become; None for a kind that scheduling does not depend on.

        Raises ConfigError, with file and path, if the API server would refuse it.
        """
        document = typed.without_nulls(copy.deepcopy(document))
        kind = str(document.get("kind"))
        metadata = document.get("metadata")
        if not isinstance(metadata, dict):
            raise ConfigError("found no metadata", file=file, path=kind, remedy="write a mapping with a name")
        if kind in ("LimitRange", "ResourceQuota"):
            self._add_rules(kind, {**document, "metadata": {"namespace": namespace, **metadata}}, file)
            return None
        resource = self._api.catalogue.of_kind(str(document.get("apiVersion", "")), kind)
        if resource is None:
            return _other(document, file, namespace)
        within = str(metadata.get("namespace") or namespace) if resource.namespaced else ""
        self._check_namespace(within, kind, file)
        for given in ("resourceVersion", "uid", "creationTimestamp", "ownerReferences", "generation"):
            metadata.pop(given, None)
        missing = self._take_missing_class(document)
        self._created.clear()
        stored = [self._create(resource, each, within, file) for each in _copies(document, kind, replicas)]
        self._refusals.clear()
        self._controllers.settle(self._now)
        if kind in WITH_PODS and self._refusals and not any(kinds.name_of(each) == "Pod" for each in self._created):
            raise ConfigError(self._refusals[0], file=file, path=f"{kind} {metadata.get('name', '')}".strip())
        key = resource.key(within, stored[0]["metadata"]["name"] if stored else str(metadata.get("name", "")))
        refused: dict[str, QuotaRefusal] = {}
        objects = tuple(self._typed(file, refused if not missing else None))
        return Submission(kind, key, file, document, objects, missing, refused, self._quotas, replicas)

    def _check_namespace(self, name: str, kind: str, file: str) -> None:
        """Refuse objects in a namespace that does not exist, as far as namespaces can be seen."""
        known = self._namespaces and {*self._namespaces, *IN_EVERY_CLUSTER}
        if name and known and name not in known and self._api.store.get("namespaces", name) is None:
            near = difflib.get_close_matches(name, known, 1)
            remedy = f"did you mean {near[0]}?" if near else "create it, or write a Namespace before it"
            raise ConfigError(f'namespaces "{name}" not found', file=file, path=kind, remedy=remedy)

    def _add_rules(self, kind: str, document: Document, file: str) -> None:
        """Take in what the API server reads when pods are created after it."""
        try:
            found = checked(kind, document)
        except ConfigError as error:
            raise error.located(file) from None
        if kind == "LimitRange":
            self._limit_ranges.append(found)
        else:
            self._quotas.add(found)

    def _take_missing_class(self, document: Document) -> str:
        """Remove the name of a PriorityClass that does not exist, and return it."""
        spec = document.get("spec")
        template = spec.get("template") if isinstance(spec, dict) and document["kind"] != "Pod" else document
        inner = template.get("spec") if isinstance(template, dict) else None
        name = inner.get("priorityClassName") if isinstance(inner, dict) else None
        if inner is None or not name or self._api.store.get(_PRIORITY_CLASSES, str(name)) is not None:
            return ""
        del inner["priorityClassName"]
        return str(name)

    def _create(self, resource: ServedResource, document: Document, namespace: str, file: str) -> Document:
        options = RequestOptions(self._now, "Warn")
        namespaces = self._api.catalogue.find("", "v1", "namespaces")
        if namespace and self._api.store.get("namespaces", namespace) is None and namespaces is not None:
            self._api.create(namespaces, "", {"metadata": {"name": namespace}}, options)
            self._created.clear()  # it exists in the real cluster, or will
        name = str(document["metadata"].get("name", ""))
        try:
            stored = self._api.create(resource, namespace, document, options)
        except ApiError as error:
            raise ConfigError(error.message, file=file, path=f"{resource.kind} {name}".strip()) from None
        self.warnings += [f"{file}: {resource.kind} {name}: {each}" for each in options.warnings]
        return stored

    def _typed(self, file: str, refused: dict[str, QuotaRefusal] | None) -> Iterator[Object]:
        """Yield what was created. `refused`: gets the pods that a quota refuses; None if they are refused anyway."""
        for document in self._created:
            kind = kinds.name_of(document)
            if kind not in kinds.KINDS:
                continue
            if kind == "Pod":
                document = self._with_limits(document)
            try:
                found = kinds.convert(kinds.KINDS[kind], document)
            except ConfigError as error:
                raise error.located(file) from None
            if isinstance(found, Pod) and refused is not None:
                refusal = self._quotas.admit(found, document)
                refused |= {} if refusal is None else {found.key: refusal}
            yield found

    def _with_limits(self, pod: Document) -> Document:
        """Set the default limits and requests of the LimitRanges of the pod's namespace, as LimitRanger does."""
        ranges = [
            item
            for each in self._limit_ranges
            if each.get("metadata", {}).get("namespace") == pod["metadata"]["namespace"]
            for item in each.get("spec", {}).get("limits", ())
            if item.get("type") == "Container"
        ]
        if not ranges:
            return pod
        pod = copy.deepcopy(pod)
        for container in (*pod["spec"].get("initContainers", ()), *pod["spec"].get("containers", ())):
            resources = container.setdefault("resources", {})
            for item in ranges:
                limits = item.get("default", {})
                for name, amount in (limits | item.get("defaultRequest", {})).items():
                    resources.setdefault("requests", {}).setdefault(name, amount)
                for name, amount in limits.items():
                    resources.setdefault("limits", {}).setdefault(name, amount)
        return pod


def _copies(document: Document, kind: str, replicas: int | None) -> Iterator[Document]:
    if kind == "Pod":
        name = str(document["metadata"].get("name", ""))
        for number in range(1, (1 if replicas is None else replicas) + 1):
            metadata = {**document["metadata"], "name": name if number == 1 else f"{name}-{number}"}
            yield {**document, "metadata": metadata}
        return
    spec = document.get("spec")
    if isinstance(spec, dict):
        spec = {**spec, REPLICAS[kind]: replicas} if replicas is not None and kind in REPLICAS else dict(spec)
        if kind == "Job" and replicas is not None and isinstance(spec.get("completions"), int):
            spec["completions"] = max(replicas, spec["completions"])
        if kind == "StatefulSet":
            spec["podManagementPolicy"] = "Parallel"  # all pods are asked about, not only the first
        document = {**document, "spec": spec}
    yield document


def _other(document: Document, file: str, namespace: str) -> Submission | None:
    """Return an object of a custom kind that decisions read."""
    name = kinds.name_of(document)
    if name not in kinds.KINDS:
        return None
    kind = kinds.KINDS[name]
    metadata = {"namespace": namespace, **document["metadata"]} if name not in _WIDE else document["metadata"]
    try:
        found = kinds.convert(kind, {**document, "metadata": metadata})
    except ConfigError as error:
        raise error.located(file) from None
    return Submission(name, found.key, file, document, (found,))


_WIDE = ("ManagedCluster", "ManagedClusterSet")


def _document(found: Object) -> Document:
    document: Document = msgspec.to_builtins(found, enc_hook=str)
    document.setdefault("metadata", {}).setdefault("name", found.name)
    return {"kind": type(found).__name__, **document}
