"""Taking the real kube-scheduler's place, as deploy/replace-kube-scheduler says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane import build, flags
from tests.controlplane.deployed import DEPLOY, Deployed, holder
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program, until

pytestmark = [pytest.mark.controlplane, pytest.mark.full]
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"


@pytest.fixture
def kube_scheduler(plane: ControlPlane, tmp_path: Path) -> Iterator[Program]:
    """The real one; unlike the plane's own it asks for its lease."""
    given = [*flags.serving(flags.free_port(), tmp_path), *flags.acting_as(plane.kubeconfig("scheduler"))]
    path = build.programs(plane.version)["kube-scheduler"]
    plane.api().ask("DELETE", LEASE)  # one that was killed may have left it, and would be taken for this one
    with Program(path, [*given, "--leader-elect=true"], tmp_path / "kube-scheduler.log") as program:
        program.wait_until(lambda: lease_exists(plane) and bool(holder(plane, "kube-scheduler")))
        yield program


def lease_exists(plane: ControlPlane) -> bool:
    return plane.api().answers(LEASE)


def configuration() -> Any:
    """What the component puts into the ConfigMap."""
    patches = yaml.safe_load((DEPLOY / "replace-kube-scheduler" / "kustomization.yaml").read_text())["patches"]
    (config_map,) = (each["patch"] for each in patches if each["target"]["kind"] == "ConfigMap")
    return yaml.safe_load(yaml.safe_load(config_map)["data"]["config.yaml"])


def arguments(plane: ControlPlane, folder: Path, port: int) -> list[str]:
    """As in a static pod that kubeadm made: with kube-scheduler's own user, and nothing of our RBAC."""
    (folder / "config.yaml").write_text(yaml.safe_dump(configuration()))
    run = ["-m", "stowplan.apps.cli", "run", f"--config={folder / 'config.yaml'}", "--leader-elect=true"]
    return [*run, *flags.acting_as(plane.kubeconfig("scheduler")), "--bind-address=127.0.0.1", f"--secure-port={port}"]


def test_two_for_one_name_are_refused(plane: ControlPlane, kube_scheduler: Program, tmp_path: Path) -> None:
    given = arguments(plane, tmp_path, flags.free_port())
    with Program(Path(sys.executable), given, tmp_path / "log") as program:
        until("it gives up", lambda: program.code is not None, explain=program.tail)
    assert program.code == 2
    assert "default-scheduler is served by kube-scheduler" in program.tail()
    assert "--replace" in program.tail()


def test_the_lease_goes_over(plane: ControlPlane, namespace: str, kube_scheduler: Program, tmp_path: Path) -> None:
    port = flags.free_port()
    given = [*arguments(plane, tmp_path, port), "--replace"]
    pods = f"/api/v1/namespaces/{namespace}/pods"
    spec = {"containers": [{"name": "c", "image": "pause"}]}  # of no scheduler: default-scheduler's

    def reporter(name: str) -> str:
        found = plane.api().must("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
        assigned = [e for e in found if e["regarding"]["name"] == name and e["reason"] == "Scheduled"]
        return assigned[0]["reportingInstance"] if assigned else ""

    with plane.nodes(2), Program(Path(sys.executable), given, tmp_path / "log") as ours:
        scheduler = Deployed(plane, ours, port)
        ours.wait_until(lambda: "Caches are synced" in ours.log.read_text())
        plane.api().must("POST", pods, {"metadata": {"name": "before"}, "spec": spec})
        until("kube-scheduler binds it", lambda: reporter("before"))
        assert not scheduler.leads(), "one leads, the other follows"
        kube_scheduler.stop(grace=60)
        ours.wait_until(scheduler.leads)
        plane.api().must("POST", pods, {"metadata": {"name": "after"}, "spec": spec})
        until("we bind it", lambda: reporter("after"), explain=ours.tail)
        log = ours.log.read_text()
        ours.stop(grace=90)
    assert 'lease="kube-scheduler"' in log
    assert "forbidden" not in log
    assert ours.code == 0
    assert not holder(plane, "kube-scheduler")
