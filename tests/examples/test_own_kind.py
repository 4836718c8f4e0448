"""The example of a plugin with a kind of its own, in memory and in the embedded cluster, as its page describes."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from stowplan.apps import plugin_kinds, profile_loader
from stowplan.apps.cli import main
from stowplan.apps.up.command import UpOptions
from stowplan.kube.client import Client
from stowplan.kube.resources import PODS, RESOURCES, ApiResource
from stowplan.testing import World, a_pod, check_plugin, from_yaml
from tests.apps.up.test_up import until, with_cluster

FOLDER = Path(__file__).parents[2] / "examples" / "04-own-kind"
CONFIG = FOLDER / "config.yaml"
PLUGIN = "budgets.py:Budgets"


def a_world() -> tuple[World, Callable[[str, int], Any]]:
    _, profiles = profile_loader.read_configuration(CONFIG)
    kind = profiles["budgeted"].own_types["TeamBudget"]

    def a_budget(team: str, most: int) -> Any:
        return from_yaml(kind, f"{{metadata: {{name: {team}, namespace: default}}, spec: {{maxPods: {most}}}}}")

    return World(nodes=["a", "b"], profiles=profiles), a_budget


def a_team_pod(name: str, team: str = "blue") -> Any:
    return a_pod(name, labels={"team": team}, schedulerName="budgeted")


def test_a_team_gets_as_many_pods_as_its_budget_has() -> None:
    world, a_budget = a_world()
    world.submit(a_pod("plain", schedulerName="budgeted"), *(a_team_pod(f"p{number}") for number in range(3)))
    world.run()
    assert set(world.bindings) == {"plain"}
    assert "there is no TeamBudget blue" in world.explain("p0").message

    world.submit(a_budget("red", 9))
    world.advance(30)
    assert set(world.bindings) == {"plain"}, "the budget of another team"

    world.submit(a_budget("blue", 2))
    world.advance(30)
    assert len(world.bindings) == 3
    (left,) = {"p0", "p1", "p2"} - world.bindings.keys()
    assert "team blue uses 2 of 2 pods" in world.explain(left).message
    found: Any = world.objects["TeamBudget", "default/blue"]
    assert found.status.used_pods == 2

    world.delete(world.pod(next(name for name in world.bindings if name != "plain")))
    world.advance(30)
    assert left in world.bindings, "the pod was woken by the one that left"


def test_it_passes_check_plugin() -> None:
    world, a_budget = a_world()
    plugin = world.profiles["budgeted"].plugin(PLUGIN)
    assert check_plugin(plugin, pods=[a_team_pod("web"), a_team_pod("db", "red")], objects=[a_budget("blue", 2)]) == []


def test_the_configuration_has_no_notes_and_the_workload_names_its_scheduler() -> None:
    configuration, profiles = profile_loader.read_configuration(CONFIG, [FOLDER])
    deployment = yaml.safe_load((FOLDER / "workloads.yaml").read_text())
    assert configuration.notes == ()
    assert list(profiles) == [deployment["spec"]["template"]["spec"]["schedulerName"]]


def manifest(name: str) -> Any:
    return yaml.safe_load((FOLDER / name).read_text())


def test_in_the_embedded_cluster(tmp_path: Path) -> None:
    """What its page does with kubectl. (The CRD may come later, too: `tests/controlplane/test_own_kinds.py`.)"""
    wanted = UpOptions(nodes=2, kubeconfig=tmp_path / "kubeconfig", config=CONFIG, files=(FOLDER / "crd.yaml",))
    _, profiles = profile_loader.read_configuration(CONFIG)
    budgets = plugin_kinds.brought(profiles.values())["TeamBudget"].at("v1")

    async def story(client: Client) -> None:
        made = await client.create(RESOURCES["Deployment"], "default", manifest("workloads.yaml"))
        assert made.status == 201
        await until(told(client, "there is no TeamBudget blue", 3))
        assert (await client.create(budgets, "default", manifest("budget.yaml"))).status == 201
        await until(used(client, budgets, 2))
        await until(told(client, "team blue uses 2 of 2 pods", 1))
        explained = await asyncio.to_thread(explain, "-o", "json", "--kubeconfig", str(wanted.kubeconfig))
        assert "team blue uses 2 of 2 pods" in explained
        patch = {"spec": {"maxPods": 3}}
        assert (await client.patch(budgets, "default/blue", patch)).ok
        await until(used(client, budgets, 3))
        assert (await client.patch(budgets, "default/blue", {"status": {"usedPods": 9}})).ok
        found = json.loads((await client.get(budgets, "default/blue")).body)
        assert found["status"] == {"usedPods": 3}, "a status is written by its subresource only"

    asyncio.run(with_cluster(wanted, story))


def told(client: Client, message: str, times: int) -> Callable[[], Awaitable[bool]]:
    """Asks whether as many pods have this in their condition."""

    async def ask() -> bool:
        found = [json.loads(bytes(item)) async for page in client.list_pages(PODS) for item in page.items or ()]
        conditions = (each for pod in found for each in pod["status"].get("conditions", ()))
        return Counter(message in each.get("message", "") for each in conditions)[True] == times

    return ask


def used(client: Client, budgets: ApiResource, number: int) -> Callable[[], Awaitable[bool]]:
    async def ask() -> bool:
        found = json.loads((await client.get(budgets, "default/blue")).body)
        return bool(found.get("status", {}).get("usedPods") == number)

    return ask


def explain(*arguments: str) -> str:
    answer = CliRunner().invoke(main, ["explain", "--config", str(CONFIG), *arguments])
    assert answer.exit_code in (0, 1), answer.output
    return " ".join(answer.output.split())


def test_the_command_checks_it_with_the_same_objects(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(POD))
    given = ["--pods", str(tmp_path / "pod.yaml"), "--objects", str(FOLDER / "budget.yaml")]
    answer = CliRunner().invoke(main, ["plugin", "check", str(FOLDER / PLUGIN), *given])
    assert answer.exit_code == 0, answer.output
    assert CliRunner().invoke(main, ["plugin", "check", str(FOLDER / PLUGIN)]).exit_code == 1


NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"pods": "9"}}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web", "namespace": "default", "labels": {"team": "blue"}},
    "spec": {"schedulerName": "budgeted", "containers": [{"name": "main"}]},
}


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        pytest.param({}, "default/web would be scheduled to a", id="a budget"),
        pytest.param({"apiVersion": "other.com/v1"}, "there is no TeamBudget blue", id="of another group"),
        pytest.param(
            {"spec": {"maxPods": "many"}},
            "warning: TeamBudget of plugin budgets.py:Budgets: default/blue cannot be read and is skipped: "
            "TeamBudget blue: spec.maxPods: expected `int`",
            id="one that cannot be read",
        ),
    ],
)
def test_explained_from_a_dump(tmp_path: Path, budget: dict[str, Any], expected: str) -> None:
    items = [NODE, POD, manifest("budget.yaml") | budget]
    (tmp_path / "dump.yaml").write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items}))
    assert expected in explain("web", "--from", str(tmp_path / "dump.yaml"))


def test_the_kit_reads_its_objects_from_files(tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text(yaml.safe_dump(POD))
    command = ["plugin", "check", f"{FOLDER}/{PLUGIN}", "--pods", str(tmp_path / "pod.yaml"), "--objects"]
    answer = CliRunner().invoke(main, [*command, str(FOLDER / "budget.yaml")])
    assert answer.exit_code == 0, answer.output
    (tmp_path / "odd.yaml").write_text(yaml.safe_dump(manifest("budget.yaml") | {"spec": {"maxPods": "many"}}))
    answer = CliRunner().invoke(main, [*command, str(tmp_path / "odd.yaml")])
    assert answer.exit_code == 2 and "spec.maxPods: expected `int`" in answer.output
