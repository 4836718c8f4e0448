"""The controllers that make pods, in virtual time."""

from __future__ import annotations

import pytest

from tests.embedded.controllers.workloads import FAST, JOB, SET, WEB, condition, images, names, phases
from tests.embedded.virtual_cluster import VirtualCluster

REVISION = "deployment.kubernetes.io/revision"


@pytest.fixture
def cluster() -> VirtualCluster:
    world = VirtualCluster()
    world.nodes(3)
    return world


def test_a_deployment_gets_its_pods(cluster: VirtualCluster) -> None:
    cluster.create(WEB)
    cluster.settle()
    deployment = cluster.get("deployments.apps", "default/web")
    assert deployment["status"]["availableReplicas"] == 4
    assert condition(deployment, "Available")["status"] == "True"
    assert condition(deployment, "Progressing")["reason"] == "NewReplicaSetAvailable"
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    assert phases(cluster.all("pods")) == ["Running"] * 4
    (replica_set,) = cluster.all("replicasets.apps")
    assert all(name.startswith(f"{replica_set['metadata']['name']}-") for name in names(cluster.all("pods")))


@pytest.mark.parametrize(
    ("costs", "left"),
    [
        pytest.param(["-4", "-3", "-2", "-1"], [2, 3], id="the cheapest go"),
        pytest.param(["5", "", "-5", "7"], [0, 3], id="no cost is 0"),
        pytest.param(["1", "+9", "09", "2147483648"], None, id="what is no number of Kubernetes is 0"),
    ],
)
def test_scaling_down_begins_with_pods_of_low_cost(
    cluster: VirtualCluster, costs: list[str], left: list[int] | None
) -> None:
    cluster.create(WEB)
    cluster.settle()
    pods = sorted(names(cluster.all("pods")))
    for name, cost in zip(pods, costs, strict=True):
        if cost:
            pod = cluster.get("pods", f"default/{name}")
            annotations = {"controller.kubernetes.io/pod-deletion-cost": cost}
            cluster.update({**pod, "metadata": {**pod["metadata"], "annotations": annotations}})
    cluster.change("deployments.apps", "default/web", replicas=2)
    cluster.settle()
    after = sorted(names(cluster.all("pods")))
    assert after == [pods[number] for number in left] if left is not None else pods[0] in after and len(after) == 2


def test_a_rollout_keeps_enough_pods_and_never_has_too_many(cluster: VirtualCluster) -> None:
    cluster.create(WEB)
    cluster.settle()
    seen: list[tuple[int, int]] = []

    def count(_change: object) -> None:
        wanted = sum(each["spec"]["replicas"] for each in cluster.all("replicasets.apps"))
        pods = [pod for pod in cluster.all("pods") if "deletionTimestamp" not in pod["metadata"]]
        seen.append((wanted, sum(pod["status"]["phase"] == "Running" for pod in pods)))

    cluster.store.listeners.append(count)
    template = cluster.get("deployments.apps", "default/web")["spec"]["template"]
    changed = {**template, "spec": {**template["spec"], "containers": [{"name": "c", "image": "x:2"}]}}
    cluster.change("deployments.apps", "default/web", template=changed)
    cluster.settle()
    assert images(cluster.all("pods")) == {"x:2"}
    assert max(total for total, _ in seen) <= 5
    assert min(running for _, running in seen) >= 3
    assert sorted(each["spec"]["replicas"] for each in cluster.all("replicasets.apps")) == [0, 4]


def test_a_rollout_back_uses_the_old_set_again(cluster: VirtualCluster) -> None:
    cluster.create(WEB)
    cluster.settle()
    template = cluster.get("deployments.apps", "default/web")["spec"]["template"]
    changed = {**template, "spec": {**template["spec"], "containers": [{"name": "c", "image": "x:2"}]}}
    for wanted in (changed, template):
        cluster.change("deployments.apps", "default/web", template=wanted)
        cluster.settle()
    assert len(cluster.all("replicasets.apps")) == 2
    annotations = cluster.get("deployments.apps", "default/web")["metadata"]["annotations"]
    assert annotations[REVISION] == "3"


def test_recreate_ends_all_old_pods_first(cluster: VirtualCluster) -> None:
    cluster.create(WEB.replace("replicas: 4", "replicas: 4\n  strategy: {type: Recreate}"))
    cluster.settle()
    template = cluster.get("deployments.apps", "default/web")["spec"]["template"]
    changed = {**template, "spec": {**template["spec"], "containers": [{"name": "c", "image": "x:2"}]}}
    mixed: list[set[str]] = []
    cluster.store.listeners.append(lambda _: mixed.append(images(cluster.all("pods"))))
    cluster.change("deployments.apps", "default/web", template=changed)
    cluster.settle()
    assert images(cluster.all("pods")) == {"x:2"}
    assert all(len(found) <= 1 for found in mixed)


def test_a_deployment_without_nodes_times_out(cluster: VirtualCluster) -> None:
    for name in names(cluster.all("nodes")):
        cluster.delete("nodes", name)
    cluster.create(WEB)
    cluster.settle()
    cluster.settle(601)
    assert condition(cluster.get("deployments.apps", "default/web"), "Progressing")["reason"] == (
        "ProgressDeadlineExceeded"
    )


def test_scaling_down_takes_pods_without_a_node_first() -> None:
    cluster = VirtualCluster()
    cluster.nodes(1)
    cluster.create(WEB)
    cluster.controllers.settle(cluster.now)
    pods = cluster.resource("v1", "Pod")
    bound = names(cluster.all("pods"))[:2]
    for name in bound:
        raw = {"metadata": {"name": name}, "target": {"name": "n0"}}
        cluster.subresources.bind(pods, "default", name, raw, cluster.options())
    cluster.change("deployments.apps", "default/web", replicas=2)
    cluster.controllers.settle(cluster.now)
    assert sorted(names(cluster.all("pods"))) == sorted(bound)


def test_a_job_runs_its_pods_a_few_at_a_time(cluster: VirtualCluster) -> None:
    cluster.create(JOB)
    cluster.settle()
    assert phases(cluster.all("pods")) == ["Running"] * 2
    cluster.settle(10)
    assert phases(cluster.all("pods")) == ["Running"] * 2 + ["Succeeded"] * 2
    cluster.settle(10)
    cluster.settle(10)
    job = cluster.get("jobs.batch", "default/once")
    assert job["status"]["succeeded"] == 5
    assert condition(job, "Complete")["status"] == "True"
    assert "completionTime" in job["status"]


def test_a_job_that_fails_too_often_gives_up(cluster: VirtualCluster) -> None:
    cluster.create(JOB.replace("{stowplan.io", "{stowplan.io/exit-code: '3', stowplan.io"))
    for _ in range(12):
        cluster.settle(60)
    job = cluster.get("jobs.batch", "default/once")
    assert condition(job, "Failed")["reason"] == "BackoffLimitExceeded"
    assert job["status"]["failed"] >= 3


def test_an_indexed_job_gives_each_pod_its_number(cluster: VirtualCluster) -> None:
    cluster.create(JOB.replace("completions: 5", "completionMode: Indexed\n  completions: 3"))
    for _ in range(4):
        cluster.settle(11)
    job = cluster.get("jobs.batch", "default/once")
    assert job["status"]["completedIndexes"] == "0-2"
    found = {pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] for pod in cluster.all("pods")}
    assert found == {"0", "1", "2"}


def test_a_finished_job_is_deleted_after_its_ttl(cluster: VirtualCluster) -> None:
    cluster.create(JOB.replace("completions: 5", "ttlSecondsAfterFinished: 30\n  completions: 2"))
    cluster.settle()
    cluster.settle(11)
    assert condition(cluster.get("jobs.batch", "default/once"), "Complete")["status"] == "True"
    cluster.settle(31)
    assert cluster.all("jobs.batch") == cluster.all("pods") == []


def test_a_suspended_job_has_no_pods(cluster: VirtualCluster) -> None:
    cluster.create(JOB.replace("completions: 5", "suspend: true\n  completions: 5"))
    cluster.settle()
    assert cluster.all("pods") == []
    assert condition(cluster.get("jobs.batch", "default/once"), "Suspended")["status"] == "True"
    cluster.change("jobs.batch", "default/once", suspend=False)
    cluster.settle()
    assert len(cluster.all("pods")) == 2


def test_a_stateful_set_makes_one_pod_after_the_other_with_its_claim() -> None:
    cluster = VirtualCluster(start_seconds=1.0)
    cluster.nodes(2)
    cluster.create(FAST)
    cluster.create(SET)
    for number in range(1, 4):
        cluster.settle()
        assert names(cluster.all("pods")) == [f"db-{each}" for each in range(number)]
        cluster.settle(1)
    assert names(cluster.all("persistentvolumeclaims")) == ["data-db-0", "data-db-1", "data-db-2"]
    assert {each["status"]["phase"] for each in cluster.all("persistentvolumeclaims")} == {"Bound"}
    assert cluster.get("statefulsets.apps", "default/db")["status"]["readyReplicas"] == 3


def test_a_stateful_set_renews_and_shrinks_from_its_end(cluster: VirtualCluster) -> None:
    cluster.create(FAST)
    cluster.create(SET)
    cluster.settle()
    uids = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in cluster.all("pods")}
    template = cluster.get("statefulsets.apps", "default/db")["spec"]["template"]
    changed = {**template, "spec": {**template["spec"], "containers": [{"name": "c", "image": "x:2"}]}}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    cluster.change("statefulsets.apps", "default/db", template=changed, updateStrategy=strategy)
    cluster.settle()
    after = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in cluster.all("pods")}
    assert [name for name in uids if uids[name] != after[name]] == ["db-2"]
    cluster.change("statefulsets.apps", "default/db", replicas=1)
    cluster.settle()
    assert names(cluster.all("pods")) == ["db-0"]


@pytest.mark.parametrize(
    ("policy", "scaled", "deleted"),
    [
        pytest.param({}, 3, 3, id="kept by default"),
        pytest.param({"whenScaled": "Delete"}, 2, 2, id="deleted when it shrinks"),
        pytest.param({"whenDeleted": "Delete"}, 3, 0, id="deleted with the set"),
        pytest.param({"whenScaled": "Delete", "whenDeleted": "Delete"}, 2, 0, id="deleted in both cases"),
    ],
)
def test_what_becomes_of_the_claims_of_a_stateful_set(policy: dict[str, str], scaled: int, deleted: int) -> None:
    cluster = VirtualCluster()
    cluster.nodes(2)
    cluster.create(FAST)
    cluster.create(SET)
    cluster.change("statefulsets.apps", "default/db", persistentVolumeClaimRetentionPolicy=policy)
    cluster.settle()
    cluster.change("statefulsets.apps", "default/db", replicas=2)
    cluster.settle(1)
    assert len(cluster.all("persistentvolumeclaims")) == scaled
    cluster.delete("statefulsets.apps", "default/db")
    cluster.settle(1)
    assert len(cluster.all("persistentvolumeclaims")) == deleted


def test_revisions_are_numbered_and_the_oldest_forgotten(cluster: VirtualCluster) -> None:
    cluster.create(SET.replace("spec:\n  replicas: 3", "spec:\n  revisionHistoryLimit: 1\n  replicas: 1"))
    cluster.settle()
    first = cluster.all("controllerrevisions.apps")[0]["metadata"]["name"]
    template = cluster.get("statefulsets.apps", "default/db")["spec"]["template"]
    for image in ("x:2", "x:3"):
        spec = {**template["spec"], "containers": [{"name": "c", "image": image}]}
        cluster.change("statefulsets.apps", "default/db", template={**template, "spec": spec})
        cluster.settle(1)
    assert sorted(each["revision"] for each in cluster.all("controllerrevisions.apps")) == [2, 3]
    cluster.change("statefulsets.apps", "default/db", template=template)
    cluster.settle(1)
    found = {each["metadata"]["name"]: each["revision"] for each in cluster.all("controllerrevisions.apps")}
    assert found[first] == 4 and sorted(found.values()) == [3, 4]


def test_a_daemon_set_has_a_pod_for_each_node(cluster: VirtualCluster) -> None:
    template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"selector": {"matchLabels": {"app": "d"}}, "template": template}
    cluster.create({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": spec})
    cluster.settle()
    assert cluster.get("daemonsets.apps", "default/d")["status"]["numberReady"] == 3
    cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "late"}})
    cluster.settle()
    assert cluster.get("daemonsets.apps", "default/d")["status"]["desiredNumberScheduled"] == 4


def test_a_pod_that_cannot_be_created_is_retried_later(cluster: VirtualCluster) -> None:
    cluster.create(WEB.replace("spec: {containers", "spec: {priorityClassName: none, containers"))
    cluster.settle()
    assert cluster.all("pods") == []
    reasons = {event["reason"] for event in cluster.all("events")}
    assert "FailedCreate" in reasons
    metadata = {"name": "none"}
    cluster.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": 7})
    cluster.settle(120)
    assert {pod["spec"]["priority"] for pod in cluster.all("pods")} == {7}


def test_a_daemon_set_has_revisions_and_counts_its_templates(cluster: VirtualCluster) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    cluster.create({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}, "spec": spec})
    cluster.settle()
    changed = {**template, "spec": {"containers": [{"name": "c", "image": "x:2"}]}}
    cluster.change("daemonsets.apps", "default/d", template=changed)
    cluster.settle()
    revisions = {each["revision"]: each["metadata"] for each in cluster.all("controllerrevisions.apps")}
    labels = [pod["metadata"]["labels"] for pod in cluster.all("pods")]
    assert sorted(revisions) == [1, 2]
    assert {each["pod-template-generation"] for each in labels} == {"2"}
    assert {f"d-{each['controller-revision-hash']}" for each in labels} == {revisions[2]["name"]}
    cluster.change("daemonsets.apps", "default/d", minReadySeconds=1)
    found = cluster.get("daemonsets.apps", "default/d")["metadata"]["annotations"]
    assert found == {"deprecated.daemonset.template.generation": "2"}


def test_pods_below_a_partition_keep_their_revision(cluster: VirtualCluster) -> None:
    cluster.create(SET.replace("replicas: 3", "replicas: 2\n  updateStrategy: {rollingUpdate: {partition: 1}}"))
    cluster.settle()
    template = cluster.get("statefulsets.apps", "default/db")["spec"]["template"]
    changed = {**template, "spec": {**template["spec"], "containers": [{"name": "c", "image": "x:2"}]}}
    cluster.change("statefulsets.apps", "default/db", template=changed)
    cluster.settle()
    cluster.delete("pods", "default/db-0", grace_period_seconds=0)
    cluster.settle()
    found = {pod["metadata"]["name"]: pod for pod in cluster.all("pods")}
    assert images([found["db-0"]]) == {"x:1"}
    assert images([found["db-1"]]) == {"x:2"}
    revisions = [found[name]["metadata"]["labels"]["controller-revision-hash"] for name in ("db-0", "db-1")]
    status = cluster.get("statefulsets.apps", "default/db")["status"]
    assert revisions == [status["currentRevision"], status["updateRevision"]]


def test_the_pods_of_an_indexed_job_know_their_index(cluster: VirtualCluster) -> None:
    cluster.create(JOB.replace("completions: 5", "completions: 2\n  completionMode: Indexed"))
    cluster.settle()
    pods = cluster.all("pods")
    assert sorted(pod["spec"]["hostname"] for pod in pods) == ["once-0", "once-1"]
    (variable,) = pods[0]["spec"]["containers"][0]["env"]
    path = "metadata.labels['batch.kubernetes.io/job-completion-index']"
    assert variable["name"] == "JOB_COMPLETION_INDEX"
    assert variable["valueFrom"]["fieldRef"]["fieldPath"] == path


def test_a_job_whose_pods_tell_nothing_waits_before_it_tries_again(cluster: VirtualCluster) -> None:
    cluster.create(JOB.replace("parallelism: 2", "parallelism: 1"))
    cluster.settle()
    (pod,) = cluster.all("pods")
    cluster.update({**pod, "status": {"phase": "Failed"}}, "status")
    cluster.settle(9)
    assert phases(cluster.all("pods")) == ["Failed"]
    cluster.settle(1)
    assert phases(cluster.all("pods")) == ["Failed", "Running"]


def test_a_replica_set_that_comes_back_remembers_its_revisions(cluster: VirtualCluster) -> None:
    cluster.create(WEB)
    cluster.settle()
    first = cluster.get("deployments.apps", "default/web")["spec"]["template"]
    for image in ("x:2", "x:1", "x:2", "x:1"):
        changed = {**first, "spec": {**first["spec"], "containers": [{"name": "c", "image": image}]}}
        cluster.change("deployments.apps", "default/web", template=changed)
        cluster.settle()
    found = {each["metadata"]["annotations"][REVISION]: each["metadata"]["annotations"].get(f"{REVISION}-history")
             for each in cluster.all("replicasets.apps")}  # fmt: skip
    assert found == {"4": "2", "5": "1,3"}
