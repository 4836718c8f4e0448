"""Manifests and dumps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stowplan.embedded import manifests
from stowplan.embedded.timestamps import stamp
from stowplan.objects.errors import ConfigError
from tests.embedded.controllers.test_cron_jobs import a_cron_job
from tests.embedded.controllers.workloads import names
from tests.embedded.virtual_cluster import START, VirtualCluster

DUMP = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {"apiVersion": "v1", "kind": "Pod",
         "metadata": {"name": "web-1", "namespace": "shop", "uid": "old", "resourceVersion": "7", "labels": None,
                      "creationTimestamp": "2020-01-01T00:00:00Z",
                      "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "gone",
                                           "controller": True}]},
         "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "x"}]},
         "status": {"phase": "Running", "podIP": "10.1.1.1"}},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "shop", "uid": "gone"},
         "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}},
                  "template": {"metadata": {"labels": {"a": "b"}},
                               "spec": {"containers": [{"name": "c", "image": "x"}]}}}},
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"},
         "status": {"conditions": [{"type": "Ready", "status": "False"}]}},
        {"apiVersion": "monitoring.example/v1", "kind": "Alert", "metadata": {"name": "a"}},
    ],
}  # fmt: skip
BOMB = "\n".join(["- &a0 x", *(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))])


def test_a_dump_is_loaded_with_owners_before_what_they_own(tmp_path: Path) -> None:
    (tmp_path / "dump.json").write_text(json.dumps(DUMP))
    (tmp_path / "more.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n")
    (tmp_path / "readme.txt").write_text("not for us")
    cluster = VirtualCluster()
    result = manifests.load(cluster.api, [tmp_path], cluster.now)
    assert dict(result.loaded) == {"Namespace": 1, "Node": 1, "ReplicaSet": 1, "Pod": 1}
    assert dict(result.skipped) == {"Alert": 1}
    cluster.settle()
    (pod,) = cluster.all("pods")
    assert (
        pod["metadata"]["ownerReferences"][0]["uid"] == cluster.get("replicasets.apps", "shop/web")["metadata"]["uid"]
    )
    assert (pod["metadata"]["name"], pod["status"]["podIP"], pod["status"]["phase"]) == ("web-1", "10.1.1.1", "Running")
    assert cluster.get("nodes", "n1")["status"]["conditions"] == [{"type": "Ready", "status": "False"}]


def _revised(kind: str, told: str, label: str) -> list[dict[str, Any]]:
    """A StatefulSet or DaemonSet of a real cluster with one pod, whose revision has a name of that cluster."""
    spec = {"containers": [{"name": "c", "image": "x"}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    own = {"replicas": 1, "serviceName": "db"} if kind == "StatefulSet" else {}
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "db", "uid": "1", "controller": True}
    pod = {"name": "db-0", "labels": {"a": "b", "controller-revision-hash": label}, "ownerReferences": [owner]}
    return [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
        {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "db"},
         "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template, **own},
         "status": {"updateRevision": told} if told else {}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": pod, "spec": {**spec, "nodeName": "n1"},
         "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "told", "label", "stays"),
    [
        pytest.param("StatefulSet", "db-7d9f", "db-7d9f", True, id="a StatefulSet's newest revision"),
        pytest.param("StatefulSet", "", "db-7d9f", True, id="a StatefulSet that does not say which is newest"),
        pytest.param("StatefulSet", "db-8888", "db-7d9f", False, id="a rollout that goes on"),
        pytest.param("DaemonSet", "", "7d9f", True, id="a DaemonSet"),
    ],
)
def test_a_pod_of_another_clusters_revision_stays(kind: str, told: str, label: str, stays: bool) -> None:
    cluster = VirtualCluster()
    manifests.load_documents(cluster.api, [("dump", each) for each in _revised(kind, told, label)], cluster.now)
    (before,) = cluster.all("pods")
    cluster.settle()
    uids = [each["metadata"]["uid"] for each in cluster.all("pods")]
    assert (before["metadata"]["uid"] in uids) is stays and len(uids) == 1


def stamped(minute: int) -> str:
    return stamp(START + 60 * minute)


@pytest.mark.parametrize(
    ("policy", "jobs"),
    [
        pytest.param("Forbid", ["cron-1"], id="one that runs is the only one"),
        pytest.param("Allow", ["cron-1", f"cron-{int(START) // 60 + 1}"], id="the next one joins it"),
        pytest.param("Replace", [f"cron-{int(START) // 60 + 1}"], id="the next one replaces it"),
    ],
)
def test_the_jobs_of_a_cron_job_run_on(tmp_path: Path, policy: str, jobs: list[str]) -> None:
    cron = a_cron_job(seconds=1000, concurrencyPolicy=policy)
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "cron", "uid": "old", "controller": True}
    metadata = {"name": "cron-1", "namespace": "default", "uid": "gone", "ownerReferences": [owner]}
    spec = cron["spec"]["jobTemplate"]["spec"]
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    active = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": name, "namespace": "default", "uid": uid}
        for name, uid in (("cron-1", "gone"), ("cron-0", "lost"))
    ]
    cron["status"] = {"lastScheduleTime": stamped(0), "lastSuccessfulTime": stamped(-9), "active": active}
    (tmp_path / "dump.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [job, cron]}))
    cluster = VirtualCluster()
    cluster.nodes(1)
    manifests.load(cluster.api, [tmp_path], cluster.now)
    found = cluster.get("jobs.batch", "default/cron-1")["metadata"]
    status = cluster.get("cronjobs.batch", "default/cron")["status"]
    assert found["ownerReferences"][0]["uid"] == cluster.get("cronjobs.batch", "default/cron")["metadata"]["uid"]
    assert [(each["name"], each["uid"]) for each in status["active"]] == [("cron-1", found["uid"])]
    assert (status["lastScheduleTime"], status["lastSuccessfulTime"]) == (stamped(0), stamped(-9))
    cluster.settle()
    assert names(cluster.all("jobs.batch")) == ["cron-1"]
    cluster.settle(60)
    assert names(cluster.all("jobs.batch")) == jobs
    told = {event["reason"] for event in cluster.all("events") if event["involvedObject"]["kind"] == "CronJob"}
    assert told.isdisjoint({"UnexpectedJob", "MissingJob"})


def test_what_is_there_already_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "ns.yaml"
    file.write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: default}\n")
    cluster = VirtualCluster(controllers=False)
    assert dict(manifests.load(cluster.api, [file], cluster.now).present) == {"Namespace": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("a: [", "cannot be read", id="no YAML"),
        pytest.param(BOMB, "cannot be read: line 6: found more than 100,[0-9]* values", id="aliases to aliases"),
        pytest.param("just text", "not a Kubernetes object", id="no object"),
        pytest.param(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "spec.containers: Required value", id="a bad pod"
        ),
        pytest.param(
            json.dumps({**a_cron_job(), "status": {"lastScheduleTime": 5}}), "CronJob cron: ", id="a bad status"
        ),
    ],
)
def test_errors_name_the_file(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message) as refused:
        manifests.load(VirtualCluster(controllers=False).api, [file], 0.0)
    assert str(file) in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        pytest.param(
            "bad.json",
            '{"apiVersion": "v1",\n "kind": "Pod",\n}',
            "cannot be read: line 3: not a JSON object",
            id="JSON",
        ),
        pytest.param("bad.yaml", "kind: Pod\nmetadata:\n  name: [a\n", "cannot be read: line 4: not YAML", id="YAML"),
        pytest.param(
            "bad.yaml", "kind: Pod\n---\nhello: 1\n", "document 2: not a Kubernetes object", id="one of two documents"
        ),
    ],
)
def test_errors_name_the_line_or_the_document(tmp_path: Path, name: str, text: str, said: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        list(manifests.documents([file]))
    assert str(refused.value).startswith(f"{file}: {said}")


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        manifests.load(VirtualCluster(controllers=False).api, [tmp_path / "nowhere.yaml"], 0.0)
