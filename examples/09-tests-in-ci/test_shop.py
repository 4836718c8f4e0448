"""What we expect of our manifests and of our policy, on the nodes that we have."""

import pytest

from stowplan.testing import EmbeddedCluster

ZONE = "topology.kubernetes.io/zone"


@pytest.mark.embedded_cluster(nodes=6, manifests=["shop.yaml"], scheduler=True)
def test_the_shop_has_a_replica_in_each_zone(embedded_cluster: EmbeddedCluster) -> None:
    embedded_cluster.wait_until_available("shop/web")
    zones = {each["metadata"]["name"]: each["metadata"]["labels"][ZONE] for each in embedded_cluster.objects("Node")}
    pods = embedded_cluster.wait_until_running("app=web", count=3, namespace="shop")
    assert sorted(zones[pod["spec"]["nodeName"]] for pod in pods) == ["zone-a", "zone-b", "zone-c"]


@pytest.mark.embedded_cluster(nodes=6, manifests=["shop.yaml"], scheduler=True)
def test_the_quota_has_room_for_a_rolling_update(embedded_cluster: EmbeddedCluster) -> None:
    embedded_cluster.wait_until_available("shop/web")
    restart = {"metadata": {"annotations": {"example.com/restarted": "today"}}}
    embedded_cluster.patch("Deployment", "shop/web", {"spec": {"template": restart}})
    embedded_cluster.wait_until_available("shop/web")
    assert embedded_cluster.events(reason="FailedCreate") == []


@pytest.mark.embedded_cluster(nodes={"large.yaml": 2}, manifests=["caches.yaml"], scheduler="scheduler.yaml")
def test_caches_never_share_a_node(embedded_cluster: EmbeddedCluster) -> None:
    pods = embedded_cluster.wait_until_running("app=cache", count=2)
    assert {pod["spec"]["nodeName"] for pod in pods} == {"large-0", "large-1"}

    embedded_cluster.patch("StatefulSet", "cache", {"spec": {"replicas": 3}})
    embedded_cluster.wait_until_pending("cache-2", "2 node(s) had a pod with the same label exclusive")
