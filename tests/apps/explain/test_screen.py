"""What the screen says, line by line: counts, evictions, waits, causes once, and nothing wider than the terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stowplan.objects.meta import Object
from stowplan.objects.pod_parts import PodCondition
from stowplan.objects.pods import Pod
from stowplan.testing.builders import HOSTNAME, REQUIRED, a_budget, a_node, a_pod
from tests.apps.explain.test_explain import NODES
from tests.apps.explain.test_output import explained, owned
from tests.apps.explain.test_quotas import applied, its_pod, quota, run, workload
from tests.apps.explain.test_what_if import manifest

LOW = a_pod("low", cpu="3", node="a", labels={"app": "low"})
HIGH = a_pod("high", cpu="3", priority=100)
POLITE = a_pod("polite", cpu="3", priority=50, preemptionPolicy="Never")


def test_pods_that_need_evictions_are_counted_apart(tmp_path: Path) -> None:
    there: list[Object] = [a_node("a", cpu=4), LOW, HIGH, POLITE]
    code, text = explained(tmp_path, there=there)
    line = " ".join(text.split())
    assert code == 1
    assert line.startswith("1 of 2 pending pods would get no node, 1 only after evictions, judged in queue order.")
    assert "default/polite has no node" in line.partition("┏")[0], "who has no node at all comes first"
    assert "│ high │ a │ after evicting default/low │" in line


def test_if_all_need_evictions_none_is_said_to_have_no_node(tmp_path: Path) -> None:
    code, text = explained(tmp_path, there=[a_node("a", cpu=4), LOW, HIGH])
    assert code == 1 and text.startswith("1 of 1 pending pod would get a node only after evictions.")


@pytest.mark.parametrize("protected", [True, False])
def test_a_preemption_that_violates_a_budget_says_so(tmp_path: Path, protected: bool) -> None:
    budget = [a_budget("keep", app="low")] if protected else []
    _, text = explained(tmp_path, "high", there=[a_node("a", cpu=4), LOW, HIGH, *budget])
    head = " ".join(text.partition("  a:")[0].split())
    assert head.startswith("default/high would be scheduled to a after the eviction of 1 pod: default/low")
    assert ("; this violates its PodDisruptionBudget." in head) == protected


@pytest.mark.parametrize("arguments", [["web"], []])
def test_a_wait_that_is_certain_comes_before_the_remedies(tmp_path: Path, arguments: list[str]) -> None:
    leaving = a_pod("notebook", cpu="3", node="a", terminating=True)
    code, text = explained(tmp_path, *arguments, there=[a_node("a", cpu=4), leaving, a_pod("web", cpu="2")])
    wait = text.index("Wait until default/notebook has ended (terminating now).\n")
    assert code == 1 and wait < text.index("Remed") and "Or wait" not in text


@pytest.mark.parametrize(
    ("pod", "first"),
    [
        pytest.param(a_pod("web", terminating=True), "is being deleted, so that no scheduler takes it", id="leaving"),
        pytest.param(a_pod("web", node="a"), "is on a", id="running"),
        pytest.param(a_pod("web", node="a", phase="Succeeded"), "has ended on a", id="ended"),
        pytest.param(a_pod("web", node="gone"), "is on gone, a node that does not exist", id="on a node that is gone"),
        pytest.param(a_pod("web"), "", id="pending"),
    ],
)
def test_a_pod_that_no_scheduler_looks_at_is_said_to_be_one(tmp_path: Path, pod: Pod, first: str) -> None:
    _, text = explained(tmp_path, "web", there=[a_node("a", cpu=4), pod])
    said = f"default/web {first}; this is how it would be scheduled now. " if first else ""
    assert " ".join(text.split()).startswith(f"{said}default/web would be scheduled to a")


def groups(number: int) -> list[Object]:
    """Nodes that each have a cause of their own, and a pod that none of them takes."""
    nodes = [a_node(f"n{at}", cpu=8, taints=[f"t{at}=v:NoSchedule"]) for at in range(number)]
    return [*nodes, a_pod("web", cpu="1")]


def test_a_row_says_how_many_causes_it_leaves_out(tmp_path: Path) -> None:
    _, text = explained(tmp_path, there=groups(4))
    assert "… and 1 more │" in " ".join(text.split())
    _, text = explained(tmp_path, there=groups(3))
    assert "… and" not in text.partition("┏")[2]


@pytest.mark.parametrize(("number", "placeholder"), [(4, False), (5, True)])
def test_one_group_that_is_left_is_shown_in_the_line_that_would_hide_it(
    tmp_path: Path, number: int, placeholder: bool
) -> None:
    _, text = explained(tmp_path, "web", there=groups(number))
    head = text.partition("Remed")[0]
    assert ("  n3: taint t3=v:NoSchedule\n" in head) != placeholder
    assert ("  … and 2 more groups of nodes, below\n" in head) == placeholder


def test_a_cordoned_node_is_not_said_to_have_the_taint_of_cordoning(tmp_path: Path) -> None:
    taints = ["node.kubernetes.io/unschedulable=:NoSchedule"]
    there = [a_node("a", unschedulable=True, taints=taints), a_node("b", unschedulable=True), a_pod("web")]
    _, text = explained(tmp_path, "web", there=there)
    assert "\n  a, b: cordoned\n" in text, "one line: what differs is said already"


def test_a_cause_of_the_pod_is_not_repeated_for_nodes(tmp_path: Path) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "gone"}}]
    there = [a_node("a", cpu=4), a_node("b", cpu=4, unschedulable=True), a_pod("db", cpu="1", volumes=volumes)]
    _, text = explained(tmp_path, "db", there=there)
    head = text.partition("Remed")[0].partition("The scheduler says")[0]
    assert head.count("claim gone does not exist") == 1 and "  b: cordoned\n" in head


@pytest.mark.parametrize(
    ("number", "named"),
    [(1, "n0:"), (3, "n0, n1, n2:"), (4, "4 nodes (n0, n1, n2 …):"), (9, "9 nodes (n0, n1, n2 …):")],
)
def test_nodes_are_named(tmp_path: Path, number: int, named: str) -> None:
    nodes = [a_node(f"n{at}", unschedulable=True) for at in range(number)]
    _, text = explained(tmp_path, "web", there=[*nodes, a_pod("web")])
    assert f"\n  {named} cordoned\n" in text


def test_sentences_and_remedies_are_wrapped_and_commands_are_not(tmp_path: Path) -> None:
    name = "a-rather-long-name-of-a-pod-of-some-team"
    long = a_pod(
        name, cpu="3", priority=7, node_selector={"example.com/a-long-name-of-a-label": "no-such-value-at-all"}
    )
    _, text = explained(tmp_path, name, there=[*NODES, long])
    free = ("     kubectl ", "The scheduler says")
    assert [line for line in text.splitlines() if len(line) > 80 and not line.startswith(free)] == []
    assert any(len(line) > 80 for line in text.splitlines() if line.startswith("     kubectl "))


def test_long_names_in_a_table_are_not_cut(tmp_path: Path) -> None:
    taint = "example.com/a-very-long-name-of-a-taint-that-some-team-invented=for-itself:NoSchedule"
    _, text = explained(tmp_path, there=[a_node("a", cpu=4, taints=[taint]), a_pod("web")])
    table = text[text.index("┏") :]
    cells = "".join(line.split("│")[4].strip() for line in table.splitlines() if line.startswith("│"))
    assert taint in cells and "…" not in table


def test_heads_of_scores_differ_at_80_columns(tmp_path: Path) -> None:
    there = [a_node("a", cpu=4), a_node("b", cpu=2), a_node("c", cpu=8, taints=["t=v:PreferNoSchedule"])]
    _, text = explained(tmp_path, "web", there=[*there, a_pod("web", cpu="1", memory="1Gi")])
    table = text[text.index("┏") : text.index("┡")].splitlines()[1:]
    columns = ["".join(cells) for cells in zip(*(line.split("┃") for line in table), strict=True)][1:-1]
    assert len(set(columns)) == len(columns) > 3 and "…" not in "".join(columns)
    assert "the same score on all nodes: " in text and "ImageLocality" in " ".join(text.split())


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        pytest.param([a_node("a", cpu=4)], "(the only node)", id="one node"),
        pytest.param(
            [a_node("a", cpu=4), a_node("b", cpu=1)], "(the only one of 2 nodes that can take it)", id="one fits"
        ),
        pytest.param(
            [a_node("a", cpu=4), a_node("b", cpu=4)],
            "(chosen at random from 2 nodes with the best score; 2 of 2 nodes can take it)",
            id="equal scores",
        ),
        pytest.param([a_node("a", cpu=4), a_node("b", cpu=9)], "(best score, by ", id="the best"),
    ],
)
def test_why_this_node(tmp_path: Path, nodes: list[Object], says: str) -> None:
    _, text = explained(tmp_path, "web", there=[*nodes, a_pod("web", cpu="2")])
    assert says in " ".join(text.split())


def test_pods_that_do_not_exist_have_not_waited_and_no_scheduler_spoke_of_a_quota(tmp_path: Path) -> None:
    lease: dict[str, Any] = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        "spec": {"holderIdentity": "h", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T12:00:01.000000Z"},
    }
    file = applied(tmp_path, manifest("Deployment", replicas=3))
    _, _, text = run(tmp_path, [quota({"pods": "1"}, {"pods": "0"}), lease], "-f", file)
    assert "have no node: pods" in text and "The scheduler says" not in text


# -- workloads without pods


def test_a_list_names_workloads_that_cannot_create_their_pods(tmp_path: Path) -> None:
    there = [workload(), its_pod("a"), quota({"pods": "1"}, {"pods": "1"})]
    for arguments in (["-A"], []):
        code, document, text = run(tmp_path, there, *arguments)
        assert code == 1 and [each["name"] for each in document["workloads"]] == ["web"]
        assert text.startswith("deployment default/web has 1 of 3 pods: quota team") and "No pod is pending" not in text


@pytest.mark.parametrize("arguments", [["-n", "far"], ["-l", "app=x"]])
def test_workloads_elsewhere_are_not_named(tmp_path: Path, arguments: list[str]) -> None:
    code, document, _ = run(tmp_path, [workload(), its_pod("a"), quota({"pods": "1"}, {"pods": "1"})], *arguments)
    assert code == 0 and document["workloads"] == []


def test_a_deployment_that_cannot_be_seen_wants_what_its_replica_set_wants(tmp_path: Path) -> None:
    """As on a cluster, where Deployments are not listed; the one with too few pods is asked for."""
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    below = workload("ReplicaSet")
    below["metadata"] = {"name": "web-7f", "namespace": "default", "ownerReferences": [reference]}
    there = [below, its_pod("a"), quota({"pods": "1"}, {"pods": "1"})]
    assert run(tmp_path, there, "-A")[1]["workloads"] == [], "nothing is known of the Deployment"
    assert [each["name"] for each in run(tmp_path, [*there, workload()], "-A")[1]["workloads"]] == ["web"]


# -- for programs


def test_pods_that_are_alike_have_the_same_key(tmp_path: Path) -> None:
    labels = {"pod-template-hash": "7f"}
    pods = [owned(a_pod(f"web-7f-{at}", cpu="3", labels=labels), "ReplicaSet", "web-7f") for at in range(3)]
    there = [a_node("a", cpu=4), *pods, a_pod("one", cpu="9"), a_pod("two", cpu="9")]
    _, text = explained(tmp_path, "-o", "json", there=there)
    keys: dict[str, set[str]] = {}
    for item in json.loads(text)["items"]:
        keys.setdefault(item["alike"], set()).add(item["sentence"])
    web = "deployment default/web"
    assert set(keys) == {web, f"{web} (2)", "pod default/one"} and all(len(each) == 1 for each in keys.values())


def test_nodes_that_the_pod_is_not_for_come_last_and_say_no_more(tmp_path: Path) -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": fields}]}}}
    nodes = [a_node(f"n{at}", cpu=1, taints=["t=v:NoSchedule"] if at == 0 else []) for at in range(3)]
    _, text = explained(tmp_path, "daemon", there=[*nodes, a_pod("daemon", cpu="2", affinity=affinity)])
    assert text.splitlines()[1:4] == [
        "  n1: no node is big enough: the pod wants 2 cpu, the largest has 1",
        "  n0, n2: the pod is limited to n1 by its node affinity",
        "Remedy, tried:",
    ]


def test_a_long_cause_leaves_room_for_the_best_remedy(tmp_path: Path) -> None:
    names = [f"a-rather-long-name-of-a-pod-of-some-team-{at}-with-a-longer-end" for at in range(3)]
    keep = {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "x"}}}]}}
    about: dict[str, Any] = {"labels": {"app": "x"}, "affinity": keep}
    nodes = [a_node(f"n{at}", cpu=4, labels={HOSTNAME: f"n{at}"}) for at in range(3)]
    there = [*nodes, *(a_pod(name, node=f"n{at}", **about) for at, name in enumerate(names)), a_pod("web", **about)]
    _, text = explained(tmp_path, "web", there=[*there, a_node("old", cpu=4, unschedulable=True)])
    lines = text.splitlines()
    assert any(line.startswith("     kubectl ") for line in lines[:10]), "the command is on the first screen"
    assert any(line.endswith(" …") for line in lines[:10])
    assert names[2] in "".join(cell.strip() for cell in text.replace("\n", "│").split("│")), "the table has all of it"


def test_what_the_scheduler_said_is_not_said_twice(tmp_path: Path) -> None:
    there: list[Object] = [a_node("a", cpu=1), a_pod("web", cpu="2")]
    message = explained(tmp_path, "web", there=there)[1].partition("The scheduler says: ")[2].splitlines()[0]
    condition = PodCondition("PodScheduled", "False", "Unschedulable", message)
    waiting = a_pod("web", cpu="2")
    status = msgspec.structs.replace(waiting.status, conditions=(condition,))
    told = msgspec.structs.replace(waiting, status=status)
    _, text = explained(tmp_path, "web", there=[a_node("a", cpu=1), told])
    assert text.count(message) == 1 and "Last said: Unschedulable: " in text


def test_the_points_of_a_node_add_up_to_its_total(tmp_path: Path) -> None:
    """What all nodes score alike is below the table, with its points times its weight."""
    there = [a_node("a", cpu=4), a_node("b", cpu=2), a_pod("web", cpu="1", memory="1Gi")]
    _, text = explained(tmp_path, "web", there=there)
    caption = " ".join(text[text.index("the same score on all nodes: ") :].split())
    assert "TaintToleration (+300)" in caption and "ImageLocality" in caption and "ImageLocality (" not in caption
    heads = text[text.index("┏") : text.index("┡")]
    weights = [int(each) for each in re.findall(r"×(\d+)", heads)]
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in text.splitlines() if line.startswith("│")]
    shared = sum(int(each) for each in re.findall(r"\(\+(\d+)\)", caption))
    assert len(rows) == 2 and weights
    for _, total, *points in rows:
        assert int(total) == shared + sum(int(each) * weight for each, weight in zip(points, weights, strict=True))
