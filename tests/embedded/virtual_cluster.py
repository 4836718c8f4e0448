"""An embedded cluster without a server, in virtual time: what a simulation would run."""

from __future__ import annotations

import random
from typing import Any

import yaml

from stowplan.embedded.api.request_options import DeleteOptions, RequestOptions
from stowplan.embedded.api.subresources import Subresources
from stowplan.embedded.api.verbs import SYSTEM_NAMESPACES, Api
from stowplan.embedded.controllers.action_runner import ActionRunner
from stowplan.embedded.controllers.controller_manager import ControllerManager
from stowplan.embedded.controllers.kubelets import SimulatedKubelets
from stowplan.embedded.controllers.registry import all_controllers
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.store import DocumentStore

START = 1_800_000_000.0


class VirtualCluster:
    """`schedule` binds pending pods to the nodes in turn."""

    def __init__(self, *, controllers: bool = True, keep: int = 1000, **pace: float) -> None:
        self.now = START
        self.api = Api(DocumentStore(keep=keep), random.Random(1))
        self.store = self.api.store
        kubelets = SimulatedKubelets(self.store, **pace)
        self.runner = ActionRunner(self.api)
        self.controllers = ControllerManager(
            self.store,
            all_controllers(self.store, kubelets, self.api.limits.ledger) if controllers else [],
            self.runner.perform,
        )
        self.subresources = Subresources(self.api)
        for name in SYSTEM_NAMESPACES:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def options(self) -> RequestOptions:
        return RequestOptions(self.now)

    def resource(self, api_version: str, kind: str) -> ServedResource:
        found = self.api.catalogue.of_kind(api_version, kind)
        assert found is not None
        return found

    def create(self, manifest: str | dict[str, Any]) -> dict[str, Any]:
        document = yaml.safe_load(manifest) if isinstance(manifest, str) else manifest
        resource = self.resource(document["apiVersion"], document["kind"])
        namespace = document["metadata"].get("namespace", "default") if resource.namespaced else ""
        return self.api.create(resource, namespace, document, self.options())

    def update(self, document: dict[str, Any], subresource: str = "") -> dict[str, Any]:
        resource = self.resource(document["apiVersion"], document["kind"])
        metadata = document["metadata"]
        position = metadata.get("namespace", ""), metadata["name"]
        return self.api.update(resource, *position, document, self.options(), subresource)

    def change(self, collection: str, key: str, **spec: Any) -> dict[str, Any]:
        found = self.get(collection, key)
        return self.update({**found, "spec": {**found["spec"], **spec}})

    def delete(self, collection: str, key: str, **options: Any) -> None:
        resource = self.api.catalogue.by_collection(collection)
        assert resource is not None
        namespace, _, name = key.rpartition("/")
        self.api.delete(resource, namespace, name, DeleteOptions(**options), self.options())

    def get(self, collection: str, key: str) -> dict[str, Any]:
        found = self.store.get(collection, key)
        assert found is not None, f"{collection} {key} is not there"
        return found

    def all(self, collection: str, namespace: str = "") -> list[dict[str, Any]]:
        return [stored.document for stored in self.store.all(collection, namespace)]

    def nodes(self, count: int) -> None:
        for number in range(count):
            labels = {"topology.kubernetes.io/zone": f"z{number % 2}"}
            metadata = {"name": f"n{number}", "labels": labels}
            self.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
        self.settle()

    def schedule(self) -> None:
        nodes = [node["metadata"]["name"] for node in self.all("nodes")]
        pods = self.resource("v1", "Pod")
        waiting = [pod for pod in self.all("pods") if not pod["spec"].get("nodeName")]
        for number, pod in enumerate(waiting if nodes else []):
            metadata = pod["metadata"]
            raw = {"metadata": {"name": metadata["name"]}, "target": {"name": nodes[number % len(nodes)]}}
            self.subresources.bind(pods, metadata["namespace"], metadata["name"], raw, self.options())

    def settle(self, seconds: float = 0.0, *, rounds: int = 20) -> None:
        """Everybody works until there is nothing left to do at this time."""
        self.now += seconds
        for _ in range(rounds):
            worked = self.controllers.settle(self.now)
            before = self.store.version
            self.schedule()
            if not worked and self.store.version == before:
                return
        raise AssertionError("the controllers never come to rest")
