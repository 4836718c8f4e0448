"""What people see: at 80 columns the answer is in the first ten lines, and lists are grouped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.objects.meta import Object, OwnerReference
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import ReplicaSet
from stowplan.testing.builders import a_node, a_pod
from tests.apps.explain import schema
from tests.apps.explain.test_explain import dump

MANY = [
    *(a_node(f"gpu-{number:02}", cpu=4, taints=["dedicated=gpu:NoSchedule"]) for number in range(15)),
    *(a_node(f"small-{number:02}", cpu=1) for number in range(27)),
    a_node("off", cpu=4, unschedulable=True),
]


def owned(pod: Pod, kind: str, name: str) -> Pod:
    reference = OwnerReference(kind, name, f"uid-{name}", "apps/v1", controller=True)
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=(reference,)))


def explained(folder: Path, *arguments: str, there: list[Object]) -> tuple[int, str]:
    answer = CliRunner().invoke(main, ["explain", *arguments, "--from", dump(folder, *there)], env={"COLUMNS": "80"})
    return answer.exit_code, answer.output


def screen(text: str, width: int = 80) -> list[str]:
    """Return the lines as a terminal of this width shows them."""
    return [line[at : at + width] for line in text.splitlines() for at in range(0, max(len(line), 1), width)]


def test_the_answer_is_in_the_first_ten_lines(tmp_path: Path) -> None:
    pod = owned(a_pod("web-7f9c-x", cpu="3", labels={"pod-template-hash": "7f9c"}), "ReplicaSet", "web-7f9c")
    code, text = explained(tmp_path, "web-7f9c-x", there=[*MANY, pod])
    first = screen(text)[:10]
    assert code == 1
    assert first[0] == "default/web-7f9c-x has no node: none of 43 nodes can take it."
    assert first[1] == "  27 nodes (small-00 …): too small: the pod wants 3 cpu, the node has at most 1"
    assert first[2] == "  15 nodes (gpu-00, gpu-01, gpu-02 …): taint dedicated=gpu:NoSchedule"
    assert first[3] == "  off: cordoned"
    assert first[4] == "Remedies, each tried:"
    assert "tolerate" in first[5] and "→ gpu-" in first[5]
    command = "".join(first[6:])
    assert command.strip().startswith("kubectl -n default patch deployment web --type=json -p='[") and "]'" in command


def test_pods_of_a_workload_are_one_answer(tmp_path: Path) -> None:
    labels = {"pod-template-hash": "7f9c"}
    pods = [owned(a_pod(f"web-7f9c-{number}", cpu="3", labels=labels), "ReplicaSet", "web-7f9c") for number in range(4)]
    code, text = explained(tmp_path, "deploy/web", there=[*MANY, *pods])
    assert code == 1 and text.startswith(
        "4 pods of deployment default/web have no node: none of 43 nodes can take them."
    )
    known = msgspec.structs.replace(
        owned(pods[0], "Deployment", "web"), metadata=owned(a_pod("web-7f9c"), "Deployment", "web").metadata
    )
    replica_set = ReplicaSet(known.metadata)
    assert explained(tmp_path, "deploy/web", there=[*MANY, *pods, replica_set])[1] == text
    code, text = explained(tmp_path, there=[*MANY, *pods])
    assert "4 of deployment/web" in " ".join(text.split())


def test_pods_of_a_workload_that_all_have_nodes(tmp_path: Path) -> None:
    pods = [owned(a_pod(f"db-{number}", cpu="1", node="small-00"), "StatefulSet", "db") for number in range(2)]
    code, text = explained(tmp_path, "sts/db", there=[*MANY, *pods])
    assert code == 0 and "default/db-0 is on small-00" in text and "default/db-1 is on small-00" in text


def test_equal_scores_are_one_row(tmp_path: Path) -> None:
    code, text = explained(tmp_path, "web", there=[*MANY[15:42], a_pod("web", cpu="100m")])
    rows = [line for line in text.splitlines() if line.startswith("│")]
    assert code == 0 and len([row for row in rows if "27:" in row]) == 1 and "small-05" not in text


@pytest.mark.parametrize("target", [["web"], [], ["web", "other"], ["-A"]])
def test_json_is_as_the_schema_says(tmp_path: Path, target: list[str]) -> None:
    there: list[Object] = [
        *MANY,
        a_pod("web", cpu="3", nodeSelector={"disk": "sdd"}),
        a_pod("other", cpu="100m"),
        a_pod("gated", cpu="1", schedulingGates=[{"name": "quota"}]),
        a_pod("low", cpu="1", node="small-00"),
        a_pod("high", cpu="1", priority=100, nodeSelector={"kubernetes.io/hostname": "small-00"}),
    ]
    _, text = explained(tmp_path, *target, "-o", "json", there=there)
    schema.check(json.loads(text))


def test_events_and_conditions_of_a_dump(tmp_path: Path) -> None:
    pod = a_pod("web", cpu="9")
    found: Any = msgspec.to_builtins(pod, enc_hook=str) | {"kind": "Pod", "apiVersion": "v1"}
    found["metadata"]["creationTimestamp"] = "2026-01-01T10:00:00Z"
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web"},
        "reason": "FailedScheduling",
        "message": "0/1 nodes are available",
        "lastTimestamp": "2026-01-01T12:00:00Z",
        "count": 7,
    }
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        "spec": {"holderIdentity": "h", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T12:00:01.000000Z"},
    }
    (tmp_path / "more.json").write_text(json.dumps({"kind": "List", "items": [found, event, lease]}))
    (tmp_path / "nodes").mkdir()
    nodes = dump(tmp_path / "nodes", a_node("a", cpu=1))
    answer = CliRunner().invoke(main, ["explain", "web", "--from", nodes, "--from", str(tmp_path / "more.json")])
    assert answer.output.startswith("default/web has no node for 2 h: the only node cannot take it.")
    assert "kube-scheduler serves default-scheduler (h)." in answer.output
    assert "Last said (1 s ago), 7 times: FailedScheduling: 0/1 nodes are available" in answer.output
