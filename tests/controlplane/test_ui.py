"""`stowplan ui` at a control plane: live, with few rights, and with the decisions of a scheduler (`--of`)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Browser, expect

from tests.apps.ui.browser_page import opened
from tests.apps.ui.pages_process import ServedPages, served
from tests.browser import browser as browser
from tests.controlplane.cluster import Cluster
from tests.controlplane.conftest import MOSTLY_REAL
from tests.controlplane.flags import free_port
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import Stowplan, a_live_pod, apply, bound, stowplan

WITHIN = 60_000.0  # milliseconds
REPOSITORY = Path(__file__).parents[2]
ROLE = "rbac.authorization.k8s.io"


@pytest.fixture
def scheduler(cluster: Cluster) -> Iterator[Stowplan]:
    with stowplan(cluster, "ui-scheduler") as program:
        program.wait_until_leading()
        yield program


def printed(cluster: Cluster, *arguments: str) -> Any:
    command = [sys.executable, "-m", "stowplan.apps.cli", *arguments, "--kubeconfig", str(cluster.kubeconfig())]
    done = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def same(item: dict[str, Any]) -> dict[str, Any]:
    """What does not depend on the moment of the question."""
    return {name: each for name, each in item.items() if name not in ("waiting", "sentence", "scheduler")}


@pytest.mark.parametrize("cluster", MOSTLY_REAL, indirect=True)
def test_the_pages_follow_a_cluster_and_say_what_the_commands_say(
    browser: Browser, cluster: Cluster, namespace: str, scheduler: Stowplan
) -> None:
    with (
        cluster.nodes(3, prefix="shown", capacity={"cpu": "4"}) as names,
        served("--kubeconfig", cluster.kubeconfig()) as pages,
    ):
        pages.wait_until_read()
        with opened(browser, pages) as found:
            page = found.go("/", live=True)
            page.evaluate("window.kept = 1")
            apply(cluster, namespace, a_live_pod("fits", cpu="1"), a_live_pod("waits", cpu="400"))
            expect(page.locator("#waiting")).to_contain_text(f"{namespace}/waits", timeout=WITHIN)
            expect(page.locator("#waiting")).to_contain_text("Insufficient cpu", timeout=WITHIN)
            assert page.evaluate("window.kept") == 1
            until("the pod is bound", lambda: {*bound(cluster, namespace)} == {"fits"}, 60)
            nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
            assert sorted(pages.json("/")["map"]["names"]) == sorted(each["metadata"]["name"] for each in nodes)
            page = found.go(f"/pods/{namespace}/waits", live=True)
            expect(page.locator("#history")).to_contain_text("FailedScheduling", timeout=WITHIN)
            expected = printed(cluster, "explain", "waits", "-n", namespace)
            shown = pages.json(f"/pods/{namespace}/waits")
            assert same({name: shown[name] for name in expected}) == same(expected)
            page = found.go("/pending", live=True)
            expect(page.locator("#groups")).to_contain_text(f"{namespace}/waits", timeout=WITHIN)
            every = {each["pod"]: same(each) for each in printed(cluster, "explain", "-A")["items"]}
            assert {each["pod"]: same(each) for each in pages.json("/pending")["items"]} == every
            page = found.go("/decisions?namespace=" + namespace, live=True)
            expect(page.locator("#entries")).to_contain_text(f"{namespace}/fits")
            apply(cluster, namespace, a_live_pod("later", cpu="1"))
            expect(page.locator("#entries")).to_contain_text(f"{namespace}/later", timeout=WITHIN)
            page = found.go(f"/nodes/{bound(cluster, namespace)['fits']}", live=True)
            expect(page.locator("#pods")).to_contain_text(f"{namespace}/fits")
            for path in ("/groups", "/placements", f"/nodes/{names[0]}", "/simulations"):
                found.go(path)


@pytest.mark.controlplane
def test_the_rights_to_list_are_enough(browser: Browser, plane: Cluster) -> None:
    """deploy/read-only.yaml allows no watch: the pages list again."""
    documents = [each for each in yaml.safe_load_all((REPOSITORY / "deploy/read-only.yaml").read_text()) if each]
    for each in documents:
        if each["kind"].endswith("Binding"):
            each["subjects"] = [{"apiGroup": ROLE, "kind": "User", "name": "nobody"}]
        elif each["kind"] == "ClusterRole":
            each["rules"] = [rule for rule in each["rules"] if rule["apiGroups"] != ["policy"]]
    plane.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(documents))
    try:
        with (
            plane.namespace("listed") as namespace,
            plane.nodes(2, prefix="listed"),
            served("--kubeconfig", plane.kubeconfig("nobody")) as pages,
        ):
            pages.wait_until_read()
            with opened(browser, pages) as found:
                page = found.go("/", live=True)
                expect(page.locator(".looked-at")).to_contain_text("You may not watch")
                expect(page.locator(".looked-at")).to_contain_text(
                    "Not seen, for lack of rights: poddisruptionbudgets.policy"
                )
                apply(plane, namespace, a_live_pod("comes", scheduler="nobody-serves-this"))
                expect(page.locator("#waiting")).to_contain_text(f"{namespace}/comes", timeout=WITHIN)
    finally:
        plane.kubectl("delete", "--ignore-not-found", "-f", "-", input=yaml.safe_dump_all(documents))


@pytest.mark.controlplane
def test_namespaces_that_may_not_be_listed_are_left_out_and_named(browser: Browser, plane: Cluster) -> None:
    rules = [{"apiGroups": [""], "resources": ["nodes", "namespaces"], "verbs": ["list", "watch"]}]
    role = {"apiVersion": f"{ROLE}/v1", "kind": "ClusterRole", "metadata": {"name": "test-nodes"}, "rules": rules}
    with (
        plane.namespace("seen") as seen, plane.namespace("hidden") as hidden, plane.nodes(1, prefix="partly"),
        plane.having(role, _binding("ClusterRoleBinding", "test-nodes", {})),
    ):  # fmt: skip
        right = _binding("RoleBinding", "test-view", {"namespace": seen}, role="view")
        plane.kubectl("apply", "-f", "-", input=json.dumps(right))
        for namespace in (seen, hidden):
            apply(plane, namespace, a_live_pod("waits", scheduler="nobody-serves-this"))
        with served("--kubeconfig", plane.kubeconfig("nobody")) as pages:
            pages.wait_until_read()
            with opened(browser, pages) as found:
                page = found.go("/", live=True)
                expect(page.locator(".looked-at")).to_contain_text(f"Only pods of {seen} are seen")
                expect(page.locator(".looked-at")).to_contain_text("nodes look emptier than they are")
                assert {each["pod"] for each in pages.json("/find?q=")["pods"]} == {f"{seen}/waits"}
                apply(plane, seen, a_live_pod("later", scheduler="nobody-serves-this"))
                expect(page.locator("#figures div", has_text="Pods that wait").locator("dd")).to_contain_text(
                    "2", timeout=WITHIN
                )


KUBECTL = """#!/bin/sh
# As kubectl does without a kubelet to ask: the scheduler is on this machine already.
echo "$@" > "{folder}/asked"
echo "Forwarding from 127.0.0.1:{port} -> 10259"
exec sleep 600
"""


@pytest.mark.controlplane
def test_the_decisions_of_a_scheduler_are_those_that_the_user_may_see(plane: Cluster, tmp_path: Path) -> None:
    """What is not shown: the way through the API server to a pod. Here kubectl only says which port that would be."""
    port = free_port()
    role = {
        "apiVersion": f"{ROLE}/v1", "kind": "ClusterRole", "metadata": {"name": "test-decisions"},
        "rules": [{"nonResourceURLs": ["/debug/decisions"], "verbs": ["get"]}],
    }  # fmt: skip
    binding = _binding("ClusterRoleBinding", "test-decisions", {})
    with (
        plane.namespace("seen") as seen, plane.namespace("hidden") as hidden,
        plane.having(role, binding), plane.nodes(2, prefix="decided"),
        stowplan(plane, "decides", "--secure-port", str(port), "--bind-address", "127.0.0.1") as scheduler,
    ):  # fmt: skip
        scheduler.wait_until_leading()
        right = _binding("RoleBinding", "test-decisions", {"namespace": seen}, role="view")
        plane.kubectl("apply", "-f", "-", input=json.dumps(right))
        token = plane.tokens["nobody"]
        for namespace in (seen, hidden):
            apply(plane, namespace, a_live_pod("one"))
            until("it is bound", lambda namespace=namespace: bound(plane, namespace), 60)  # type: ignore[misc]
        told = _lines(port, token)
        assert {each["pod"] for each in told if "pod" in each} >= {f"{seen}/one"}
        assert not any(each.get("pod", "").startswith(f"{hidden}/") for each in told)
        assert told[-1] == {"event": "leftOut", "namespaces": 1} or any(each.get("namespaces") for each in told)
        assert _status(port, "wrong-token") == 401
        (tmp_path / "kubectl").write_text(KUBECTL.format(folder=tmp_path, port=port))
        (tmp_path / "kubectl").chmod(0o755)
        apply(plane, seen, a_live_pod("scheduler-0", scheduler="none"))
        arguments = ("--kubeconfig", plane.kubeconfig(), "--of", f"{seen}/scheduler-0")
        with served(*arguments, environment={"PATH": f"{tmp_path}:/usr/bin:/bin"}) as pages:
            pages.wait_until_read()
            until("the attempts are told", lambda: _attempts(pages, seen), 60)
            assert "port-forward" in (tmp_path / "asked").read_text()


def _binding(kind: str, name: str, more: dict[str, str], role: str = "") -> dict[str, Any]:
    subjects = [{"apiGroup": ROLE, "kind": "User", "name": "nobody"}]
    reference = {"apiGroup": ROLE, "kind": "ClusterRole", "name": role or name}
    return {"apiVersion": f"{ROLE}/v1", "kind": kind, "metadata": {"name": name, **more}, "roleRef": reference,
            "subjects": subjects}  # fmt: skip


def _attempts(pages: ServedPages, namespace: str) -> bool:
    """True if the decision has what only the scheduler itself knows."""
    found = pages.json(f"/decisions?namespace={namespace}&event=bound")["items"]
    return any(each["pod"] == f"{namespace}/one" and "attempts" in each for each in found)


def _lines(port: int, token: str) -> list[dict[str, Any]]:
    """What the stream says in the first two seconds."""
    command = ["curl", "-sk", "--max-time", "4", "-H", f"Authorization: Bearer {token}",
               f"https://127.0.0.1:{port}/debug/decisions"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return [json.loads(line) for line in done.stdout.splitlines() if line]


def _status(port: int, token: str) -> int:
    command = ["curl", "-sk", "--max-time", "10", "-o", "/dev/null", "-w", "%{http_code}",
               "-H", f"Authorization: Bearer {token}", f"https://127.0.0.1:{port}/debug/decisions"]  # fmt: skip
    return int(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
