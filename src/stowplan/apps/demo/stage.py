"""Where a scene is played: an embedded cluster and an engine, connected without sockets and without a clock.

Time is virtual and starts at a fixed moment, and names come from a seed, so a scene is the same on every machine, and
nobody waits for it. The API server, its controllers and its kubelets are those of `stowplan up`; the engines are those
of `stowplan run` and `stowplan place`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import numpy as np

from stowplan.apps import profile_loader
from stowplan.apps.place.kinds import KINDS
from stowplan.embedded.api.request_options import DeleteOptions, RequestOptions
from stowplan.embedded.cluster import Embedded
from stowplan.embedded.http.requests import Request
from stowplan.embedded.resources import ServedResource
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.decision import Decision
from stowplan.framework.placement.choice import PlacementChoice
from stowplan.kube.resources import RESOURCES
from stowplan.objects.actions import Action
from stowplan.objects.changes import Change, Result
from stowplan.objects.pods import Pod
from stowplan.placement.scheduler import PlacementScheduler
from stowplan.plugins import clusters
from stowplan.simulation.bridge import Bridge

Document = dict[str, Any]

START = 1_800_000_000.0  # seconds since 1970
HORIZON = 30.0  # seconds in which everything that a scene shows has happened
JSON_PATCH = "application/json-patch+json"
KUBECTL_NAMES = {"deployment": ("apps/v1", "Deployment"), "pod": ("v1", "Pod"), "node": ("v1", "Node")}


class StagedEngine(Protocol):
    def handle(self, change: Change | Result, now: float, /) -> list[Action]: ...

    def step(self, now: float, /) -> list[Action]: ...

    def next_deadline(self) -> float | None: ...


AnyEngine = TypeVar("AnyEngine", bound=StagedEngine)


class Stage(Generic[AnyEngine]):
    """A cluster with an engine that reads these kinds."""

    def __init__(self, engine: AnyEngine, kinds: Iterable[str], seed: int) -> None:
        self.now = START
        self.engine = engine
        self.cluster = Embedded(seed=seed, clock=lambda: self.now)
        self._bridge = Bridge(self.cluster.api, [RESOURCES[kind] for kind in sorted(kinds)])

    # -- what is done to the cluster

    def create(self, *documents: Document) -> None:
        """Create objects, in the namespace default unless they name another, and let the cluster settle."""
        for document in documents:
            resource = self._resource(document["apiVersion"], document["kind"])
            namespace = document["metadata"].get("namespace", "default") if resource.namespaced else ""
            self.cluster.api.create(resource, namespace, document, RequestOptions(self.now, "Strict"))
        self.settle()

    def delete(self, version: str, kind: str, *names: str) -> None:
        """Delete objects of the namespace default, or without one, and let the cluster settle."""
        resource = self._resource(version, kind)
        for name in names:
            options = DeleteOptions(grace_period_seconds=0), RequestOptions(self.now)
            self.cluster.api.delete(resource, "default" if resource.namespaced else "", name, *options)
        self.settle()

    def patch(self, version: str, kind: str, key: str, operations: Any, subresource: str = "") -> None:
        """Send a JSON patch to an object (namespace/name, or a name), and let the cluster settle."""
        resource, (namespace, _, name) = self._resource(version, kind), key.rpartition("/")
        parts = ("apis" if "/" in version else "api", version, *(("namespaces", namespace) if namespace else ()))
        path = "/".join(("", *parts, resource.plural, name, *((subresource,) if subresource else ())))
        body = msgspec.json.encode(operations)
        self.cluster.handlers.answer(Request("PATCH", path, content_type=JSON_PATCH, body=body))
        self.settle()

    def type_command(self, command: str) -> None:
        """Do what a command says that `stowplan explain` printed: `kubectl -n … patch KIND NAME --type=json -p=…`."""
        match shlex.split(command):
            case ["kubectl", "-n", namespace, "patch", kind, name, "--type=json", patch] if kind in KUBECTL_NAMES:
                operations = msgspec.json.decode(patch.removeprefix("-p="))
                self.patch(*KUBECTL_NAMES[kind], f"{namespace}/{name}", operations)
            case _:
                raise ValueError(f"only a JSON patch of a workload can be typed here, not: {command}")

    def _resource(self, version: str, kind: str) -> ServedResource:
        found = self.cluster.api.catalogue.of_kind(version, kind)
        assert found is not None, f"{kind} is not served"
        return found

    # -- time

    def settle(self) -> None:
        """Let everybody work until nothing is due, and let time pass."""
        until = self.now + HORIZON
        while True:
            self._work()
            deadlines = (self.engine.next_deadline(), self.cluster.controllers.next_deadline())
            due = min((each for each in deadlines if each is not None), default=until)
            if due >= until:
                break
            self.now = max(due, self.now)
        self.now = until

    def _work(self) -> None:
        """The controllers and the engine work in turns until nothing is left to do at this time."""
        while True:
            worked, before = self.cluster.controllers.settle(self.now), self.cluster.api.store.version
            self._deliver()
            while (due := self.engine.next_deadline()) is not None and due <= self.now:
                self._perform(self.engine.step(self.now))
                self._deliver()
            if not worked and self.cluster.api.store.version == before:
                return

    def _deliver(self) -> None:
        for change in self._bridge.changes():
            self._perform(self.engine.handle(change, self.now))

    def _perform(self, actions: list[Action]) -> None:
        for action in actions:
            self._perform(self.engine.handle(self._bridge.perform(action, self.now), self.now))

    # -- what is seen

    def documents(self, collection: str) -> list[Document]:
        return [stored.document for stored in self.cluster.api.store.all(collection)]


class NodeStage(Stage[Scheduler]):
    """A cluster with a scheduler of pods. `configuration`: a KubeSchedulerConfiguration; none: kube-scheduler's own."""

    def __init__(self, seed: int, configuration: Mapping[str, Any] | None = None) -> None:
        if configuration is None:
            _, self.profiles = profile_loader.defaults()
        else:
            _, self.profiles = profile_loader.configured(configuration)
        kinds = frozenset[str]().union(*(profile.reads for profile in self.profiles.values()))
        super().__init__(Scheduler(self.profiles, np.random.default_rng(seed)), kinds, seed)

    def pods(self, app: str = "") -> list[Pod]:
        """Return the pods, or those of one application, the oldest first."""
        found = [pod for pod in self.engine.pods.values() if pod.labels.get("app") == app or not app]
        return sorted(found, key=lambda pod: (pod.metadata.creation_timestamp, pod.key))

    def decision(self, pod: Pod) -> Decision:
        """Return the last decision about a pod."""
        found = self.engine.decisions.latest(pod.uid)
        assert found is not None, f"{pod.key} was never attempted"
        return found


class HubStage(Stage[PlacementScheduler]):
    """A hub with a scheduler of placements."""

    def __init__(self, seed: int) -> None:
        super().__init__(PlacementScheduler(clusters.policy()), KINDS, seed)

    def chosen(self) -> list[str]:
        """Return the clusters that the decisions in the hub list."""
        decisions = self.documents("placementdecisions.cluster.open-cluster-management.io")
        return [each["clusterName"] for found in decisions for each in found.get("status", {}).get("decisions", ())]

    def choice(self, key: str) -> PlacementChoice:
        """Return the choice for a placement as it is made now, with its reasons."""
        return self.engine.choose(self.engine.placements[key], self.now)
