"""NoExecute taints: who is evicted, when, and what is told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.controllers.test_refused_pods import DAEMONS
from tests.embedded.controllers.workloads import WEB, condition, names
from tests.embedded.test_quotas import a_pod
from tests.embedded.virtual_cluster import VirtualCluster

NO_EXECUTE = {"key": "k", "value": "v", "effect": "NoExecute"}
LOST = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


def tolerating(seconds: int | None = None, **more: Any) -> dict[str, Any]:
    limit = {} if seconds is None else {"tolerationSeconds": seconds}
    return {"key": "k", "operator": "Exists", "effect": "NoExecute", **limit, **more}


def taint(cluster: VirtualCluster, *taints: dict[str, str], node: str = "n0") -> None:
    """The node has these taints, and no others."""
    cluster.change("nodes", node, taints=list(taints))
    cluster.settle()


def events(cluster: VirtualCluster) -> list[str]:
    return [event["message"] for event in cluster.all("events") if event["reason"] == "TaintManagerEviction"]


@pytest.fixture
def cluster() -> VirtualCluster:
    found = VirtualCluster()
    found.nodes(1)
    return found


STAYS = [
    pytest.param([], [NO_EXECUTE], 0, id="without a toleration it goes at once"),
    pytest.param([tolerating()], [NO_EXECUTE], None, id="with a toleration it stays"),
    pytest.param([{"operator": "Exists"}], [NO_EXECUTE, LOST], None, id="a toleration of everything"),
    pytest.param([{"key": "k", "value": "v", "effect": "NoExecute"}], [NO_EXECUTE], None, id="the same value"),
    pytest.param([{"key": "k", "value": "w", "effect": "NoExecute"}], [NO_EXECUTE], 0, id="another value"),
    pytest.param([tolerating(effect="NoSchedule")], [NO_EXECUTE], 0, id="another effect"),
    pytest.param([tolerating(60)], [NO_EXECUTE], 60, id="for a minute"),
    pytest.param([tolerating(0)], [NO_EXECUTE], 0, id="for no time"),
    pytest.param([tolerating(-5)], [NO_EXECUTE], 0, id="for less than no time"),
    pytest.param([tolerating(60), tolerating(30)], [NO_EXECUTE], 60, id="the first toleration that matches counts"),
    pytest.param([tolerating(60)], [NO_EXECUTE, LOST], 60, id="the shortest of several taints"),
    pytest.param([], [LOST], 300, id="a lost node, by default"),
    pytest.param([], [{"key": "k", "effect": "NoSchedule"}], None, id="other effects evict nobody"),
]


@pytest.mark.parametrize(("tolerations", "taints", "seconds"), STAYS)
def test_a_pod_stays_as_long_as_it_tolerates(
    cluster: VirtualCluster, tolerations: list[dict[str, Any]], taints: list[dict[str, str]], seconds: int | None
) -> None:
    cluster.create(a_pod(tolerations=tolerations))
    cluster.settle()
    taint(cluster, *taints)
    if seconds is None:
        cluster.settle(10_000)
        assert names(cluster.all("pods")) == ["p"]
        assert events(cluster) == []
        return
    if seconds:
        cluster.settle(seconds - 1)
        assert names(cluster.all("pods")) == ["p"]
        assert events(cluster) == []
        cluster.settle(1)
    assert cluster.all("pods") == []
    assert events(cluster) == ["Marking for deletion Pod default/p"]


def test_the_event_is_about_the_pod_by_name(cluster: VirtualCluster) -> None:
    cluster.create(a_pod())
    cluster.settle()
    taint(cluster, NO_EXECUTE)
    (event,) = [event for event in cluster.all("events") if event["reason"] == "TaintManagerEviction"]
    assert event["involvedObject"] == {"kind": "Pod", "apiVersion": "v1", "name": "p", "namespace": "default"}
    assert (event["type"], event["source"]) == ("Normal", {"component": "taint-eviction-controller"})


def test_a_pod_that_is_evicted_says_why() -> None:
    cluster = VirtualCluster(stop_seconds=10.0)
    cluster.nodes(1)
    cluster.create(a_pod())
    cluster.settle()
    taint(cluster, NO_EXECUTE)
    pod = cluster.get("pods", "default/p")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    found = condition(pod, "DisruptionTarget")
    assert (found["reason"], found["message"]) == (
        "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint",
    )  # fmt: skip


def test_the_eviction_is_cancelled_when_the_taint_goes(cluster: VirtualCluster) -> None:
    cluster.create(a_pod(tolerations=[tolerating(60)]))
    cluster.settle()
    taint(cluster, NO_EXECUTE)
    cluster.settle(30)
    taint(cluster)
    assert events(cluster) == ["Cancelling deletion of Pod default/p"]
    cluster.settle(1000)
    assert names(cluster.all("pods")) == ["p"]
    taint(cluster, NO_EXECUTE)
    cluster.settle(59)
    assert names(cluster.all("pods")) == ["p"]
    cluster.settle(1)
    assert cluster.all("pods") == []


def test_a_second_taint_does_not_start_the_time_anew(cluster: VirtualCluster) -> None:
    cluster.create(a_pod(tolerations=[tolerating(60)]))
    cluster.settle()
    taint(cluster, NO_EXECUTE)
    cluster.settle(30)
    taint(cluster, NO_EXECUTE, LOST)
    cluster.settle(30)
    assert cluster.all("pods") == []


def test_a_pod_that_goes_by_itself_is_not_evicted(cluster: VirtualCluster) -> None:
    cluster.create(a_pod(tolerations=[tolerating(60)]))
    cluster.settle()
    taint(cluster, NO_EXECUTE)
    cluster.delete("pods", "default/p")
    cluster.settle()
    assert events(cluster) == ["Cancelling deletion of Pod default/p"]
    cluster.create(a_pod(tolerations=[tolerating()]))
    cluster.settle(60)
    assert names(cluster.all("pods")) == ["p"]


def test_a_pod_that_comes_to_a_tainted_node_goes(cluster: VirtualCluster) -> None:
    taint(cluster, NO_EXECUTE)
    cluster.create(a_pod(nodeName="n0"))
    cluster.settle()
    assert cluster.all("pods") == []


def test_replicas_move_to_other_nodes() -> None:
    cluster = VirtualCluster()
    cluster.nodes(2)
    cluster.create(WEB)
    cluster.settle()
    cluster.change("nodes", "n0", taints=[NO_EXECUTE])
    for _ in range(200):  # the scheduler of this test binds to any node
        if not cluster.controllers.step(cluster.now):
            break
    assert {pod["spec"].get("nodeName") for pod in cluster.all("pods")} == {"n1", None}
    assert len(cluster.all("pods")) == 4


def test_daemons_stay_on_a_lost_node_and_leave_a_tainted_one(cluster: VirtualCluster) -> None:
    cluster.create(DAEMONS)
    cluster.settle()
    (before,) = cluster.all("pods")
    taint(cluster, LOST, {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"})
    cluster.settle(10_000)
    assert names(cluster.all("pods")) == names([before])
    taint(cluster, NO_EXECUTE)
    assert cluster.all("pods") == []
    assert cluster.get("daemonsets.apps", "default/ds")["status"]["desiredNumberScheduled"] == 0


def test_a_daemon_that_is_there_stays_when_no_new_one_would_come(cluster: VirtualCluster) -> None:
    cluster.create(DAEMONS)
    cluster.settle()
    taint(cluster, {"key": "k", "effect": "NoSchedule"})
    status = cluster.get("daemonsets.apps", "default/ds")["status"]
    assert len(cluster.all("pods")) == 1
    assert (status["desiredNumberScheduled"], status["numberMisscheduled"]) == (0, 1)


def test_only_daemons_on_the_host_network_tolerate_a_node_without_network(cluster: VirtualCluster) -> None:
    key = "node.kubernetes.io/network-unavailable"
    for name, host in (("plain", False), ("host", True)):
        template = DAEMONS["spec"]["template"]  # type: ignore[index]
        spec = {**DAEMONS["spec"], "template": {**template, "spec": {**template["spec"], "hostNetwork": host}}}  # type: ignore[dict-item]
        cluster.create({**DAEMONS, "metadata": {"name": name}, "spec": spec})
    cluster.settle()
    tolerated = {
        pod["metadata"]["name"].partition("-")[0]: any(each.get("key") == key for each in pod["spec"]["tolerations"])
        for pod in cluster.all("pods")
    }
    assert tolerated == {"plain": False, "host": True}
