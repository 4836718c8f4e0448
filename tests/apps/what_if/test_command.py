"""`stowplan what-if`: each change, what is told of it, and what cannot be used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from stowplan.apps.cli import main
from stowplan.apps.what_if import command
from tests.apps.what_if.shop import CLUSTER, Document, deployment, node, pod, spec


class Asked:
    """The command in a folder with a cluster."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("cluster.yaml", *CLUSTER)

    def write(self, name: str, *documents: Document) -> str:
        (self.folder / name).write_text("\n---\n".join(map(json.dumps, documents)))
        return name

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(main, ["what-if", "--from", "cluster.yaml", *arguments], env={"COLUMNS": "80"})

    def told(self, *arguments: str) -> Any:
        done = self(*arguments, "-o", "json")
        assert done.exit_code in (0, 1), done.output
        found = json.loads(done.stdout)
        assert found["worse"] == bool(done.exit_code)
        return found


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    monkeypatch.chdir(tmp_path)
    return Asked(tmp_path)


def named(rows: list[Document], *fields: str) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[field] for field in fields) for row in rows)


def test_a_drain(asked: Asked) -> None:
    """n2 has room for one of the two pods of the Deployment. The bare pod is lost, and that of the DaemonSet stays."""
    told = asked.told("--drain", "n1")
    assert named(told["moved"], "pod", "from", "to", "because") == [("shop/web-7f9c-a", "n1", "n2", "evicted")]
    assert named(told["waiting"], "replaces", "from", "because") == [("shop/web-7f9c-b", "n1", "evicted")]
    assert named(told["gone"], "pod", "lost") == [("shop/bare", True)]
    (explained,) = told["explained"]
    assert explained["pod"] == "shop/web-7f9c-b" and explained["alike"] == "deployment shop/web"
    causes = {cause["code"] for group in explained["causes"] for cause in group["causes"]}
    assert causes >= {"cordoned", "insufficient"}
    assert explained["remedies"] and all(each["node"] != "n1" for each in explained["remedies"])
    fills = {each["name"]: (each["before"], each["after"]) for each in told["nodes"]}
    assert fills["n1"][0]["requested"]["pods"] == 4 and fills["n1"][1]["requested"]["pods"] == 1
    assert fills["n1"][1]["unschedulable"] and not fills["n1"][0]["unschedulable"]


def test_drains_of_all_nodes(asked: Asked) -> None:
    told = asked.told("--drain", "n1", "--drain", "n2")
    assert told["moved"] == [] and len(told["waiting"]) == 2


def test_a_drain_waits_for_a_budget_and_ends(asked: Asked) -> None:
    """One pod may go at a time: the next one goes when the other runs elsewhere."""
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }  # fmt: skip
    asked.write("budget.yaml", budget)
    both = asked.told("--from", "budget.yaml", "--drain", "n1", "--add-nodes", "1", "like=n2")
    assert (len(both["moved"]), both["blocked"]) == (2, [])
    one = asked.told("--from", "budget.yaml", "--drain", "n1")
    assert (len(one["moved"]), len(one["waiting"]), one["blocked"]) == (1, 1, [])  # that one is not healthy yet
    blocked = asked.told("--from", "budget.yaml", "--cordon", "n2", "--drain", "n1")
    assert named(blocked["blocked"], "node", "message") == [
        ("n1", "The disruption budget web needs 1 healthy pods and has 1 currently")
    ]


def test_cordoned_nodes_take_no_pods_and_keep_theirs(asked: Asked) -> None:
    more = asked.write("more.yaml", deployment(4))
    told = asked.told("--cordon", "n1", "--cordon", "n2", "-f", more)
    assert told["moved"] == [] and len(told["waiting"]) == 2
    assert named(told["waiting"], "because") == [("new",), ("new",)]


def test_an_uncordoned_node_takes_pods_that_waited(asked: Asked) -> None:
    asked.write("cluster.yaml", node("n1", spec={"unschedulable": True}), pod("waits"))
    told = asked.told("--uncordon", "n1")
    assert named(told["started"], "pod", "node") == [("shop/waits", "n1")] and told["pendingBefore"] == 1


@pytest.mark.parametrize(
    ("like", "name"),
    [
        pytest.param("n1", "n1-new-1", id="a node"),
        pytest.param("blue", "blue-new-1", id="a pool"),
        pytest.param("large.yaml", "large-new-1", id="a file"),
    ],
)
def test_added_nodes_take_pods_that_waited(like: str, name: str, asked: Asked) -> None:
    asked.write("large.yaml", node("large", "16"))
    pooled = node("n1", "1")
    pooled["metadata"]["labels"] = {"pool": "blue", "kubernetes.io/hostname": "n1"}
    asked.write("cluster.yaml", pooled, pod("runs", "750m", node="n1"), pod("waits", "500m"))
    told = asked.told("--add-nodes", "1", f"like={like}", "--pool-label", "pool")
    assert named(told["started"], "pod", "node") == [("shop/waits", name)]
    assert [each["name"] for each in told["nodes"]] == [name] and told["nodes"][0]["before"] is None


def test_daemons_are_on_new_nodes_before_other_pods_are(asked: Asked) -> None:
    """A pod of the Deployment is as large as a node: where an agent is there is no room for it."""
    agents: Document = deployment(0) | {"kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "shop"}}
    agents["spec"] = {name: each for name, each in agents["spec"].items() if name != "replicas"}
    large = deployment(1)
    large["metadata"], large["spec"]["template"]["spec"] = {"name": "large", "namespace": "shop"}, spec("4")
    asked.write("cluster.yaml", node("n1", spec={"unschedulable": True}), agents)
    told = asked.told("--add-nodes", "2", "like=n1", "-f", asked.write("large.yaml", large))
    assert [each["workload"]["kind"] for each in told["waiting"]] == ["Deployment"]
    assert named(told["started"], "node") == [("n1-new-1",), ("n1-new-2",)]


def test_what_was_going_to_happen_anyway_is_no_effect(asked: Asked) -> None:
    asked.write("cluster.yaml", node("n1"), node("n2"), pod("new"))
    told = asked.told("--cordon", "n2")
    assert (told["started"], told["pendingBefore"]) == ([], 0)


@pytest.mark.parametrize(
    "text", ["deploy/web", "deployment/web", "deployments.apps/web", "deploy/shop/web", "rs/web-7f9c", "pod/web-7f9c-a"]
)
def test_a_deletion(text: str, asked: Asked) -> None:
    told = asked.told("--delete", text, "-n", "shop")
    if text.startswith("deploy"):
        assert named(told["gone"], "pod", "lost") == [("shop/web-7f9c-a", False), ("shop/web-7f9c-b", False)]
    else:  # the controller makes the pods again
        assert told["gone"] == [] and {each["because"] for each in told["moved"]} == {"deleted"}


def test_a_deleted_node(asked: Asked) -> None:
    told = asked.told("--delete", "node/n1")
    assert named(told["moved"], "pod", "to", "because") == [("shop/web-7f9c-a", "n2", "its node is gone")]
    assert {each["pod"]: each["lost"] for each in told["gone"]} == {"shop/bare": True, "shop/agent-x": False}
    assert next(each for each in told["nodes"] if each["name"] == "n1")["after"] is None


def test_an_applied_manifest_keeps_what_it_does_not_name(asked: Asked) -> None:
    only = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3}}
    told = asked.told("-f", asked.write("more.yaml", only), "-n", "shop")
    assert (told["moved"], len(told["started"])) == ([], 1)


def test_an_applied_pod_preempts(asked: Asked) -> None:
    urgent = pod("urgent", "3", priorityClassName="system-cluster-critical")
    told = asked.told("-f", asked.write("urgent.yaml", urgent))
    assert len(told["started"]) == 1
    assert "preempted" in {each["because"] for each in (*told["waiting"], *told["gone"], *told["moved"])}


def test_a_configuration_is_changed_to(asked: Asked) -> None:
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "second"}],
    }  # fmt: skip
    file = asked.write("two.yaml", configuration)
    asked.write("cluster.yaml", node("n1"), pod("waits", schedulerName="second"))
    assert named(asked.told("--config", file)["started"], "pod") == [("shop/waits",)]
    assert asked.told("--config-now", file, "--cordon", "n1")["started"] == []  # it starts before


def test_owners_that_were_not_written_down_are_made(asked: Asked) -> None:
    """`kubectl get nodes,pods` has no ReplicaSets."""
    asked.write("cluster.yaml", *(each for each in CLUSTER if each["kind"] in ("Node", "Pod")))
    done = asked("--drain", "n1")
    assert "1 controller of pods was not among what was read, and made from its pods." in done.stderr
    told = asked.told("--drain", "n1")
    assert len(told["moved"]) == 1 and len(told["waiting"]) == 1 and named(told["gone"], "pod") == [("shop/bare",)]


def test_the_tables(asked: Asked) -> None:
    done = asked("--drain", "n1")
    assert done.stdout.startswith("1 pod moves, 1 pod waits for a node, 1 pod is lost.\nshop/web-7f9c-b has no node:")
    assert max(map(len, [line for line in done.stdout.splitlines() if line[:1] in "┏┃┡│└"])) <= 80
    assert "n1, cordoned" in done.stdout and "4 → 1" in done.stdout and "62% → 88%" in done.stdout
    nothing = asked("--cordon", "n1")
    assert nothing.exit_code == 0 and nothing.stdout.startswith("No pod moves, starts or waits.")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param((), "what-if: found no change; say what would be changed", id="no change"),
        pytest.param(("--drain", "n3"), "--drain: there is no node n3; the cluster has n1, n2", id="no node"),
        pytest.param(("--cordon", "x"), "--cordon: there is no node x; the cluster has n1, n2", id="none to cordon"),
        pytest.param(("--uncordon", "n11"), "--uncordon: there is no node n11; did you mean n1?", id="to uncordon"),
        pytest.param(("--add-nodes", "-1", "like=n1"), "--add-nodes: found -1; choose a number", id="negative"),
        pytest.param(("--add-nodes", "0", "like=n1"), "--add-nodes: found 0; choose a number", id="no nodes"),
        pytest.param(("--add-nodes", "two", "like=n1"), "'two' is not a valid integer", id="no number"),
        pytest.param(("--add-nodes", "1", "n1"), "write like=NODE", id="no like="),
        pytest.param(("--add-nodes", "1", "like=n22"), "no node, pool or file n22; did you mean n2?", id="like none"),
        pytest.param(("--add-nodes", "3", "--seed", "1"), "--add-nodes needs two words, N like=", id="like nothing"),
        pytest.param(("--add-nodes", "3"), "--add-nodes needs two words, N like=NODE", id="like nothing at the end"),
        pytest.param(("--add-nodes", "3", "like=unnamed.yaml"), "found no Node; --add-nodes needs", id="like a pod"),
        pytest.param(("--drain", "n1", "--uncordon", "n1"), "--uncordon: n1 is named by --drain, too", id="both"),
        pytest.param(("-f", "empty.yaml"), "empty.yaml: found no object", id="nothing to apply"),
        pytest.param(("--delete", "web"), "--delete: found 'web'; write KIND/NAME", id="no kind"),
        pytest.param(("--delete", "deplo/web"), "--delete: there is no kind deplo; did you mean deploy?", id="a typo"),
        pytest.param(("--delete", "deploy/web"), "there is one in namespace shop: name it with -n", id="elsewhere"),
        pytest.param(("--delete", "deploy/wbe", "-n", "shop"), "did you mean deployment/web?", id="no such object"),
        pytest.param(("-f", "none.yaml"), "none.yaml: cannot be read", id="no such file"),
        pytest.param(("-f", "broken.yaml"), "broken.yaml: cannot be read: line", id="a broken file"),
        pytest.param(("-f", "wrong.yaml"), "wrong.yaml: Deployment web: ", id="a manifest that a server refuses"),
        pytest.param(("-f", "unnamed.yaml"), "unnamed.yaml: Pod: found no metadata.name", id="no name"),
        pytest.param(("-f", "unknown.yaml"), "unknown.yaml: Pood: Pood of v1 is not served here", id="an unknown kind"),
        pytest.param(("--config", "broken.yaml"), "broken.yaml: ", id="a broken configuration"),
        pytest.param(("--seed", "-1", "--drain", "n1"), "-1 is not in the range", id="a negative seed"),
    ],
)  # fmt: skip
def test_what_cannot_be_used(arguments: tuple[str, ...], said: str, asked: Asked) -> None:
    (asked.folder / "broken.yaml").write_text("kind: Pod\nmetadata: {name: web\n")
    asked.write("wrong.yaml", deployment(-1))
    (asked.folder / "empty.yaml").write_text("# nothing\n")
    asked.write("unnamed.yaml", {"apiVersion": "v1", "kind": "Pod", "metadata": {}})
    asked.write("unknown.yaml", {"apiVersion": "v1", "kind": "Pood", "metadata": {"name": "x"}})
    done = asked(*arguments)
    assert done.exit_code == 2, done.output
    assert said in done.stderr and "Traceback" not in done.output


def test_files_without_a_cluster(asked: Asked) -> None:
    asked.write("cluster.yaml", deployment(1))
    done = asked("--drain", "n1")
    assert done.exit_code == 2 and "cluster.yaml: found no nodes and no pods" in done.stderr


def test_objects_that_a_server_would_refuse_are_left_out_and_named(asked: Asked) -> None:
    asked.write("cluster.yaml", *CLUSTER, pod("Wrong_Name"))
    done = asked("--drain", "n1")
    assert done.exit_code == 1 and "left out: cluster.yaml: Pod Wrong_Name: " in done.stderr


def test_ctrl_c_ends_it_without_a_traceback(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "WhatIfRun", interrupted)
    done = asked("--drain", "n1")
    assert (done.exit_code, done.stderr) == (130, "stopped\n")
