"""`stowplan place` as a child process at a hub, and what tests do with the hub: clusters, scores, placements."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.controlplane.cluster import Cluster
from tests.controlplane.flags import free_port
from tests.controlplane.hubs import GROUP
from tests.controlplane.process import Program, until
from tests.controlplane.stowplan_process import PYTHON, Stowplan

SET_LABEL = f"{GROUP}/clusterset"
AVAILABLE = "ManagedClusterConditionAvailable"
# Quick enough to be waited for after a kill, and still longer than a busy machine may forget a program.
QUICK_LEASE = (
    "--leader-elect-lease-duration=9s", "--leader-elect-renew-deadline=7s", "--leader-elect-retry-period=500ms"
)  # fmt: skip
# This lease does not expire while the hub is away, and no other program waits for it if its holder is killed.
LONG_LEASE = (
    "--leader-elect-lease-duration=300s", "--leader-elect-renew-deadline=250s", "--leader-elect-retry-period=500ms",
    "--leader-elect-resource-name=long",
)  # fmt: skip
VERSIONS = {
    "managedclusters": "v1",
    "managedclustersets": "v1beta2",
    "managedclustersetbindings": "v1beta2",
    "addonplacementscores": "v1alpha1",
    "placements": "v1beta1",
    "placementdecisions": "v1beta1",
}
KINDS = {
    "managedclusters": "ManagedCluster",
    "managedclustersets": "ManagedClusterSet",
    "managedclustersetbindings": "ManagedClusterSetBinding",
    "addonplacementscores": "AddOnPlacementScore",
    "placements": "Placement",
}
MOMENT = "2026-01-01T00:00:00Z"


class Placer(Stowplan):
    """`stowplan place`; its pages are on a plain port of the loopback."""

    def __init__(self, kubeconfig: Path, folder: Path, name: str, *arguments: str) -> None:
        self.port = free_port()
        command = ["-m", "stowplan.apps.cli", "place", "--kubeconfig", str(kubeconfig), "--secure-port", "0", "-v", "2"]
        words = [*command, "--plain-port", str(self.port), *arguments]
        Program.__init__(self, PYTHON, words, folder / f"{name}.log")


@contextlib.contextmanager
def placing(cluster: Cluster, name: str, *arguments: str, kubeconfig: Path | None = None) -> Iterator[Placer]:
    """One that leads and decides."""
    with Placer(kubeconfig or cluster.kubeconfig(), cluster.folder, name, *arguments) as program:
        program.wait_until_leading()
        yield program
        program.check()


class Hub:
    """A hub as the users of one namespace have it; what it is given without a namespace it takes away in the end."""

    def __init__(self, cluster: Cluster, namespace: str, explain: Callable[[], str] = str) -> None:
        self.cluster, self.namespace, self.explain = cluster, namespace, explain
        self.api = cluster.api()
        self._made: list[str] = []

    # -- objects

    def path(self, plural: str, name: str = "", namespace: str | None = None) -> str:
        within = "" if plural in ("managedclusters", "managedclustersets") else namespace or self.namespace
        middle = f"/namespaces/{within}" if within else ""
        return f"/apis/{GROUP}/{VERSIONS[plural]}{middle}/{plural}" + (f"/{name}" if name else "")

    def make(self, plural: str, name: str, *, namespace: str | None = None, **parts: Any) -> None:
        """A new object; its status goes through its own door."""
        about = {"apiVersion": f"{GROUP}/{VERSIONS[plural]}", "kind": KINDS[plural]}
        document = about | {"metadata": {"name": name, "labels": parts.pop("labels", {})}, **parts}
        self.api.must("POST", self.path(plural, namespace=namespace), document)
        own = self.path(plural, name, namespace)
        if plural in ("managedclusters", "managedclustersets", "addonplacementscores"):
            self._made.append(own)
        if "status" in parts:
            self.change(own, lambda each: each.update(status=parts["status"]), "status")

    def change(self, path: str, edit: Callable[[Any], None], part: str = "") -> None:
        """Read, edit and write; repeat after a conflict."""
        below = f"/{part}" if part else ""
        while True:
            document = self.api.must("GET", path)
            edit(document)
            answer = self.api.ask("PUT", path + below, document)
            if answer.status != 409:
                assert answer.status < 300, answer.body
                return

    def gone(self, path: str) -> None:
        assert self.api.ask("DELETE", path).status < 300
        until(f"{path} is gone", lambda: self.api.get(path).status == 404)

    def tidy(self) -> None:
        for path in reversed(self._made):
            self.api.ask("DELETE", path)

    # -- a fleet

    def clusters(self, *names: str, **more: Any) -> None:
        for name in names:
            self.a_cluster(name, **more)

    def a_cluster(
        self, name: str, *, cpu: tuple[int, int] | None = None, memory: tuple[int, int] | None = None,
        labels: Mapping[str, str] | None = None, claims: Mapping[str, str] | None = None,
        taints: Sequence[Mapping[str, Any]] = (), of: str = "default", lease_seconds: int = 60,
    ) -> None:  # fmt: skip
        """`cpu` and `memory`: allocatable and capacity."""
        amounts = {key: value for key, value in (("cpu", cpu), ("memory", memory)) if value is not None}
        status = {
            "allocatable": {key: str(value[0]) for key, value in amounts.items()},
            "capacity": {key: str(value[1]) for key, value in amounts.items()},
            "clusterClaims": [{"name": key, "value": value} for key, value in (claims or {}).items()],
            "conditions": [a_condition("True")],
        }
        spec = {"hubAcceptsClient": True, "leaseDurationSeconds": lease_seconds, "taints": list(taints)}
        self.make("managedclusters", name, labels={SET_LABEL: of} | dict(labels or {}), spec=spec, status=status)

    def taint(self, name: str, *taints: Mapping[str, Any]) -> None:
        self.change(self.path("managedclusters", name), lambda each: each["spec"].update(taints=list(taints)))

    def taints(self, name: str) -> list[str]:
        spec = self.api.must("GET", self.path("managedclusters", name))["spec"]
        return [f"{each['key'].rpartition('/')[2]}:{each['effect']}" for each in spec.get("taints", ())]

    def bind(self, name: str = "default", **spec: Any) -> None:
        """A set, if need be, and this namespace's binding to it."""
        if self.api.get(self.path("managedclustersets", name)).status == 404:
            self.make("managedclustersets", name, spec=spec)
        self.make("managedclustersetbindings", name, spec={"clusterSet": name})

    def score(self, cluster: str, value: int, *, name: str = "score", resource: str = "demo", **more: Any) -> None:
        """A score of a cluster, in its namespace; written over, if it is there."""
        status = {"scores": [{"name": name, "value": value}], **more}
        path = self.path("addonplacementscores", resource, cluster)
        if self.api.get(path).status == 404:
            self.make("addonplacementscores", resource, namespace=cluster, status=status)
        else:
            self.change(path, lambda each: each.update(status=status), "status")

    # -- placements

    def place(self, name: str = "p", **spec: Any) -> None:
        """A new placement, or another spec for the one that is there."""
        path = self.path("placements", name)
        if self.api.get(path).status == 404:
            self.make("placements", name, spec=spec)
        else:
            self.change(path, lambda each: each.update(spec=spec))

    def slices(self, name: str = "p") -> dict[str, list[str]]:
        """The clusters of each decision object of a placement."""
        return {
            each["metadata"]["name"]: [one["clusterName"] for one in each.get("status", {}).get("decisions") or ()]
            for each in self.decisions(name)
        }

    def decisions(self, name: str = "p") -> list[Any]:
        items = self.api.must("GET", self.path("placementdecisions"))["items"]
        return [each for each in items if each["metadata"]["labels"].get(f"{GROUP}/placement") == name]

    def chosen(self, name: str = "p") -> list[str]:
        return sorted(cluster for clusters in self.slices(name).values() for cluster in clusters)

    def groups(self, name: str = "p") -> list[tuple[str, int]]:
        status = self.api.must("GET", self.path("placements", name)).get("status", {})
        return [(each.get("decisionGroupName", ""), each["clusterCount"]) for each in status.get("decisionGroups", ())]

    def condition(self, kind: str, name: str = "p") -> dict[str, Any]:
        status = self.api.must("GET", self.path("placements", name)).get("status", {})
        return next((each for each in status.get("conditions", ()) if each["type"] == kind), {})

    def gets(self, *clusters: str, name: str = "p", seconds: float = 60) -> None:
        """Until the placement has just these clusters, and says so."""

        def as_wanted() -> bool:
            status = self.api.must("GET", self.path("placements", name)).get("status", {})
            return self.chosen(name) == sorted(clusters) and status.get("numberOfSelectedClusters") == len(clusters)

        until(f"{name} gets {', '.join(clusters) or 'nothing'}", as_wanted, seconds, self._state(name))

    def gets_number(self, number: int, name: str = "p", seconds: float = 60) -> None:
        until(f"{name} gets {number}", lambda: len(self.chosen(name)) == number, seconds, self._state(name))

    def says(self, kind: str, status: str, reason: str, name: str = "p") -> dict[str, Any]:
        def found() -> bool:
            condition = self.condition(kind, name)
            return (condition.get("status"), condition.get("reason")) == (status, reason)

        until(f"{kind} is {status}/{reason}", found, 60, self._state(name))
        return self.condition(kind, name)

    def _state(self, name: str) -> Callable[[], str]:
        return lambda: f"{self.slices(name)}\n{self.condition('PlacementSatisfied', name)}\n{self.explain()}"


def a_condition(status: str) -> dict[str, str]:
    return {"type": AVAILABLE, "status": status, "reason": "Test", "message": "", "lastTransitionTime": MOMENT}


def a_taint(key: str, effect: str, value: str = "", **more: Any) -> dict[str, Any]:
    return {"key": key, "effect": effect, **({"value": value} if value else {}), **more}


def built_in(**weights: int) -> list[dict[str, Any]]:
    return [
        {"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": weight} for name, weight in weights.items()
    ]


def add_on(resource: str = "demo", score: str = "score", weight: int = 1) -> dict[str, Any]:
    coordinate = {"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": score}}
    return {"scoreCoordinate": coordinate, "weight": weight}


def exact(*configurations: Any) -> dict[str, Any]:
    return {"mode": "Exact", "configurations": list(configurations)}
