"""The cluster of a what-if: that of a run, on which one can also do what an administrator does with kubectl.

Drain(at=0, nodes=("n1",))            kubectl drain --ignore-daemonsets --delete-emptydir-data --force
AppliedManifest(at=0, document=…)     kubectl apply: what the manifest does not name stays
Begin(at=0)                           nothing: the cluster says that the changes begin now
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
import numpy as np

from stowplan.embedded.api.request_options import RequestOptions
from stowplan.embedded.api.subresources import Subresources
from stowplan.embedded.controllers import queries
from stowplan.embedded.errors import ApiError
from stowplan.embedded.http.requests import Request
from stowplan.embedded.store import StoreChange
from stowplan.objects.errors import ConfigError, StowplanError
from stowplan.simulation.settings import QUIET, RunSettings
from stowplan.simulation.simulated_cluster import SimulatedCluster
from stowplan.simulation.stream_events import Document, StreamEvent

AGAIN = 5.0  # seconds until kubectl tries an eviction again
MIRROR = "kubernetes.io/config.mirror"
STRATEGIC, MERGE = "application/strategic-merge-patch+json", "application/merge-patch+json"
DISRUPTED, EVICTED = "DisruptionTarget", "EvictionByEvictionAPI"


class Begin(StreamEvent, frozen=True, kw_only=True):
    """The changes begin now."""


class Drain(StreamEvent, frozen=True, kw_only=True):
    """These nodes are cordoned, and their pods evicted, again and again while disruption budgets are against it."""

    nodes: tuple[str, ...]
    again: bool = False


class AppliedManifest(StreamEvent, frozen=True, kw_only=True):
    """An object is created, or changed to what a manifest says."""

    document: Document


class BlockedEviction(msgspec.Struct, frozen=True):
    """A pod that stays on a node which is drained, and what the API server says."""

    pod: str
    node: str
    message: str


class AdministeredCluster(SimulatedCluster):
    """`gone`: why pods were disrupted that are deleted since the changes began, by uid; empty if nobody says why.

    `blocked`: what no drain could evict. `daemons`: keys of pods of DaemonSets, which may be missing.
    `made`: how many controllers of pods were made, because the dump leaves them out.
    """

    def __init__(self, settings: RunSettings) -> None:
        super().__init__(settings)
        self.on_begin: Callable[[], None] = lambda: None
        self.gone: dict[str, str] = {}
        self.blocked: dict[str, BlockedEviction] = {}
        self.daemons: set[str] = set()
        self.made = 0
        self._subresources, self._generator = Subresources(self.api), np.random.default_rng(settings.seed)
        self._evicted: set[str] = set()  # uids; a pod that has not started yet gets no condition
        self._last_eviction = self._tried = -1.0

    def happen(self, event: StreamEvent) -> StreamEvent | None:
        """Let a change happen. Raises StowplanError if the API server would refuse it: then there is no answer."""
        try:
            return super().happen(event)
        except ConfigError as error:
            raise StowplanError(str(error)) from None

    def _happen(self, event: StreamEvent) -> StreamEvent | None:
        match event:
            case Begin():
                self.on_begin()
                self.api.store.listeners.append(self._note)
            case Drain():
                return self._drain(event)
            case AppliedManifest():
                self._apply_manifest(event.document)
            case _:
                return super()._happen(event)
        return None

    def _note(self, change: StoreChange) -> None:
        if change.collection == "pods" and change.now is None:
            conditions = change.document.get("status", {}).get("conditions", ())
            reasons = (each.get("reason", "") for each in conditions if each["type"] == DISRUPTED)
            uid = change.document["metadata"]["uid"]
            self.gone[uid] = next(reasons, EVICTED if uid in self._evicted else "")

    # -- kubectl drain

    def _drain(self, event: Drain) -> Drain | None:
        """Evict what may be evicted. Return the next try, unless nothing is left, or nothing has moved for long."""
        if not event.again:
            self._last_eviction = self.time
            for node in event.nodes:
                self._cordon(node, cordoned=True)
        if self._tried != self.api.store.version:  # otherwise the answers would be the same
            self.blocked = {}
            for node in event.nodes:
                pods = list(self._to_evict(node))
                for at in self._generator.permutation(len(pods)).tolist():  # kubectl evicts them all at the same time
                    self._evict(pods[at], node)
            self._tried = self.api.store.version
        if not self.blocked or self.time - self._last_eviction > QUIET:
            return None
        return msgspec.structs.replace(event, at=event.at + AGAIN, again=True)

    def _to_evict(self, node: str) -> Iterator[Document]:
        """Yield the pods that a drain evicts: not those of DaemonSets, and not those of the kubelet itself."""
        for stored in self.api.store.collection("pods").find("spec.nodeName", node) or ():
            pod = stored.document
            owner = queries.controller_of(pod)
            is_daemon = (owner or {}).get("kind") == "DaemonSet" or queries.key_of(pod) in self.daemons
            if not is_daemon and MIRROR not in pod["metadata"].get("annotations", {}) and not queries.terminating(pod):
                yield pod

    def _evict(self, pod: Document, node: str) -> None:
        pods, metadata = self._resource("v1", "Pod"), pod["metadata"]
        eviction = {"metadata": {"name": metadata["name"], "namespace": metadata["namespace"]}}
        options = RequestOptions(self.time)
        try:
            self._subresources.evict(pods, metadata["namespace"], metadata["name"], eviction, options)
        except ApiError as error:
            if error.code != 404:
                causes = [str(each["message"]) for each in (error.details or {}).get("causes", ())]
                key = queries.key_of(pod)
                self.blocked[key] = BlockedEviction(key, node, "; ".join(causes) or error.message)
        else:
            self._evicted.add(metadata["uid"])
            self._last_eviction = self.time

    # -- kubectl apply

    def _apply_manifest(self, document: Document) -> None:
        resource = self._resource(document.get("apiVersion", ""), document.get("kind", ""))
        metadata = document["metadata"]
        namespace = metadata.get("namespace", "default") if resource.namespaced else ""
        name = metadata.get("name", "")
        if not name or self.api.store.get(resource.collection, resource.key(namespace, name)) is None:
            self.create(document)
            return
        body, kind = msgspec.json.encode(document, enc_hook=str), MERGE if resource.custom else STRATEGIC
        path = resource.path(namespace, name)
        self.embedded.handlers.answer(Request("PATCH", path, content_type=kind, body=body))
