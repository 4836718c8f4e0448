"""Quotas: pods of manifests that the API server would refuse, and workloads that cannot create their pods."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from stowplan.apps.cli import main
from tests.apps.explain import schema
from tests.apps.explain.test_explain import NODES, dump
from tests.apps.explain.test_what_if import manifest, pod


def quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "team", "namespace": "default"}
    status = {} if used is None else {"status": {"hard": hard, "used": used}}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard, **spec}, **status}


def run(folder: Path, there: list[dict[str, Any]], *arguments: str) -> tuple[int, Any, str]:
    """Return the exit code, the JSON and the text."""
    nodes = dump(folder, *NODES)
    more = folder / "more.json"
    more.write_text(json.dumps({"kind": "List", "items": there}), encoding="utf-8")
    files = ("--from", nodes, "--from", str(more))
    plain = CliRunner().invoke(main, ["explain", *arguments, *files], env={"COLUMNS": "80"})
    found = CliRunner().invoke(main, ["explain", *arguments, "-o", "json", *files])
    assert found.exit_code in (0, 1), found.output
    document = json.loads(found.stdout)
    schema.check(document)
    return found.exit_code, document, plain.stdout


def applied(folder: Path, *documents: dict[str, Any]) -> str:
    file = folder / "manifest.yaml"
    file.write_text("\n---\n".join(map(yaml.safe_dump, documents)), encoding="utf-8")
    return str(file)


def refused(document: Any) -> list[str]:
    return [each["pod"] for each in document["items"] if any(cause["code"] == "quota" for cause in each["podCauses"])]


@pytest.mark.parametrize(
    ("found", "admitted"),
    [
        pytest.param(quota({"pods": "5"}, {"pods": "3"}), 2, id="pods"),
        pytest.param(quota({"count/pods": "1"}, {"count/pods": "0"}), 1, id="the count of pods"),
        pytest.param(quota({"requests.cpu": "2500m"}, {"requests.cpu": "1"}), 1, id="requests"),
        pytest.param(quota({"cpu": "3"}, {"cpu": "0"}), 3, id="cpu means requests"),
        pytest.param(quota({"services": "0"}, {"services": "0"}), 3, id="nothing that pods have"),
        pytest.param(quota({"pods": "0"}, {"pods": "0"}, scopes=["BestEffort"]), 3, id="about other pods"),
        pytest.param(quota({"pods": "0"}, {"pods": "0"}, scopes=["NotBestEffort"]), 0, id="about these pods"),
        pytest.param(
            quota(
                {"pods": "0"},
                {"pods": "0"},
                scopeSelector={
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
                },
            ),
            3,
            id="of another priority class",
        ),
        pytest.param({**quota({"pods": "0"}), "metadata": {"name": "q", "namespace": "far"}}, 3, id="elsewhere"),
    ],
)
def test_pods_of_a_manifest_beyond_a_quota_are_refused(tmp_path: Path, found: dict[str, Any], admitted: int) -> None:
    file = applied(tmp_path, manifest("Deployment", replicas=3))
    code, document, _ = run(tmp_path, [found], "-f", file)
    assert code == (0 if admitted == 3 else 1)
    assert len(refused(document)) == 3 - admitted
    assert sum(each["node"] is not None for each in document["items"]) == admitted


def test_a_refusal_says_what_is_used_and_how_to_raise_the_quota(tmp_path: Path) -> None:
    file = applied(tmp_path, manifest("Deployment", replicas=3))
    found = quota({"requests.cpu": "2"}, {"requests.cpu": "1500m"})
    code, document, text = run(tmp_path, [found], "-f", file)
    item = document["items"][0]
    assert code == 1 and item["podCauses"][0]["details"] == {
        "quota": "team",
        "resources": {"requests.cpu": {"requested": "1", "used": "1500m", "hard": "2"}},
    }
    said = "exceeded quota: team, requested: requests.cpu=1, used: requests.cpu=1500m, limited: requests.cpu=2"
    assert said in item["message"] and said in " ".join(text.split())
    (remedy,) = item["remedies"]
    patch = [{"op": "replace", "path": "/spec/hard/requests.cpu", "value": "4500m"}]
    assert (remedy["code"], remedy["changes"][0]["patch"]) == ("raise-quota", patch)
    assert remedy["commands"][0].startswith("kubectl -n default patch resourcequota team --type=json")


def test_without_a_status_the_pods_of_the_namespace_are_counted(tmp_path: Path) -> None:
    running = {**pod("runs"), "metadata": {"name": "runs", "namespace": "default"}}
    running["spec"] = {**running["spec"], "nodeName": "a"}
    done = {**running, "metadata": {"name": "done", "namespace": "default"}, "status": {"phase": "Succeeded"}}
    code, document, _ = run(tmp_path, [quota({"pods": "1"}), running, done], "-f", applied(tmp_path, pod()))
    assert code == 1 and refused(document) == ["default/web"]
    assert document["items"][0]["podCauses"][0]["details"]["resources"]["pods"]["used"] == "1"


def test_a_pod_must_say_what_it_wants_of_a_quota(tmp_path: Path) -> None:
    found = quota({"limits.memory": "1Gi"}, {"limits.memory": "0"})
    code, document, _ = run(tmp_path, [found], "-f", applied(tmp_path, pod()))
    cause = document["items"][0]["podCauses"][0]
    assert code == 1 and cause["code"] == "quota-unspecified" and "limits.memory" in cause["text"]


def test_a_quota_in_the_manifest_counts(tmp_path: Path) -> None:
    code, document, _ = run(tmp_path, [], "-f", applied(tmp_path, quota({"pods": "1"}), pod("x"), pod("y")))
    assert code == 1 and refused(document) == ["default/y"]


# -- workloads that exist


def workload(kind: str = "Deployment", number: str = "replicas", **status: Any) -> dict[str, Any]:
    found = manifest(kind)
    found["spec"][number] = 3
    return {**found, "metadata": {"name": "web", "namespace": "default"}, "status": status}


def its_pod(node: str = "") -> dict[str, Any]:
    found = pod("web-1")
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-7f", "uid": "u", "controller": True}
    metadata = {"namespace": "default", "labels": {"pod-template-hash": "7f"}, "ownerReferences": [owner]}
    found["metadata"] = {**found["metadata"], **metadata}
    found["spec"] = {**found["spec"], **({"nodeName": node} if node else {})}
    return found


def test_a_workload_that_a_quota_keeps_from_creating_pods(tmp_path: Path) -> None:
    there = [workload(), its_pod("a"), quota({"pods": "1"}, {"pods": "1"})]
    code, document, text = run(tmp_path, there, "deploy/web")
    assert code == 1 and document["items"] == []
    (found,) = document["workloads"]
    assert (found["wanted"], found["existing"], found["cause"]["code"]) == (3, 1, "quota")
    assert text.startswith("deployment default/web has 1 of 3 pods: quota team allows 1 of pods, 1 is used")
    assert 'patch resourcequota team --type=json -p=\'[{"op":"replace","path":"/spec/hard/pods","value":"3"}]' in text


def test_a_job_says_nothing_of_quotas_but_is_checked(tmp_path: Path) -> None:
    job = workload("Job", "parallelism")
    job["apiVersion"] = "batch/v1"
    code, document, _ = run(tmp_path, [job, quota({"requests.cpu": "500m"}, {"requests.cpu": "0"})], "job/web")
    assert code == 1 and document["workloads"][0]["cause"]["code"] == "quota"


def test_what_the_controller_says_is_shown(tmp_path: Path) -> None:
    said = 'pods "web-7f-" is forbidden: violates PodSecurity "restricted:latest"'
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": said}
    code, document, text = run(tmp_path, [workload(conditions=[condition]), its_pod()], "deploy/web")
    assert code == 1 and document["workloads"][0]["cause"]["code"] == "replica-failure"
    assert len(document["items"]) == 1, "the pod that waits is explained, too"
    assert said in " ".join(text.split())


def test_a_workload_with_all_its_pods_is_not_looked_at(tmp_path: Path) -> None:
    found = workload()
    found["spec"]["replicas"] = 1
    code, document, _ = run(tmp_path, [found, its_pod(), quota({"pods": "1"}, {"pods": "1"})], "deploy/web")
    assert code == 0 and document["workloads"] == []


@pytest.mark.parametrize(
    ("kind", "spec", "status"),
    [
        pytest.param("Deployment", {"replicas": 3}, {}, id="a Deployment whose ReplicaSet cannot be seen"),
        pytest.param(
            "ReplicationController", {"replicas": 3, "selector": {"app": "web"}}, {}, id="a ReplicationController"
        ),
        pytest.param("Job", {"parallelism": 3}, {}, id="a Job"),
        pytest.param("DaemonSet", {}, {"desiredNumberScheduled": 3}, id="a DaemonSet, by what its controller wants"),
    ],
)
def test_a_list_names_workloads_of_every_kind(tmp_path: Path, kind: str, spec: Any, status: Any) -> None:
    found = workload(kind) | {"status": status}
    found["spec"] = {**{key: value for key, value in found["spec"].items() if key != "replicas"}, **spec}
    full = quota({"pods": "0"}, {"pods": "0"})
    code, document, text = run(tmp_path, [found, full])
    assert code == 1 and [(each["kind"], each["wanted"]) for each in document["workloads"]] == [(kind, 3)]
    assert f"{kind.lower()} default/web has 0 of 3 pods: quota team allows 0 of pods" in " ".join(text.split())
    elsewhere = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "other"}}
    assert run(tmp_path, [found, full, elsewhere], "-n", "other")[0] == 0


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        ({"suspend": True}, {}),
        ({}, {"conditions": [{"type": "Complete", "status": "True"}]}),
        ({"completions": 2}, {"succeeded": 2}),
        ({}, {"succeeded": 1}),
    ],
    ids=["suspended", "complete", "all completions are there", "one of a work queue has succeeded"],
)
def test_a_job_that_makes_no_more_pods_lacks_none(tmp_path: Path, spec: Any, status: Any) -> None:
    job = workload("Job", "parallelism") | {"status": status}
    job["spec"] |= spec
    assert run(tmp_path, [job, quota({"pods": "0"}, {"pods": "0"})])[1]["workloads"] == []


# -- what helps


def test_one_remedy_raises_all_that_is_exceeded_and_is_tried_for_all_pods(tmp_path: Path) -> None:
    """Nodes a and b have 6 cpus; the quota admits one of 8 pods, and has room for 3 pods by number."""
    hard, used = {"requests.cpu": "1", "pods": "3"}, {"requests.cpu": "0", "pods": "0"}
    file = applied(tmp_path, manifest("Deployment", replicas=8))
    code, document, text = run(tmp_path, [quota(hard, used)], "-f", file)
    item = next(each for each in document["items"] if each["node"] is None)
    (remedy,) = item["remedies"]
    assert code == 1 and {each["path"]: each["value"] for each in remedy["changes"][0]["patch"]} == {
        "/spec/hard/requests.cpu": "8",
        "/spec/hard/pods": "8",
    }
    assert (remedy["helps"], remedy["triedFor"]) == (5, 7), "one is admitted, and takes room"
    assert remedy["also"] == ["the nodes have room for 5 of these 7 pods"]
    assert "the nodes have room for 5 of these 7 pods" in text


def test_where_no_node_has_room_the_quota_is_raised_with_what_helps(tmp_path: Path) -> None:
    large = pod(containers=[{"name": "c", "image": "i", "resources": {"requests": {"cpu": "6"}}}])
    found = quota({"requests.cpu": "1"}, {"requests.cpu": "0"})
    _, document, _ = run(tmp_path, [found], "-f", applied(tmp_path, large))
    remedies = document["items"][0]["remedies"]
    assert remedies and all(each["text"].startswith("raise quota team: requests.cpu to 6; ") for each in remedies)
    assert {each["code"].partition("+")[0] for each in remedies} == {"raise-quota"}


def test_a_pod_without_requests_is_told_to_specify_them(tmp_path: Path) -> None:
    bare = pod(containers=[{"name": "c", "image": "i"}])
    found = quota({"requests.cpu": "1", "limits.memory": "1Gi"}, {"requests.cpu": "0", "limits.memory": "0"})
    code, document, _ = run(tmp_path, [found], "-f", applied(tmp_path, bare))
    (remedy,) = document["items"][0]["remedies"]
    assert code == 1 and remedy["code"] == "specify-resources"
    assert remedy["text"] == "specify requests.cpu (100m, say), limits.memory (128Mi, say) in every container"
    assert "kubectl patch --local" in remedy["commands"][0] and '"cpu":"100m"' in remedy["commands"][0]
    full = quota({"requests.cpu": "1"}, {"requests.cpu": "1"})
    assert run(tmp_path, [full], "-f", applied(tmp_path, bare))[1]["items"][0]["remedies"] == []
