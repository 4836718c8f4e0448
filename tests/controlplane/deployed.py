"""Stowplan as `deploy/` has it: with that account's own token and rights, and that configuration, on a real plane."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane import flags
from tests.controlplane.api import Api
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program

DEPLOY = Path(__file__).parents[2] / "deploy"
ACCOUNT, NAMESPACE = "stowplan", "kube-system"


def documents(file: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / file).read_text()))


def document(file: str, kind: str) -> Any:
    """The one of this kind."""
    (found,) = (each for each in documents(file) if each["kind"] == kind)
    return found


def configuration() -> Any:
    """What the ConfigMap says."""
    return yaml.safe_load(document("second-scheduler.yaml", "ConfigMap")["data"]["config.yaml"])


class Deployed:
    """A running scheduler, its secure port, and the plane it serves."""

    def __init__(self, plane: ControlPlane, program: Program, port: int) -> None:
        self.plane, self.program, self.url = plane, program, f"https://{flags.LOOPBACK}:{port}"

    def page(self, path: str, token: str | None = None) -> tuple[int, str]:
        """Status and text of a page, asked for with this token or none."""
        answer = Api(self.url, token=token).get(path)
        return answer.status, answer.body.decode()

    def is_ready(self) -> bool:
        return Api(self.url).answers("/readyz")

    def leads(self) -> bool:
        api = Api(self.url, token=self.plane.tokens["admin"])
        return api.answers("/readyz") and api.get("/leader").body == b"leading\n"


def grant(plane: ControlPlane) -> None:
    """The account and its rights; again and again, if need be."""
    plane.kubectl("apply", "--filename", str(DEPLOY / "rbac.yaml"))


def reader_of(plane: ControlPlane) -> Path:
    """The kubeconfig of an account with the rights of read-only.yaml, and no others."""
    about = {"name": "reader", "namespace": "default"}
    made = [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about}]
    subjects = [{"kind": "ServiceAccount", **about}]
    made += [each | {"subjects": subjects} if "subjects" in each else each for each in documents("read-only.yaml")]
    plane.kubectl("apply", "--filename=-", input=yaml.safe_dump_all(made))
    return plane.service_account_kubeconfig("default", "reader")


def flags_for(plane: ControlPlane, folder: Path, config: Any, port: int, seen: Path | None = None) -> list[str]:
    """Flags to run as the account; its files are in `folder`, which the program sees as `seen`."""
    grant(plane)
    kubeconfig = json.loads(plane.service_account_kubeconfig(NAMESPACE, ACCOUNT).read_text())
    del kubeconfig["clusters"][0]["cluster"]["certificate-authority"]
    assert plane.ca is not None, "it has users, so it speaks HTTPS"
    (folder / "ca.crt").write_text(plane.ca.read_text())
    kubeconfig["clusters"][0]["cluster"]["certificate-authority"] = "ca.crt"  # from the kubeconfig's folder on
    (folder / "kubeconfig").write_text(json.dumps(kubeconfig))
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    seen = seen or folder
    return [
        f"--config={seen / 'config.yaml'}",
        f"--kubeconfig={seen / 'kubeconfig'}",
        f"--bind-address={flags.LOOPBACK}",
        f"--secure-port={port}",
        "--v=2",
    ]


@contextlib.contextmanager
def deployed(
    plane: ControlPlane, folder: Path, config: Any, more: Sequence[str] = (), *, waits: bool = False
) -> Iterator[Deployed]:
    """From sources; leading when the block begins, or ready if it waits for the lease."""
    port = flags.free_port()
    arguments = ["-m", "stowplan.apps.cli", "run", *flags_for(plane, folder, config, port), *more]
    log = folder / "stowplan.log"
    with running(plane, Path(sys.executable), arguments, log, port, waits=waits) as scheduler:
        yield scheduler


@contextlib.contextmanager
def running(
    plane: ControlPlane, path: Path, arguments: Sequence[str], log: Path, port: int, *, waits: bool = False
) -> Iterator[Deployed]:
    with Program(path, arguments, log) as program:
        scheduler = Deployed(plane, program, port)
        program.wait_until(scheduler.is_ready if waits else scheduler.leads)
        yield scheduler
        program.check()
        program.stop(grace=90)
    assert program.code == 0, program.tail()
    assert not holder(plane), "the lease is given back"


def check_no_limit_met(log: Path) -> None:
    """What is written into a namespace that is going is forbidden as well; only rights are asked for here."""
    text = log.read_text(encoding="utf-8").replace("\\", "")
    met = [line for line in text.splitlines() if 'forbidden: User "' in line]
    assert not met, "it never met its limits"


def holder(plane: ControlPlane, lease_name: str = "stowplan") -> str:
    """Who has the lease."""
    lease = plane.api().must("GET", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{lease_name}")
    return str(lease["spec"].get("holderIdentity") or "")
