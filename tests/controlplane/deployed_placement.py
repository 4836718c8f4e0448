"""`stowplan place` as `deploy/placement` has it: with its account's rights, and its Deployment's arguments."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane import flags
from tests.controlplane.api import Api
from tests.controlplane.deployed import DEPLOY
from tests.controlplane.hubs import define
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program, until

NAMESPACE = "stowplan-placement"
RUNS = ("Deployment", "PodDisruptionBudget")


def rendered(plane: ControlPlane, folder: Path) -> list[Any]:
    """As its kustomization says: with the last two lines uncommented."""
    for file in (DEPLOY / "placement").rglob("*.yaml"):
        copy = folder / file.relative_to(DEPLOY / "placement")
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(
            file.read_text().replace("# components:", "components:").replace("#   - failover", "  - failover")
        )
    return list(yaml.safe_load_all(plane.kubectl("kustomize", str(folder))))


@contextlib.contextmanager
def granted(plane: ControlPlane, folder: Path) -> Iterator[None]:
    """All but what runs, with the component."""
    define(plane)
    gone = f"/api/v1/namespaces/{NAMESPACE}"
    until("the last one's namespace is gone", lambda: not plane.api().answers(gone), 120)
    text = yaml.safe_dump_all([each for each in rendered(plane, folder) if each["kind"] not in RUNS])
    plane.kubectl("apply", "--filename=-", input=text)
    yield
    plane.kubectl("delete", "--wait=false", "--ignore-not-found", "--filename=-", input=text)


@contextlib.contextmanager
def running(plane: ControlPlane, folder: Path, *more: str) -> Iterator[tuple[str, Program]]:
    """As the account, with the Deployment's own arguments and leading; the address of its secure port."""
    (deployment,) = (each for each in rendered(plane, folder) if each["kind"] == "Deployment")
    words = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--taint-unavailable" in words
    port = flags.free_port()
    own = [f"--kubeconfig={plane.service_account_kubeconfig(NAMESPACE, 'placement')}"]
    own += [f"--secure-port={port}", f"--bind-address={flags.LOOPBACK}"]
    url = f"https://{flags.LOOPBACK}:{port}"
    api = Api(url, token=plane.tokens["admin"])
    command = ["-m", "stowplan.apps.cli", "place", *words, *own, *more]
    with Program(Path(sys.executable), command, folder / "place.log") as program:
        program.wait_until(lambda: api.answers("/readyz") and api.get("/leader").body == b"leading\n")
        yield url, program
        program.check()
        assert "forbidden: User" not in program.tail(1000)
        program.stop(grace=90)
    assert program.code == 0, program.tail()
