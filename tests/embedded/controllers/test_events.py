"""Events of controllers: which are counted together, and when they go."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.controllers.workloads import WEB
from tests.embedded.test_quotas import a_pod
from tests.embedded.virtual_cluster import START, VirtualCluster

HOUR = 3600.0
TAINT = {"key": "k", "value": "v", "effect": "NoExecute"}


@pytest.fixture
def cluster() -> VirtualCluster:
    world = VirtualCluster()
    world.nodes(3)
    return world


def an_event(name: str, **more: Any) -> dict[str, Any]:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": about, **more}


def of_reason(cluster: VirtualCluster, reason: str) -> list[dict[str, Any]]:
    return [event for event in cluster.all("events") if event["reason"] == reason]


def test_they_go_an_hour_after_they_were_written(cluster: VirtualCluster) -> None:
    assert {event["reason"] for event in cluster.all("events")} == {"RegisteredNode"}
    cluster.settle(HOUR - 1)
    assert len(cluster.all("events")) == 3
    cluster.settle(1)
    assert cluster.all("events") == []


@pytest.mark.parametrize("said", ["2001-01-01T00:00:00Z", "2999-01-01T00:00:00Z"])
def test_what_an_event_says_of_its_time_does_not_count(cluster: VirtualCluster, said: str) -> None:
    cluster.settle(HOUR)
    cluster.create(an_event("e", lastTimestamp=said))
    cluster.settle()
    cluster.settle(HOUR - 1)
    assert len(cluster.all("events")) == 1
    cluster.settle(1)
    assert cluster.all("events") == []


def test_an_event_that_is_written_again_stays_for_another_hour(cluster: VirtualCluster) -> None:
    cluster.settle(HOUR)
    first = cluster.create(an_event("first", count=1))
    cluster.create(an_event("second"))
    cluster.settle()
    cluster.settle(HOUR / 2)
    cluster.update({**first, "count": 2})
    cluster.settle()
    cluster.settle(HOUR / 2)
    assert [event["metadata"]["name"] for event in cluster.all("events")] == ["first"]
    assert cluster.controllers.next_deadline() == START + 2.5 * HOUR
    cluster.settle(HOUR / 2)
    assert cluster.all("events") == []


def test_nothing_is_known_of_events_that_are_gone(cluster: VirtualCluster) -> None:
    cluster.create(WEB.replace("replicas: 4", "replicas: 30"))
    cluster.settle()
    assert len(cluster.runner.events) > 11
    cluster.settle(HOUR)
    assert len(cluster.runner.events) == 0
    cluster.change("deployments.apps", "default/web", replicas=31)
    cluster.settle()
    (created,) = of_reason(cluster, "SuccessfulCreate")
    assert created["message"].startswith("Created pod: web-")  # it is not combined with those that are gone


def test_events_that_a_terminating_namespace_refuses_are_not_kept_in_mind(cluster: VirtualCluster) -> None:
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    cluster.create(WEB.replace("name: web}\nspec", "name: web, namespace: shop}\nspec"))
    cluster.settle()
    cluster.delete("namespaces", "shop")
    cluster.settle(HOUR)
    assert len(cluster.runner.events) == 0


def test_pods_of_one_name_in_many_namespaces_have_events_of_their_own(cluster: VirtualCluster) -> None:
    spaces = [f"space-{number}" for number in range(15)]
    for name in spaces:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        cluster.create(a_pod() | {"metadata": {"name": "p", "namespace": name}})
    cluster.settle()
    for node in ("n0", "n1", "n2"):
        cluster.change("nodes", node, taints=[TAINT])
    cluster.settle()
    told = [event["message"] for event in of_reason(cluster, "TaintManagerEviction")]
    assert sorted(told) == sorted(f"Marking for deletion Pod {name}/p" for name in spaces)
