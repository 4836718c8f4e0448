"""A plugin in a file brings a kind of its own (`examples/04-own-kind`). On a real server the scheduler starts before
the CRD is there, and has the rights of deploy/rbac.yaml and of what `config check --rbac` prints, and no others.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane import stowplan_process
from tests.controlplane.cluster import Cluster
from tests.controlplane.deployed import ACCOUNT, NAMESPACE, Deployed, configuration, deployed
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import a_live_pod, apply, bound, condition, wait_until_bound

EXAMPLE = Path(__file__).parents[2] / "examples" / "04-own-kind"
CRD = "teambudgets.example.com"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The plugin, and a configuration that takes it from there."""
    shutil.copy(EXAMPLE / "budgets.py", tmp_path)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config()), encoding="utf-8")
    return tmp_path


def config() -> Any:
    """deploy/'s own, with the example's profile."""
    return configuration() | {"profiles": yaml.safe_load((EXAMPLE / "config.yaml").read_text())["profiles"]}


@pytest.fixture
def undefined(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster without the CRD, before and afterwards."""
    yield cluster
    cluster.kubectl("delete", "--ignore-not-found", "--filename", str(EXAMPLE / "crd.yaml"))


def define(cluster: Cluster) -> None:
    cluster.kubectl("apply", "--filename", str(EXAMPLE / "crd.yaml"))
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{CRD}")


def command(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "stowplan.apps.cli", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def a_team_pod(name: str) -> dict[str, Any]:
    pod = a_live_pod(name, scheduler="budgeted")
    pod["metadata"]["labels"] = {"team": "blue"}
    return pod


def a_budget(most: int) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "TeamBudget",
        "metadata": {"name": "blue"},
        "spec": {"maxPods": most},
    }


def used(cluster: Cluster, namespace: str) -> int | None:
    found = cluster.api().must("GET", f"/apis/example.com/v1/namespaces/{namespace}/teambudgets/blue")
    number: int | None = found.get("status", {}).get("usedPods")
    return number


def why(cluster: Cluster, namespace: str, name: str) -> str:
    return str(condition(cluster, namespace, name).get("message", ""))


def forbidden(scheduler: Deployed) -> list[str]:
    """The lines of the log that say so of our kind."""
    lines = scheduler.program.log.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if CRD in line and "forbidden" in line]


@pytest.fixture
def rights(plane: ControlPlane, folder: Path) -> Iterator[str]:
    """What `config check` prints; it is gone afterwards."""
    printed = command("config", "check", "--rbac", str(folder / "config.yaml"))
    yield printed
    plane.kubectl("delete", "--ignore-not-found", "--filename=-", input=printed)


@pytest.mark.controlplane
@pytest.mark.parametrize("cluster", ["plane"], indirect=True)
def test_with_the_rights_that_config_check_prints_and_no_others(
    plane: ControlPlane, undefined: Cluster, namespace: str, folder: Path, rights: str
) -> None:
    code = f"--plugin-path={folder}"
    with plane.nodes(2, prefix="budgeted"), deployed(plane, folder, config(), [code]) as scheduler:
        explain = scheduler.program.tail
        apply(plane, namespace, a_live_pod("plain", scheduler="budgeted"), a_team_pod("web"))
        wait_until_bound(plane, namespace, 1, explain=explain)
        until("web is told", lambda: "there is no TeamBudget blue" in why(plane, namespace, "web"), 60, explain)

        define(plane)  # without the role, the kind stays unknown, and the log says so
        until("it meets its limits", lambda: forbidden(scheduler), 60, explain)
        line = forbidden(scheduler)[0]
        assert "403" in line and "plugin budgets.py:Budgets needs this right" in line and "config check --rbac" in line
        apply(plane, namespace, a_live_pod("second", scheduler="budgeted"))
        wait_until_bound(plane, namespace, 2, explain=explain)

        plane.kubectl("apply", "--filename=-", input=rights)
        apply(plane, namespace, a_budget(0))
        until("the budget is told", lambda: used(plane, namespace) == 0, 90, explain)
        met = len(forbidden(scheduler))
        assert set(bound(plane, namespace)) == {"plain", "second"}

        apply(plane, namespace, a_budget(1))
        wait_until_bound(plane, namespace, 3, 60, explain)
        until("the budget is told", lambda: used(plane, namespace) == 1, 60, explain)
        apply(plane, namespace, a_team_pod("late"))
        full = "team blue uses 1 of 1 pods"
        until("late is told", lambda: full in why(plane, namespace, "late"), 60, explain)
        access = ("--kubeconfig", str(plane.kubeconfig()), "--config", str(folder / "config.yaml"))
        assert full in command("explain", "late", "--namespace", namespace, *access)
        plane.kubectl("delete", "pod", "web", "--namespace", namespace, "--wait=false")
        until("late is bound", lambda: "late" in bound(plane, namespace), 60, explain)
        assert len(forbidden(scheduler)) == met, "the rights are enough"

    for part, verbs in {"": {"list", "watch"}, "status": {"patch"}}.items():
        every = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
        assert {verb for verb in every if allowed(plane, verb, part)} == verbs, "they are no wider than that"


def allowed(plane: ControlPlane, verb: str, subresource: str) -> bool:
    spec = {
        "user": f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"],
        "resourceAttributes": {
            "verb": verb, "group": "example.com", "resource": "teambudgets", "subresource": subresource
        },
    }  # fmt: skip
    review = plane.api().must("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"spec": spec})
    return bool(review["status"]["allowed"])


LATER = '''
from budgets import Budgets


class Later(Budgets):
    """Brings the kind only if it is told to."""

    def __init__(self, on: bool = False) -> None:
        super().__init__()
        self.reads = Budgets.reads if on else ()
        self.reconciles = Budgets.reconciles if on else ()
        self.on = on

    def pre_filter(self, pod, cluster):
        return super().pre_filter(pod, cluster) if self.on else None

    def wakes_on(self):
        return super().wakes_on() if self.on else ()
'''


def test_a_reload_follows_a_kind_that_its_plugins_bring_now(undefined: Cluster, namespace: str, folder: Path) -> None:
    """All that is there of the kind is known before the new configuration is in force."""
    cluster, file = undefined, folder / "config.yaml"
    (folder / "later.py").write_text(
        LATER.replace("from budgets", f"import sys; sys.path.append({str(folder)!r})\nfrom budgets")
    )

    def write(on: bool) -> None:
        name = "later.py:Later"
        points = {"preFilter": {"enabled": [{"name": name}]}}
        args = [{"name": name, "args": {"on": on}}]
        profile = {"schedulerName": "budgeted", "plugins": points, "pluginConfig": args}
        document = config() | {"profiles": [profile], "leaderElection": {"leaderElect": False}}
        (folder / "new.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
        (folder / "new.yaml").replace(file)

    write(on=False)
    define(cluster)
    apply(cluster, namespace, a_budget(1))
    with (
        cluster.nodes(2, prefix="reload"),
        stowplan_process.stowplan(
            cluster, "own-kinds", "--config", str(file), "--plugin-path", str(file.parent)
        ) as program,
    ):
        apply(cluster, namespace, a_team_pod("first"))
        wait_until_bound(cluster, namespace, 1, explain=program.explain)
        assert used(cluster, namespace) is None
        write(on=True)
        until("the budget is told", lambda: used(cluster, namespace) == 1, 60, program.explain)
        apply(cluster, namespace, a_team_pod("second"))
        full = "team blue uses 1 of 1 pods"
        until("second is told", lambda: full in why(cluster, namespace, "second"), 60, program.explain)
