"""Where explanations read a cluster: from its API server, or from files of `kubectl get -o yaml`.

What may not be read is named in `unseen`, and the explanation goes on without it. Pods and nodes must be readable.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec

from stowplan.apps import cluster_objects
from stowplan.apps.cluster_objects import Problem
from stowplan.apps.explain.plain_documents import checked
from stowplan.embedded.manifests import documents
from stowplan.kube import credentials, event_loop
from stowplan.kube.client import Client
from stowplan.kube.resources import RESOURCES, ApiResource
from stowplan.kube.responses import RefusedError
from stowplan.kube.transport import Transport
from stowplan.objects import kinds
from stowplan.objects.errors import ConfigError, StowplanError
from stowplan.objects.meta import Object

# Read as documents. The rights are in deploy/read-only.yaml.
OWNERS = {
    "Deployment": RESOURCES["Deployment"],
    "ReplicaSet": RESOURCES["ReplicaSet"],
    "StatefulSet": RESOURCES["StatefulSet"],
    "DaemonSet": ApiResource("DaemonSet", "daemonsets", "apps"),
    "Job": ApiResource("Job", "jobs", "batch"),
    "ReplicationController": RESOURCES["ReplicationController"],
}
LISTED = ("Deployment", "DaemonSet", "Job", "ReplicationController")  # workloads that no plugin makes us list
SINGLE = OWNERS | {"Pod": RESOURCES["Pod"]}  # read one by one
LEASES, EVENTS = RESOURCES["Lease"], RESOURCES["Event"]
LIMIT_RANGES = ApiResource("LimitRange", "limitranges")
QUOTAS = ApiResource("ResourceQuota", "resourcequotas")
LEASE_NAMESPACE = "kube-system"
ALWAYS = ("Pod", "Node", "PriorityClass", "ReplicaSet")  # whatever plugins read
KEPT = (*OWNERS, "Lease", "Event", "LimitRange", "ResourceQuota")
NEEDED = ("Pod", "Node")
FORBIDDEN = (401, 403)

Document = Mapping[str, Any]
T = TypeVar("T")


class ObjectSource(Protocol):
    """`namespace`: that of the context. `unseen`: what could not be read. `is_live`: a cluster, not files."""

    namespace: str
    unseen: list[str]
    is_live: bool

    def objects(self, wanted: Iterable[str], brought: Mapping[str, ApiResource]) -> list[Object]: ...

    def document(self, kind: str, key: str) -> Document | None:
        """One object as the API server has it; None if it cannot be seen."""

    def leases(self) -> list[Document] | None:
        """The leases of kube-system; None if they cannot be seen."""

    def events(self, key: str) -> list[Document]:
        """The events about a pod."""

    def limit_ranges(self, namespace: str) -> list[Document]: ...

    def quotas(self, namespace: str) -> list[Document]:
        """The ResourceQuotas of a namespace."""

    def workloads(self, namespace: str) -> list[tuple[str, Document]]:
        """The workloads of the kinds in LISTED, each with its kind. `namespace`: empty for all."""

    def now(self) -> float:
        """The time of what is read, in seconds since 1970."""


class ClusterSource:
    """A cluster. Each question is asked when it comes up, on one connection pool."""

    is_live = True

    def __init__(self, kubeconfig: str = "", context: str = "", on_problem: Problem = lambda _: None) -> None:
        self.unseen: list[str] = []
        self._runner = asyncio.Runner(loop_factory=event_loop.new)
        self._on_problem = on_problem
        self._client, self.namespace = self._runner.run(_connected(kubeconfig, context))
        self._read: dict[tuple[str, str], Document | None] = {}
        self._leases: list[Document] | None = None
        self._asked_leases = False

    def close(self) -> None:
        self._runner.run(self._client.close())
        self._runner.close()

    def objects(self, wanted: Iterable[str], brought: Mapping[str, ApiResource]) -> list[Object]:
        known = {**RESOURCES, **brought}
        chosen = [known[kind] for kind in sorted(wanted)]
        return self._run(self._list_all(chosen))

    def _run(self, asking: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(asking)

    async def _list_all(self, chosen: Sequence[ApiResource]) -> list[Object]:
        lists = await asyncio.gather(*(self._list_kind(each) for each in chosen))
        return [each for found in lists for each in found]

    async def _list_kind(self, resource: ApiResource) -> list[Object]:
        try:
            return await cluster_objects.list_kind(self._client, resource, self._on_problem)
        except RefusedError as error:
            if error.status not in FORBIDDEN:
                raise
            if resource.kind in NEEDED:
                remedy = "deploy/read-only.yaml has the rights that explain needs"
                raise ConfigError(f"{resource.plural} cannot be listed: {error.message}", remedy=remedy) from None
            self._missed(resource)
            return []

    def _missed(self, resource: ApiResource) -> None:
        name = f"{resource.plural}.{resource.group}" if resource.group else resource.plural
        if name not in self.unseen:
            self.unseen.append(name)

    def document(self, kind: str, key: str) -> Document | None:
        if kind not in SINGLE:
            return None
        if (kind, key) not in self._read:
            self._read[kind, key] = self._run(self._get(SINGLE[kind], key))
        return self._read[kind, key]

    async def _get(self, resource: ApiResource, key: str) -> Document | None:
        response = await self._client.get(resource, key)
        if response.status in FORBIDDEN:
            self._missed(resource)
        return _mapping(resource.kind, response.body) if response.ok else None

    def leases(self) -> list[Document] | None:
        if not self._asked_leases:
            self._asked_leases, self._leases = True, self._run(self._listed(LEASES, LEASE_NAMESPACE))
        return self._leases

    def events(self, key: str) -> list[Document]:
        namespace, _, name = key.partition("/")
        return self._run(self._listed(EVENTS, namespace, f"regarding.kind=Pod,regarding.name={name}")) or []

    def limit_ranges(self, namespace: str) -> list[Document]:
        return self._run(self._listed(LIMIT_RANGES, namespace)) or []

    def quotas(self, namespace: str) -> list[Document]:
        return self._run(self._listed(QUOTAS, namespace)) or []

    def workloads(self, namespace: str) -> list[tuple[str, Document]]:
        return [(kind, each) for kind in LISTED for each in self._run(self._listed(OWNERS[kind], namespace)) or ()]

    async def _listed(self, resource: ApiResource, namespace: str, fields: str = "") -> list[Document] | None:
        found: list[Document] = []
        try:
            async for page in self._client.list_pages(resource, namespace=namespace, fields=fields):
                found += filter(None, (_mapping(resource.kind, bytes(item)) for item in page.items or ()))
        except RefusedError as error:
            if error.status not in (*FORBIDDEN, 404):
                raise
            self._missed(resource)
            return None
        return found

    def now(self) -> float:
        return time.time()

    def all_events(self) -> list[Document]:
        """All events of the cluster: what is said of decisions before somebody looked."""
        return self._run(self._listed(EVENTS, "")) or []

    def read_again(self) -> None:
        """Forget what was read, for a question that is asked later."""
        self._read.clear()
        self._asked_leases = False


async def _connected(kubeconfig: str, context: str) -> tuple[Client, str]:
    access = credentials.load(kubeconfig or None, context or None)
    return Client(Transport(access)), access.namespace


def _mapping(kind: str, document: bytes) -> Document | None:
    """Return a document of the API server; None for one that cannot be read: another program may have made it."""
    try:
        found = kinds.decode_plain(document)
        return checked(kind, found) if isinstance(found, dict) else None
    except StowplanError:
        return None


class FileSource:
    """Files or folders with objects. The time is that of the latest lease or event in them."""

    is_live = False

    def __init__(self, files: Sequence[Path], on_problem: Problem = lambda _: None) -> None:
        self.namespace = "default"
        self.unseen: list[str] = []
        self._files, self._on_problem = files, on_problem
        self._documents: dict[tuple[str, str], Document] = {}

    def objects(self, wanted: Iterable[str], brought: Mapping[str, ApiResource]) -> list[Object]:  # noqa: ARG002
        return cluster_objects.from_documents(self._kept(), brought, self._on_problem)[0]

    def _kept(self) -> Iterator[tuple[str, Document]]:
        """Yield each document, and keep those that are read as documents: a dump may have 50,000 running pods."""
        for file, document in documents(self._files):
            kind = kinds.name_of(document)
            if kind in KEPT or (kind == "Pod" and not _spec(document).get("nodeName")):
                try:
                    self._documents[kind, _key(document)] = checked(kind, document)
                except ConfigError as error:
                    raise error.located(file) from None
            yield file, document

    def document(self, kind: str, key: str) -> Document | None:
        return self._documents.get((kind, key))

    def _of_kind(self, kind: str) -> list[Document]:
        return [document for (found, _), document in self._documents.items() if found == kind]

    def leases(self) -> list[Document] | None:
        found = self._of_kind("Lease")
        return [each for each in found if _metadata(each).get("namespace") == LEASE_NAMESPACE] if found else None

    def events(self, key: str) -> list[Document]:
        return [each for each in self._of_kind("Event") if _regards(each, key)]

    def all_events(self) -> list[Document]:
        """All events in the files."""
        return self._of_kind("Event")

    def read_again(self) -> None:
        """Files do not change."""

    def close(self) -> None:
        """Nothing is open."""

    def limit_ranges(self, namespace: str) -> list[Document]:
        return [each for each in self._of_kind("LimitRange") if _metadata(each).get("namespace") == namespace]

    def quotas(self, namespace: str) -> list[Document]:
        return [each for each in self._of_kind("ResourceQuota") if _metadata(each).get("namespace") == namespace]

    def workloads(self, namespace: str) -> list[tuple[str, Document]]:
        found = ((kind, each) for kind in LISTED for each in self._of_kind(kind))
        return [(kind, each) for kind, each in found if namespace in ("", _metadata(each).get("namespace"))]

    def now(self) -> float:
        renewed = (moment(_spec(each).get("renewTime")) for each in self._of_kind("Lease"))
        seen = (event_time(each) for each in self._of_kind("Event"))
        return max((each for each in (*renewed, *seen) if each is not None), default=0.0)


def _metadata(document: Document) -> Document:
    found = document.get("metadata")
    return found if isinstance(found, dict) else {}


def _spec(document: Document) -> Document:
    found = document.get("spec")
    return found if isinstance(found, dict) else {}


def _key(document: Document) -> str:
    namespace, name = _metadata(document).get("namespace"), _metadata(document).get("name")
    return f"{namespace}/{name}" if namespace else str(name)


def _regards(event: Document, key: str) -> bool:
    about = event.get("regarding") or event.get("involvedObject") or {}
    return about.get("kind") == "Pod" and f"{about.get('namespace')}/{about.get('name')}" == key


def moment(text: Any) -> float | None:
    """Return a time of the API in seconds since 1970; None if there is none, or it cannot be read."""
    if isinstance(text, datetime):
        return text.timestamp()
    try:
        return msgspec.convert(text, datetime).timestamp() if text else None
    except (msgspec.ValidationError, ValueError, OverflowError):
        return None


def event_time(event: Document) -> float | None:
    """Return when an event last happened."""
    series = event.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        event.get("deprecatedLastTimestamp"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        _metadata(event).get("creationTimestamp"),
    )
    found = [each for each in map(moment, times) if each is not None]
    return max(found) if found else None
