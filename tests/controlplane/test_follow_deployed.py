"""deploy/follow on a real server, as hub and as member cluster: what it grants is enough, and a server takes it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane import flags
from tests.controlplane.api import Api
from tests.controlplane.deployed import DEPLOY
from tests.controlplane.hubs import GROUP, apply_status, define
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program, until

pytestmark = pytest.mark.controlplane

FOLLOW = DEPLOY / "follow"
WORKLOAD = DEPLOY.parent / "examples" / "08-follow-decisions" / "workload.yaml"
DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/database"
PLACEMENT = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Placement", "metadata": {"name": "web", "namespace": "default"}}
DECISION = {
    "apiVersion": f"{GROUP}/v1beta1",
    "kind": "PlacementDecision",
    "metadata": {"name": "web-1", "namespace": "default", "labels": {f"{GROUP}/placement": "web"}},
}


@pytest.fixture(scope="module")
def granted(plane: ControlPlane) -> Iterator[ControlPlane]:
    define(plane)
    files = ("--filename", str(FOLLOW / "rbac.yaml"), "--filename", str(FOLLOW / "member" / "rbac.yaml"))
    plane.kubectl("apply", *files)
    yield plane
    plane.kubectl("delete", "--wait=false", "--ignore-not-found", *files)
    for plural, name in (("placements", "web"), ("placementdecisions", "web-1")):
        plane.api().ask("DELETE", f"/apis/{GROUP}/v1beta1/namespaces/default/{plural}/{name}")


def choose(plane: ControlPlane, *clusters: str) -> None:
    condition = {"type": "PlacementSatisfied", "status": "True", "reason": "AllDecisionsScheduled", "message": "",
                 "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
    decisions = [{"clusterName": name, "reason": ""} for name in clusters]
    status = {"numberOfSelectedClusters": len(clusters), "conditions": [condition], "decisionGroups": []}
    apply_status(plane, yaml.safe_dump(DECISION | {"status": {"decisions": decisions}}))
    apply_status(plane, yaml.safe_dump(PLACEMENT | {"spec": {}, "status": status}))


def test_a_server_takes_the_manifests(granted: ControlPlane) -> None:
    text = granted.kubectl("kustomize", str(FOLLOW))
    said = granted.kubectl("apply", "--dry-run=server", "--filename=-", input=text)
    assert "deployment.apps/follow created (server dry run)" in said


def test_the_accounts_have_the_rights_that_they_need(granted: ControlPlane, tmp_path: Path) -> None:
    words, port = arguments(granted, tmp_path), flags.free_port()
    words += [f"--secure-port={port}", f"--bind-address={flags.LOOPBACK}", "--resync-interval=1s"]
    api = Api(f"https://{flags.LOOPBACK}:{port}", token=granted.tokens["admin"])
    with Program(Path(sys.executable), words, tmp_path / "follow.log") as program:
        program.wait_until(lambda: api.answers("/readyz") and api.get("/leader").body == b"leading\n")
        choose(granted, "east")
        until("it is created", lambda: granted.api().answers(DEPLOYMENT), 60, program.tail)
        granted.kubectl("scale", "deployment/database", "--replicas=5")
        until("it is brought back", lambda: replicas(granted) == 1, 60, program.tail)
        planned = subprocess.run([sys.executable, *words, "--dry-run"], capture_output=True, text=True, timeout=60)
        assert planned.stdout == "east: nothing to do\n", planned.stderr
        choose(granted)
        until("it is deleted", lambda: not granted.api().answers(DEPLOYMENT), 60, program.tail)
        program.check()
        assert "forbidden" not in program.tail(1000)
        program.stop(grace=60)
    assert program.code == 0, program.tail()
    assert program.log.read_text().count('"Brought back"') == 1, "what is as it should be is not written again"


def arguments(plane: ControlPlane, folder: Path) -> list[str]:
    """The Deployment's own, with the accounts' kubeconfigs."""
    (deployment,) = (
        each for each in yaml.safe_load_all((FOLLOW / "deployment.yaml").read_text()) if each["kind"] == "Deployment"
    )
    given: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    (folder / "clusters").mkdir()
    member = Path(plane.service_account_kubeconfig("default", "stowplan-follow")).read_text()
    (folder / "clusters" / "east").write_text(member)
    found = {"/etc/stowplan/workload": str(WORKLOAD), "/etc/stowplan/clusters": str(folder / "clusters")}
    for old, new in found.items():
        given = [each.replace(old, new) for each in given]
    hub = f"--kubeconfig={plane.service_account_kubeconfig('default', 'follow')}"
    return ["-m", "stowplan.apps.cli", "place", "follow", *given, hub]


def replicas(plane: ControlPlane) -> Any:
    return json.loads(plane.api().get(DEPLOYMENT).body)["spec"]["replicas"]
