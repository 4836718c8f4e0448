"""What controllers tell when a quota refuses their objects, and that they go on when there is room."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.embedded.controllers.workloads import FAST, JOB, SET, WEB, condition, names
from tests.embedded.test_quotas import a_claim, a_pod, a_quota, used
from tests.embedded.virtual_cluster import VirtualCluster

TOO_MANY = "is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"
CONTROLLER = WEB.replace("apps/v1", "v1").replace("Deployment", "ReplicationController").replace(
    "selector: {matchLabels: {app: web}}", "selector: {app: web}")  # fmt: skip
DAEMONS = {
    "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "ds"},
    "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
        "containers": [{"name": "c", "image": "x"}]}}},
}  # fmt: skip


@pytest.fixture
def cluster() -> VirtualCluster:
    found = VirtualCluster()
    found.nodes(4)
    found.create(a_quota({"pods": "2"}))
    return found


def messages(cluster: VirtualCluster, reason: str = "FailedCreate") -> list[str]:
    return [event["message"] for event in cluster.all("events") if event["reason"] == reason]


def test_a_deployment_tells_and_goes_on(cluster: VirtualCluster) -> None:
    cluster.create(WEB)
    cluster.settle()
    (replica_set,) = cluster.all("replicasets.apps")
    failure = condition(replica_set, "ReplicaFailure")
    assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
    assert failure["message"].startswith('pods "web-') and failure["message"].endswith(TOO_MANY)
    assert replica_set["status"]["replicas"] == 2
    deployment = cluster.get("deployments.apps", "default/web")
    assert condition(deployment, "ReplicaFailure")["message"] == failure["message"]
    assert condition(deployment, "Progressing")["reason"] == "ReplicaSetUpdated"
    assert messages(cluster)[0] == f"Error creating: {failure['message']}"

    cluster.change("resourcequotas", "default/q", hard={"pods": "9"})
    cluster.settle()
    deployment = cluster.get("deployments.apps", "default/web")
    assert deployment["status"]["readyReplicas"] == 4
    assert [each["type"] for each in deployment["status"]["conditions"]] == ["Available", "Progressing"]
    assert "conditions" not in cluster.all("replicasets.apps")[0]["status"]


def test_the_first_refusal_stays(cluster: VirtualCluster) -> None:
    cluster.create(WEB)
    cluster.settle()
    before = condition(cluster.all("replicasets.apps")[0], "ReplicaFailure")
    told = len(messages(cluster))
    cluster.settle(120)
    assert len(messages(cluster)) > told
    assert condition(cluster.all("replicasets.apps")[0], "ReplicaFailure") == before


def test_room_is_used_at_once_when_a_pod_goes(cluster: VirtualCluster) -> None:
    cluster.create(a_pod("other"))
    cluster.create(CONTROLLER)
    cluster.settle()
    assert condition(cluster.get("replicationcontrollers", "default/web"), "ReplicaFailure")["status"] == "True"
    assert len(cluster.all("pods")) == 2
    cluster.delete("pods", "default/other")
    cluster.settle()
    assert len([name for name in names(cluster.all("pods")) if name.startswith("web-")]) == 2
    assert used(cluster) == {"pods": "2"}


def test_a_job_runs_as_many_pods_as_there_is_room_for(cluster: VirtualCluster) -> None:
    job = yaml.safe_load(JOB)
    cluster.create({**job, "spec": {**job["spec"], "parallelism": 5}})
    cluster.settle()
    assert cluster.get("jobs.batch", "default/once")["status"]["active"] == 2
    assert messages(cluster)[0].startswith('Error creating: pods "once-') and messages(cluster)[0].endswith(TOO_MANY)
    for _ in range(3):
        cluster.settle(10)
    job = cluster.get("jobs.batch", "default/once")
    assert (condition(job, "Complete")["status"], job["status"]["succeeded"]) == ("True", 5)


def test_a_daemon_set_counts_what_it_has(cluster: VirtualCluster) -> None:
    cluster.create(DAEMONS)
    cluster.settle()
    status = cluster.get("daemonsets.apps", "default/ds")["status"]
    assert (status["desiredNumberScheduled"], status["currentNumberScheduled"]) == (4, 2)
    assert messages(cluster)[0].endswith(TOO_MANY)


def test_a_stateful_set_tells_of_its_pod(cluster: VirtualCluster) -> None:
    cluster.create(FAST)
    cluster.create(SET)
    cluster.settle()
    assert cluster.get("statefulsets.apps", "default/db")["status"]["replicas"] == 2
    assert messages(cluster)[0] == f'Create Pod db-2 in StatefulSet db failed error: pods "db-2" {TOO_MANY}'


def test_a_stateful_set_tells_of_its_claim(cluster: VirtualCluster) -> None:
    cluster.create(a_quota({"requests.storage": "1Gi"}, "storage"))
    cluster.create(a_claim())
    cluster.create(FAST)
    cluster.create(SET)
    cluster.settle()
    why = (
        'persistentvolumeclaims "data-db-0" is forbidden: exceeded quota: storage, requested: requests.storage=1Gi, '
        "used: requests.storage=1Gi, limited: requests.storage=1Gi"
    )
    assert messages(cluster)[:2] == [
        f"Create Claim data-db-0 for Pod db-0 in StatefulSet db failed error: {why}",
        f"Create Pod db-0 in StatefulSet db failed error: failed to create PVC data-db-0: {why}",
    ]


def test_a_deployment_tells_of_its_replica_set(cluster: VirtualCluster) -> None:
    cluster.create(a_quota({"count/replicasets.apps": "0"}, "sets"))
    cluster.create(WEB)
    cluster.settle()
    progressing: dict[str, Any] = condition(cluster.get("deployments.apps", "default/web"), "Progressing")
    assert (progressing["status"], progressing["reason"]) == ("False", "ReplicaSetCreateError")
    assert progressing["message"].startswith('Failed to create new replica set "web-')
    assert "exceeded quota: sets, requested: count/replicasets.apps=1" in progressing["message"]
    assert messages(cluster, "ReplicaSetCreateError")[0] == progressing["message"]
    cluster.delete("resourcequotas", "default/sets")
    cluster.settle()
    assert condition(cluster.get("deployments.apps", "default/web"), "Progressing")["status"] == "True"
