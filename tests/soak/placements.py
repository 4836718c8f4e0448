"""Placements that come and go, at the same API server: each gets as many clusters as it asks for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from tests.controlplane.hubs import GROUP
from tests.soak.connection import Connection

CLUSTERS = 12
KEPT = 20  # placements at a time
EVERY = 3.0  # seconds
IN_TIME = 120.0  # seconds, with faults
API = f"/apis/{GROUP}"


class Placements(threading.Thread):
    def __init__(self, connect: Callable[[], Connection], namespace: str) -> None:
        super().__init__(name="placements", daemon=True)
        self._connection, self._namespace, self._ended = connect(), namespace, False
        self._asked: dict[str, tuple[int, float]] = {}  # clusters and time, by name
        self._decided: set[str] = set()
        self._number = 0
        self.problems: list[str] = []
        self.decided = 0

    def end(self) -> None:
        self._ended = True

    def make_fleet(self) -> None:
        """Clusters of the default set, bound to the namespace."""
        for number in range(CLUSTERS):
            cluster = _object("ManagedCluster", "v1", f"cluster-{number}")
            cluster["metadata"]["labels"] = {f"{GROUP}/clusterset": "default"}
            self._must("POST", f"{API}/v1/managedclusters", cluster | {"spec": {"hubAcceptsClient": True}})
        set_of = _object("ManagedClusterSet", "v1beta2", "default")
        self._must("POST", f"{API}/v1beta2/managedclustersets", set_of | {"spec": {}})
        binding = _object("ManagedClusterSetBinding", "v1beta2", "default") | {"spec": {"clusterSet": "default"}}
        self._must("POST", f"{API}/v1beta2/namespaces/{self._namespace}/managedclustersetbindings", binding)

    def run(self) -> None:
        while not self._ended:
            self._create()
            self.look()
            time.sleep(EVERY)

    def missing(self) -> list[str]:
        """Names of the placements that have not been decided."""
        self.look()
        return [name for name in self._asked if name not in self._decided]

    def _create(self) -> None:
        self._number += 1
        name, wanted = f"placement-{self._number}", self._number % CLUSTERS + 1
        spec = {"spec": {"numberOfClusters": wanted}}
        status, _ = self._connection.ask("POST", self._path("placements"), _object("Placement", "v1beta1", name) | spec)
        if status in (201, 409):
            self._asked[name] = (wanted, time.monotonic())
        if len(self._asked) > KEPT:
            oldest = next(iter(self._asked))
            if self._connection.ask("DELETE", f"{self._path('placements')}/{oldest}")[0] in (200, 404):
                self._remove_decisions(oldest)
                del self._asked[oldest]
                self._decided.discard(oldest)

    def _remove_decisions(self, name: str) -> None:
        """Without a controller-manager nobody collects them."""
        query = f"?labelSelector={GROUP}%2Fplacement%3D{name}"
        self._connection.ask("DELETE", self._path("placementdecisions") + query)

    def look(self) -> None:
        """Compare the decisions with what was asked for."""
        status, body = self._connection.ask("GET", self._path("placementdecisions"))
        if status != 200:
            return
        chosen: dict[str, list[str]] = {}
        for each in msgspec.json.decode(body)["items"]:
            name = each["metadata"]["labels"].get(f"{GROUP}/placement", "")
            chosen.setdefault(name, []).extend(
                one["clusterName"] for one in each.get("status", {}).get("decisions") or ()
            )
        now = time.monotonic()
        for name, (wanted, since) in self._asked.items():
            found = chosen.get(name, [])
            if len(found) != len({*found}):
                self._problem(f"placement {name} has a cluster twice: {found}")
            if len(found) > wanted:
                self._problem(f"placement {name} has {len(found)} clusters and asked for {wanted}")
            if len(found) == wanted and name not in self._decided:
                self._decided.add(name)
                self.decided += 1
            elif name not in self._decided and now - since > IN_TIME:
                self._problem(f"placement {name} has {len(found)} of {wanted} clusters after {IN_TIME:g} s")

    def _problem(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)

    def _path(self, plural: str) -> str:
        return f"{API}/v1beta1/namespaces/{self._namespace}/{plural}"

    def _must(self, method: str, path: str, body: object) -> None:
        status, said = self._connection.ask(method, path, body)
        if status not in (200, 201, 409):
            raise RuntimeError(f"{method} {path}: {status} {said.decode()[:300]}")


def _object(kind: str, version: str, name: str) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": name}}
