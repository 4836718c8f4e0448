"""deploy/placement on a real hub: what it grants is enough, and its pages are for those who may see them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane import deployed_placement
from tests.controlplane.api import Api
from tests.controlplane.deployed_placement import rendered, running
from tests.controlplane.hubs import GROUP
from tests.controlplane.place_process import Hub, a_condition
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until

pytestmark = pytest.mark.controlplane


@pytest.fixture(scope="module")
def granted(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with deployed_placement.granted(plane, tmp_path_factory.mktemp("deploy")):
        yield plane


def test_a_server_takes_the_manifests(granted: ControlPlane, tmp_path: Path) -> None:
    text = yaml.safe_dump_all(rendered(granted, tmp_path))
    said = granted.kubectl("apply", "--dry-run=server", "--filename=-", input=text)
    assert "deployment.apps/placement created (server dry run)" in said


def test_the_account_has_the_rights_it_needs(granted: ControlPlane, namespace: str, tmp_path: Path) -> None:
    hub = Hub(granted, namespace)
    with running(granted, tmp_path) as (_, program):
        hub.explain = program.tail
        hub.clusters("d1", "d2")
        hub.bind()
        hub.place()
        hub.gets("d1", "d2")
        hub.place(decisionStrategy={"groupStrategy": {"clustersPerDecisionGroup": 1}})
        until("two objects", lambda: len(hub.decisions()) == 2, 60, program.tail)
        hub.place()
        until("one is deleted", lambda: len(hub.decisions()) == 1, 60, program.tail)
        hub.change(
            hub.path("managedclusters", "d1"),
            lambda each: each["status"].update(conditions=[a_condition("Unknown")]),
            "status",
        )
        hub.gets("d2")
        until("d1 is tainted", lambda: hub.taints("d1") == ["unreachable:NoSelect"], 60, program.tail)
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        until("events are written", lambda: "DecisionDelete" in reasons(granted, path), 60, program.tail)
        hub.tidy()
        granted.api().must("DELETE", hub.path("placements"))


def reasons(plane: ControlPlane, path: str) -> set[str]:
    return {each["reason"] for each in plane.api().must("GET", path)["items"]}


def test_its_pages_ask_who_comes(granted: ControlPlane, namespace: str, tmp_path: Path) -> None:
    """A reader of placements in one namespace may see why they are as they are; a writer, what would be."""
    hub = Hub(granted, namespace)
    hub.clusters("d1", "d2")
    hub.bind()
    hub.place(numberOfClusters=1)
    granted.kubectl("create", "serviceaccount", "reader", "-n", namespace)
    granted.kubectl("create", "role", "reader", "--verb=get", f"--resource=placements.{GROUP}", "-n", namespace)
    granted.kubectl(
        "create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={namespace}:reader", "-n", namespace
    )
    reader = granted.kubectl("create", "token", "reader", "-n", namespace).strip()
    saved, unsaved = f"/debug/placements/{namespace}/p", "/debug/placements"
    wish = {"kind": "Placement", "metadata": {"name": "wish", "namespace": namespace}, "spec": {"numberOfClusters": 2}}
    with running(granted, tmp_path) as (url, _):
        hub.gets("d1")

        def asked(token: str | None, method: str, path: str, body: Any = None) -> int:
            return Api(url, token=token).ask(method, path, body).status

        assert asked(None, "GET", "/healthz") == 200
        assert [asked(None, "GET", path) for path in (saved, "/metrics")] == [403, 403]
        assert asked("nonsense", "GET", saved) == 401
        assert [asked(reader, "GET", saved), asked(reader, "POST", unsaved, wish)] == [200, 403]
        assert [asked(reader, "GET", f"/debug/placements/default/{name}") for name in "pq"] == [403, 403]
        admin = granted.tokens["admin"]
        assert asked(admin, "GET", f"/debug/placements/{namespace}/q") == 404
        assert asked(admin, "DELETE", saved) == 405
        assert asked(admin, "POST", unsaved, ["no placement"]) == 400
        assert asked(admin, "POST", unsaved, wish | {"metadata": {"name": "wish"}}) == 400
        assert asked(admin, "POST", unsaved, wish | {"spec": {"clusterSets": ["x" * 2**20]}}) == 400

        def page() -> Any:
            return json.loads(Api(url, token=reader).get(saved).body)

        passed_over = [{"clusterName": "d2", "needs": 101}]
        until("it has seen its decision", lambda: page().get("passedOver") == passed_over, 60, lambda: str(page()))
        assert [each["clusterName"] for each in page()["selected"]] == ["d1"]
        found = json.loads(Api(url, token=admin).ask("POST", unsaved, wish).body)
        assert [each["clusterName"] for each in found["selected"]] == ["d2", "d1"], "Balance: p has d1"
        assert hub.api.get(hub.path("placements", "wish")).status == 404, "nothing is written"
    hub.tidy()
