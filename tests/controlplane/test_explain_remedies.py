"""Remedies typed as they are printed, where the real kube-scheduler schedules and no Stowplan runs.

For each cause there is a pod that waits for a node (`remedy_cases.py`, `remedy_volume_cases.py`). `stowplan explain` is
asked as a user with read-only rights would; the commands of a remedy go to a shell; kube-scheduler then schedules the
pod, or the one that replaces it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane import remedy_cases, remedy_volume_cases
from tests.controlplane.deployed import reader_of
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program, until
from tests.controlplane.remedy_cases import POOLED, SCHEDULERS, SPREADING, Case, owned
from tests.controlplane.waiting_pods import WaitingPod, explained, typed, waiting

pytestmark = pytest.mark.controlplane


def each_remedy() -> Iterator[Any]:
    """Yield every remedy of every case. `make test` types the first one of most cases, and each remedy once."""
    known: set[str] = set()
    for each in (*remedy_cases.CASES, *remedy_volume_cases.CASES):
        case: Any = each.values[0]
        for at, code in enumerate(case.remedies):
            more = [pytest.mark.full] if at and code in known else []
            if not more and not each.marks:
                known.add(code)
            yield pytest.param(case, code, id=f"{each.id}: {code}", marks=[*each.marks, *more])


@pytest.fixture(scope="module")
def kube_scheduler(plane: ControlPlane) -> Iterator[Program]:
    """It alone schedules. Leases that schedulers of other tests left behind are taken away."""
    plane.kubectl("-n", "kube-system", "delete", "leases", "--all")
    with plane.start_kube_scheduler(SCHEDULERS) as program:
        yield program


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What kube-scheduler runs with, as a file."""
    file = tmp_path_factory.mktemp("schedulers") / "schedulers.json"
    about = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file.write_text(json.dumps(about | SCHEDULERS), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def reader(plane: ControlPlane) -> Path:
    """The kubeconfig of an account with the rights of deploy/read-only.yaml, and no others."""
    return reader_of(plane)


@pytest.mark.usefixtures("kube_scheduler")
@pytest.mark.parametrize(("case", "code"), list(each_remedy()))
def test_the_printed_command_helps(
    plane: ControlPlane, reader: Path, configuration: Path, tmp_path: Path, case: Case, code: str
) -> None:
    with waiting(plane, case) as pod:
        asked = (pod.name(), "-n", pod.namespace, *options(case, configuration, tmp_path))
        deadline = time.monotonic() + 30  # claims are bound by a controller, which may be slower
        found, shown = explained(reader, *asked)
        while code not in [each["code"] for each in found["remedies"]] and time.monotonic() < deadline:
            found, shown = explained(reader, *asked)
        causes = [*found["podCauses"], *(each for group in found["causes"] for each in group["causes"])]
        assert case.cause in [each["code"] for each in causes], causes
        best = list(dict.fromkeys(each["code"] for each in found["remedies"]))[:2]
        assert {*best} <= {*case.remedies}, f"{best} are the best two, and not all of them are typed"
        remedy = next((each for each in found["remedies"] if each["code"] == code), None)
        assert remedy is not None, json.dumps(found["remedies"], indent=1)
        before = pod.with_nodes()
        apply(pod, remedy, shown)
        until("kube-scheduler schedules it", lambda: pod.is_scheduled(before), 90, pod.told)


def options(case: Case, configuration: Path, folder: Path) -> list[str]:
    """What explain must be told beside the name of the pod."""
    found = ["--config", str(configuration)] if case.profile in (SPREADING, POOLED) else []
    if case.templates:
        (folder / "templates.yaml").write_text(yaml.safe_dump_all(case.templates), encoding="utf-8")
        found += ["--node-templates", str(folder / "templates.yaml")]
    return found


def apply(pod: WaitingPod, remedy: Any, shown: str) -> None:
    """Type the commands, which are in what is shown to people; nodes, which have no command, are added."""
    added = [change for change in remedy["changes"] if change["type"] == "addNodes"]
    assert remedy["commands"] or added, remedy
    for command in remedy["commands"]:
        assert command in shown
        typed(pod.plane, command)
    for change in added:
        pod.add_nodes(change)


def run_explain(kubeconfig: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stowplan.apps.cli", "explain", *arguments]
    environment = os.environ | {"KUBECONFIG": str(kubeconfig), "COLUMNS": "80"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.usefixtures("kube_scheduler")
def test_what_may_not_be_read_is_named_in_one_line(plane: ControlPlane) -> None:
    account = {"kind": "ServiceAccount", "metadata": {"name": "few", "namespace": "default"}, "apiVersion": "v1"}
    group = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "few"},
        "rules": [{"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list"]}],
    }
    binding = {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "few"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "few"},
        "subjects": [{"kind": "ServiceAccount", "name": "few", "namespace": "default"}],
    }
    plane.kubectl("apply", "-f", "-", input="\n---\n".join(map(json.dumps, (account, role, binding))))
    few = plane.service_account_kubeconfig("default", "few")
    with plane.nodes(1, prefix="unseen", capacity={"cpu": "4"}), plane.namespace("unseen") as namespace:
        plane.kubectl("-n", namespace, "create", "-f", "-", input=json.dumps(owned("Deployment", cpu="9")))
        until("the pod exists", lambda: plane.api().must("GET", f"/api/v1/namespaces/{namespace}/pods")["items"], 60)
        done = run_explain(few, "deploy/web", "-n", namespace)
        assert done.returncode == 1 and "has no node" in done.stdout, done.stderr
        assert "kubectl -n" in done.stdout and "patch deployment web" in done.stdout
        configuration, line = done.stderr.splitlines()
        assert line.startswith("Not seen, for lack of rights: ")
        assert configuration.startswith("Decided with the default configuration")
        for kind in ("services", "replicasets.apps", "leases.coordination.k8s.io", "events.events.k8s.io"):
            assert kind in line
        role["rules"] = []
        plane.kubectl("apply", "-f", "-", input=json.dumps(role))
        until("the right is gone", lambda: run_explain(few, "-n", namespace).returncode == 2, 30)
        done = run_explain(few, "-n", namespace)
        assert "cannot be listed" in done.stderr and "deploy/read-only.yaml has the rights" in done.stderr
        assert "Traceback" not in done.stderr
