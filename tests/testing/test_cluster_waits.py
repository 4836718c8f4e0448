"""The waits of an `EmbeddedCluster`: what they return, and what they say in vain."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from stowplan.testing import EmbeddedCluster

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: {name}}}}}
spec: {{containers: [{{name: main, image: nginx, resources: {{requests: {{cpu: {cpu}}}}}}}]}}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: main, image: nginx, resources: {requests: {cpu: CPU}}}]}
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    fits, large = POD.format(name="fits", cpu=1), POD.format(name="large", cpu=9)
    other = DEPLOYMENT.replace("shop", "greedy").replace("CPU", "3")
    manifests = [fits, large, DEPLOYMENT.replace("CPU", "100m"), other]
    with EmbeddedCluster(nodes=2, manifests=manifests, scheduler=True) as cluster:
        yield cluster


def test_what_the_waits_return(cluster: EmbeddedCluster) -> None:
    assert cluster.wait_until_scheduled("fits") in ("node-0", "node-1")
    assert cluster.wait_until_pending("large", "Insufficient cpu").startswith("Unschedulable: 0/2 nodes are available")
    assert cluster.wait_until_available("default/shop")["status"]["availableReplicas"] == 3
    pods = cluster.wait_until_running("app=shop", count=3)
    assert {each["metadata"]["labels"]["app"] for each in pods} == {"shop"} and len(pods) == 3


def scheduled(it: EmbeddedCluster) -> None:
    it.wait_until_pending("large")
    it.wait_until_scheduled("large", within=0)


def pending(it: EmbeddedCluster) -> None:
    it.wait_until_scheduled("fits")
    it.wait_until_pending("fits", within=600)  # it does not wait: the pod is scheduled


def pending_otherwise(it: EmbeddedCluster) -> None:
    it.wait_until_pending("large")
    it.wait_until_pending("large", "Insufficient memory", within=0)


def running(it: EmbeddedCluster) -> None:
    it.wait_until_pending("large")
    it.wait_until_running("app=large", within=0)


def available(it: EmbeddedCluster) -> None:
    """Two nodes have room for two replicas at most."""
    it.wait_until(lambda: sum(bool(each["status"].get("conditions")) for each in it.pods(selector="app=greedy")) == 3)
    it.wait_until_available("greedy", within=0)


DIAGNOSIS = "no node is big enough: the pod wants 9 cpu, the largest has 4"


@pytest.mark.parametrize(
    ("wait", "told"),
    [
        pytest.param(
            scheduled,
            ["pod large is not scheduled after 0 s: it is Pending without a node, Unschedulable: 0/2", DIAGNOSIS],
            id="scheduled",
        ),
        pytest.param(pending, ["pod fits is not pending: it is on node-"], id="pending, and the pod is scheduled"),
        pytest.param(
            pending_otherwise,
            ["pod large is not pending with 'Insufficient memory' after 0 s: it is Pending", DIAGNOSIS],
            id="pending for another reason",
        ),
        pytest.param(
            running,
            ["pods with app=large in default are not Running after 0 s: 0 of 1 are Running; large is", DIAGNOSIS],
            id="running",
        ),
        pytest.param(
            lambda it: it.wait_until_running("app=shop", count=2, within=0),
            ["2 pods with app=shop in default are not Running after 0 s: there are 3, not 2; 3 of 3 are Running"],
            id="running, and there are more",
        ),
        pytest.param(
            available,
            [
                "Deployment greedy is not available after 0 s:",
                "of 3 replicas are updated",
                "greedy",
                "have no node|has no node",
            ],
            id="available",
        ),
        pytest.param(
            lambda it: it.wait_until_scheduled("nobody", within=0),
            ["pod nobody is not scheduled after 0 s: there is no such pod\nPods:"],
            id="no such pod",
        ),
    ],
)
def test_a_wait_in_vain_tells_what_there_is_and_why(
    cluster: EmbeddedCluster, wait: Callable[[EmbeddedCluster], None], told: list[str]
) -> None:
    cluster.wait_until_available("shop")
    with pytest.raises(AssertionError) as raised:
        wait(cluster)
    said = " ".join(str(raised.value).split())
    assert [each for each in told if not any(" ".join(part.split()) in said for part in each.split("|"))] == []
    assert "The end of the scheduler's log:" in said


def test_explain_of_pods_and_of_all_that_wait(cluster: EmbeddedCluster) -> None:
    cluster.wait_until_pending("large")
    assert "lower the cpu request of container main from 9 to" in cluster.explain("large")
    assert "no node" in cluster.explain()


def test_without_a_scheduler_that_is_the_reason() -> None:
    manifests = [POD.format(name="fits", cpu=1)]
    with EmbeddedCluster(nodes=1, manifests=manifests) as cluster, pytest.raises(AssertionError) as raised:
        cluster.wait_until_scheduled("fits", within=0)
    first, second, *_ = str(raised.value).splitlines()
    assert (first, second) == (
        "pod fits is not scheduled after 0 s: it is Pending without a node",
        "No scheduler runs here: scheduler=True, or start_scheduler(), starts one.",
    )
