"""`stowplan shadow` as a process, beside a scheduler by hand on an embedded cluster that authorizes each request."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.apps.program import Program
from stowplan.apps.shadow.command import ShadowOptions, profiles_by_name
from stowplan.apps.shadow.service import ShadowService
from stowplan.embedded.authorization.users import ADMIN, AUTHENTICATED, ApiUser
from stowplan.embedded.cluster import Embedded
from stowplan.kube.reflector import Reflector
from stowplan.kube.responses import StoppedError
from stowplan.objects.changes import Put
from stowplan.objects.errors import ConfigError
from stowplan.testing.builders import a_pod, a_profile
from tests.controlplane.api import Api
from tests.controlplane.flags import free_port
from tests.controlplane.process import until
from tests.embedded.running import served

RIGHTS = Path(__file__).parents[3] / "deploy" / "shadow.yaml"
WATCHER = ApiUser("watcher", ("stowplan-shadows", AUTHENTICATED), uid="watcher")
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Embedded]:
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
         "status": {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}}}
        for name, cpu in (("large", "8"), ("small", "4"))
    ]  # fmt: skip
    (tmp_path / "nodes.yaml").write_text("\n---\n".join(map(json.dumps, nodes)))
    with served(rbac=True) as found:
        found.load([tmp_path / "nodes.yaml", RIGHTS])
        yield found


@dataclass
class HandScheduler:
    """Creates pods, and binds them as it is told."""

    api: Api

    def create(self, name: str, cpu: str = "1") -> None:
        containers = [{"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}]
        self.api.must("POST", PODS, {"metadata": {"name": name}, "spec": {"containers": containers}})

    def bind(self, name: str, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        self.api.must("POST", f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": target})


@pytest.fixture
def by_hand(cluster: Embedded, tmp_path: Path) -> HandScheduler:
    ca = tmp_path / "ca.crt"
    ca.write_bytes(cluster.certificate)
    return HandScheduler(Api(cluster.url, token=cluster.token_for(ADMIN), ca=ca))


def kubeconfig(cluster: Embedded, user: ApiUser, folder: Path) -> Path:
    file = folder / f"{user.name}.kubeconfig"
    file.write_text(cluster.kubeconfig(cluster.token_for(user)))
    return file


def test_differences_are_told(cluster: Embedded, by_hand: HandScheduler, tmp_path: Path) -> None:
    port, out = free_port(), tmp_path / "told.jsonl"
    file = kubeconfig(cluster, WATCHER, tmp_path)
    arguments = ["--window", "200ms", "--pods", "3", "--port", str(port), "--out", str(out), "--fail-on-difference"]
    command = [sys.executable, "-m", "stowplan.apps.cli", "shadow", "--kubeconfig", str(file), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None and process.stdout is not None
        first = process.stderr.readline()
        assert "Judging the pods of default-scheduler; 2 nodes, 0 pods on them" in first
        for name, node in (("right", "large"), ("wrong", "small")):
            by_hand.create(name)
            by_hand.bind(name, node)
        until("two are judged", lambda: _judged(port) == 2, 60)
        by_hand.create("huge", "9")
        by_hand.bind("huge", "large")
        shown, said = process.communicate(timeout=60)
    assert process.returncode == 1, said
    head, wrong, huge, summary = shown.splitlines()
    assert head.split() == ["TIME", "KIND", "POD", "THERE", "HERE", "WHY"]
    assert wrong.split()[1:4] == ["different", "default/wrong", "small"] and "scores " in wrong
    assert huge.split()[1:3] == ["pending-here", "default/huge"] and "large: Insufficient cpu" in huge
    assert summary.startswith("3 judged: 1 same, 0 ties, 0 races, 0 sampled, 1 different, pending 0 there and 1 here")
    told = [json.loads(line) for line in out.read_text().splitlines()]
    assert [each["kind"] for each in told[:-1]] == ["different", "pending-here"]
    assert told[0]["there"] == "small" and told[0]["here"] == "large" and told[0]["best"] == 1
    assert told[0]["totals"]["there"] < told[0]["totals"]["here"]
    assert {each["plugin"] for each in told[0]["scores"]} >= {"NodeResourcesFit", "TaintToleration"}
    assert told[1]["rejected"] == {"plugin": "NodeResourcesFit", "reasons": ["Insufficient cpu"]}
    assert told[-1]["summary"]["judged"] == 3 and told[-1]["summary"]["different"] == 1


def _judged(port: int) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(each.rsplit(" ", 1)[1]) for each in lines if each.startswith("stowplan_shadow_decisions_total"))


def test_without_rights_it_says_which(cluster: Embedded, tmp_path: Path) -> None:
    nobody = ApiUser("nobody", (AUTHENTICATED,), uid="nobody")
    done = CliRunner().invoke(main, ["shadow", "--kubeconfig", str(kubeconfig(cluster, nobody, tmp_path))])
    assert done.exit_code == 2 and "deploy/shadow.yaml has the rights" in done.stderr


def test_it_ends_after_a_time_and_names_what_it_cannot_see(cluster: Embedded, tmp_path: Path) -> None:
    """A user who may watch pods and nodes only."""
    few = ApiUser("few", (AUTHENTICATED,), uid="few")
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "few"},
            "rules": [{"apiGroups": [""], "resources": ["pods", "nodes"], "verbs": ["list", "watch"]}]}  # fmt: skip
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "few"},
               "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "few"},
               "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "few"}]}  # fmt: skip
    (tmp_path / "few.yaml").write_text("\n---\n".join(map(json.dumps, (role, binding))))
    cluster.load([tmp_path / "few.yaml"])
    file = kubeconfig(cluster, few, tmp_path)
    done = CliRunner().invoke(main, ["shadow", "--kubeconfig", str(file), "--for", "100ms", "-o", "json"])
    assert done.exit_code == 0, done.output
    assert "Not seen, for lack of rights:" in done.stderr and "storageclasses.storage.k8s.io" in done.stderr
    assert json.loads(done.stdout)["summary"]["judged"] == 0


def test_its_client_cannot_write(cluster: Embedded, tmp_path: Path) -> None:
    async def tried() -> None:
        service = ShadowService(
            ShadowOptions(kubeconfig=str(kubeconfig(cluster, ADMIN, tmp_path))),
            {"default-scheduler": a_profile()},
            None,
        )
        assert isinstance(service, Program)
        client = service.open_client(service.access(), 1)
        try:
            with pytest.raises(StoppedError, match="writing is no longer allowed"):
                await client.post(PODS, b"{}")
        finally:
            await service.resources.aclose()

    asyncio.run(tried())


@pytest.mark.parametrize(
    ("seen", "judged"),
    [
        pytest.param("", False, id="before the first list is complete"),
        pytest.param("6", False, id="a list after a gap: the watch has not come so far"),
        pytest.param("7", True, id="a watch: it has told this version"),
        pytest.param("8", True, id="a watch that told more at once"),
    ],
)
def test_what_a_list_says_is_not_judged(seen: str, judged: bool) -> None:
    service = ShadowService(ShadowOptions(), {"default-scheduler": a_profile()}, None)
    reflector = SimpleNamespace(cache=SimpleNamespace(resource_version=seen))
    service.reflectors["Pod"] = cast("Reflector", reflector)
    pod = a_pod("web")
    version = msgspec.structs.replace(pod.metadata, resource_version="7")
    service._sink("Pod")([Put(msgspec.structs.replace(pod, metadata=version))])
    (transition,) = service.shadow.history.upcoming
    assert transition.judged == judged


def test_a_name_is_judged_by_the_only_profile() -> None:
    only, other = a_profile(), a_profile()
    assert profiles_by_name({"new": only}, ()) == {"new": only}
    assert profiles_by_name({"new": only}, ("default-scheduler",)) == {"default-scheduler": only}
    assert profiles_by_name({"a": only, "b": other}, ("b",)) == {"b": other}
    with pytest.raises(ConfigError, match="found c, for which there is no profile; choose from a, b"):
        profiles_by_name({"a": only, "b": other}, ("c",))
