"""Story 3 of the seed, from end to end on real control planes: the API server of the primary is killed, the Deployment
moves to the backup, and back when the primary is there again.

    hub       `stowplan place` as deploy/placement has it, `stowplan place follow` as deploy/follow has it
    members   two control planes; an agent renews the lease of each while its API server answers, as klusterlet does

Everybody has an account of their own, with the rights of `deploy/` alone, and holds a lease.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane import deployed_placement, flags
from tests.controlplane.api import Api
from tests.controlplane.deployed import DEPLOY
from tests.controlplane.hubs import SEED, apply_status, wait_until_gone
from tests.controlplane.place_process import Hub
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program, until
from tests.controlplane.test_placement_stories import DEPLOYMENT, EXAMPLE, LEASE, moment

pytestmark = pytest.mark.controlplane

NAMESPACE, MEMBERS = "ns1", ("primary", "backup")  # the seed's
FOLLOW = DEPLOY / "follow"


@pytest.fixture(
    params=[
        pytest.param(False, id="bare servers"),
        pytest.param(True, id="with controllers, nodes and kube-scheduler", marks=pytest.mark.full),
    ]
)
def members(request: pytest.FixtureRequest) -> Iterator[dict[str, ControlPlane]]:
    whole: bool = request.param
    with contextlib.ExitStack() as stack:
        found = {}
        for name in MEMBERS:
            plane = found[name] = stack.enter_context(ControlPlane(controller_manager=whole, kwok=whole))
            plane.kubectl("apply", "--filename", str(FOLLOW / "member" / "rbac.yaml"))
            if whole:
                stack.enter_context(plane.nodes(1, prefix=name))
                plane.start_kube_scheduler()
        yield found


@pytest.fixture
def hub(plane: ControlPlane, tmp_path: Path) -> Iterator[Hub]:
    """The seed's clusters, scores and placement, and two programs with their rights."""
    with deployed_placement.granted(plane, tmp_path):
        for name in (*MEMBERS, NAMESPACE):
            plane.api().must("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        found = Hub(plane, NAMESPACE)
        found.bind()
        found.clusters(*MEMBERS, lease_seconds=2)  # five times that is the grace
        for name in MEMBERS:
            apply_status(plane, (SEED / f"recovery-score-{name}.yaml").read_text())
        plane.kubectl("apply", "--filename", str(SEED / "recovery-placement.yaml"))
        plane.kubectl("apply", "--filename=-", input=renamed("rbac.yaml"))
        yield found
        found.tidy()
        plane.kubectl("delete", "--wait=false", "--filename=-", input=renamed("rbac.yaml"))
        for name in (*MEMBERS, NAMESPACE):
            plane.api().must("DELETE", f"/api/v1/namespaces/{name}")
        wait_until_gone(plane, *MEMBERS, NAMESPACE)


def renamed(file: str) -> str:
    """A file of deploy/follow for the seed's Placement: its README says where the names are."""
    text = (FOLLOW / file).read_text().replace("default.web", f"{NAMESPACE}.placement").replace("[web]", "[placement]")
    return text.replace("default/web", f"{NAMESPACE}/placement").replace(
        "namespace: default", f"namespace: {NAMESPACE}"
    )


class Agents:
    """What klusterlet does: renew a cluster's lease on the hub while its API server answers."""

    def __init__(self, hub: Hub, members: dict[str, ControlPlane]) -> None:
        self._hub, self._members, self.silent = hub, members, set[str]()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Agents:
        for name in self._members:
            body = {"metadata": {"name": LEASE}, "spec": {"holderIdentity": LEASE, "renewTime": moment()}}
            self._hub.api.must("POST", self._path(name).rpartition("/")[0], body)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def _path(self, name: str) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{name}/leases/{LEASE}"

    def _work(self) -> None:
        while not self._stop.wait(0.5):
            for name, plane in self._members.items():
                if name not in self.silent and plane.api().answers("/readyz"):
                    self._hub.change(self._path(name), lambda each: each["spec"].update(renewTime=moment()))


@contextlib.contextmanager
def following(hub: Hub, members: dict[str, ControlPlane], folder: Path) -> Iterator[Program]:
    """`place follow` with the Deployment's arguments, and the accounts of the hub and of both members."""
    (deployment,) = (each for each in yaml.safe_load_all(renamed("deployment.yaml")) if each["kind"] == "Deployment")
    words: list[str] = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    clusters = folder / "clusters"
    clusters.mkdir()
    for name, plane in members.items():
        token = plane.service_account_kubeconfig("default", "stowplan-follow")
        (clusters / name).write_text(token.read_text())
    found = {"/etc/stowplan/workload": str(EXAMPLE / "workload.yaml"), "/etc/stowplan/clusters": str(clusters)}
    for old, new in found.items():
        words = [each.replace(old, new) for each in words]
    port, on_hub = flags.free_port(), hub.cluster
    words += [f"--kubeconfig={on_hub.service_account_kubeconfig(NAMESPACE, 'follow')}", f"--secure-port={port}"]
    words += [f"--bind-address={flags.LOOPBACK}", "--resync-interval=1s"]
    api = Api(f"https://{flags.LOOPBACK}:{port}", token=on_hub.tokens["admin"])
    whole = ["-m", "stowplan.apps.cli", "place", "follow", *words]
    with Program(Path(sys.executable), whole, folder / "follow.log") as program:
        program.wait_until(lambda: api.answers("/readyz") and api.get("/leader").body == b"leading\n")
        yield program
        program.check()
        assert "forbidden" not in program.tail(1000)


def has_workload(plane: ControlPlane) -> bool:
    """The Deployment is there and, where somebody works on it, it is available."""
    answer = plane.api().get(DEPLOYMENT)
    if answer.status != 200:
        return False
    status: dict[str, Any] = answer.json().get("status", {})
    return status.get("availableReplicas", 0) == 1 if plane.has_kubelets else True


def has_none(plane: ControlPlane) -> bool:
    pods = plane.api().must("GET", "/api/v1/namespaces/default/pods")["items"] if plane.has_kubelets else []
    return plane.api().get(DEPLOYMENT).status == 404 and not pods


def test_a_deployment_leaves_a_primary_whose_api_server_is_killed(
    hub: Hub, members: dict[str, ControlPlane], tmp_path: Path
) -> None:
    primary, backup = members["primary"], members["backup"]
    assert isinstance(hub.cluster, ControlPlane)
    with contextlib.ExitStack() as stack:
        agents = stack.enter_context(Agents(hub, members))
        _, placer = stack.enter_context(deployed_placement.running(hub.cluster, tmp_path))
        follower = stack.enter_context(following(hub, members, tmp_path))

        def explain() -> str:
            return f"{placer.tail()}\n{follower.tail()}"

        hub.explain = explain
        hub.gets("primary", name="placement")
        until("it runs in the primary", lambda: has_workload(primary) and has_none(backup), 120, explain)

        primary.kill_apiserver()
        hub.gets("backup", name="placement", seconds=120)
        assert (hub.taints("primary"), hub.taints("backup")) == (["unreachable:NoSelect"], [])
        until("it runs in the backup", lambda: has_workload(backup), 120, explain)

        agents.silent.add("primary")  # the server is back before its agent is
        primary.restart_apiserver()
        until("the primary loses its copy", lambda: has_none(primary), 120, explain)
        assert has_workload(backup)

        agents.silent.clear()
        hub.gets("primary", name="placement", seconds=120)
        assert hub.taints("primary") == []
        until("it is back", lambda: has_workload(primary) and has_none(backup), 120, explain)
