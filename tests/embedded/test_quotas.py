"""ResourceQuotas: what is refused, in which words, and what is used after each change."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.embedded.errors import ApiError
from tests.embedded.virtual_cluster import VirtualCluster

QUOTA = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
ASKS = {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}}


def a_quota(hard: dict[str, str], name: str = "q", **spec: Any) -> dict[str, Any]:
    return {**QUOTA, "metadata": {"name": name}, "spec": {"hard": hard, **spec}}


def a_pod(name: str = "p", resources: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "x:1", "resources": ASKS if resources is None else resources}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def a_claim(name: str = "d", size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def a_service(name: str = "s", kind: str = "ClusterIP", ports: int = 1, **spec: Any) -> dict[str, Any]:
    found = [{"port": 80 + number, "name": f"p{number}"} for number in range(ports)]
    spec = {"type": kind, "ports": found, **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def a_deployment(name: str = "w", replicas: int = 0) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "x:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def used(cluster: VirtualCluster, name: str = "q") -> dict[str, str]:
    cluster.controllers.settle(cluster.now)
    found: dict[str, str] = cluster.get("resourcequotas", f"default/{name}")["status"]["used"]
    return found


def affinity(**term: Any) -> dict[str, Any]:
    term = {"topologyKey": "x", "labelSelector": {}, **term}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


USAGE = [
    pytest.param({"pods": "5", "count/pods": "5"}, a_pod(), {"pods": "1", "count/pods": "1"}, id="pods"),
    pytest.param({"cpu": "2", "requests.cpu": "2", "limits.cpu": "2"}, a_pod(),
                 {"cpu": "500m", "requests.cpu": "500m", "limits.cpu": "1"}, id="cpu"),
    pytest.param({"memory": "4Gi", "limits.memory": "4Gi"}, a_pod(), {"memory": "1Gi", "limits.memory": "2Gi"},
                 id="memory, in the format of the pod"),
    pytest.param({"requests.ephemeral-storage": "1G"}, a_pod(resources={"requests": {"ephemeral-storage": "100M"}}),
                 {"requests.ephemeral-storage": "100M"}, id="ephemeral storage"),
    pytest.param({"requests.nvidia.com/gpu": "4"}, a_pod(resources={"limits": {"nvidia.com/gpu": "2"}}),
                 {"requests.nvidia.com/gpu": "2"}, id="an extended resource"),
    pytest.param({"requests.hugepages-2Mi": "4Mi", "hugepages-2Mi": "4Mi"},
                 a_pod(resources={"limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}}),
                 {"requests.hugepages-2Mi": "2Mi", "hugepages-2Mi": "2Mi"}, id="huge pages"),
    pytest.param({"requests.cpu": "9", "limits.cpu": "9"}, a_pod(overhead={"cpu": "100m", "memory": "1Mi"}),
                 {"requests.cpu": "600m", "limits.cpu": "1100m"}, id="the overhead of a pod"),
    pytest.param({"requests.cpu": "9"}, a_pod(initContainers=[
        {"name": "side", "image": "x", "restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}},
        {"name": "first", "image": "x", "resources": {"requests": {"cpu": "3"}}}]),
                 {"requests.cpu": "4"}, id="the largest init container, with the sidecars before it"),
    pytest.param({"requests.cpu": "9"}, a_pod(resources={"requests": {"cpu": "100m"}}) | {
        "spec": {"resources": {"requests": {"cpu": "2"}}, "containers": [{"name": "c", "image": "x"}]}},
                 {"requests.cpu": "2"}, id="a pod that asks as a whole"),
    pytest.param({"configmaps": "9", "count/configmaps": "9"},
                 {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
                 {"configmaps": "1", "count/configmaps": "1"}, id="config maps"),
    pytest.param({"count/deployments.apps": "9"}, a_deployment(), {"count/deployments.apps": "1"}, id="deployments"),
    pytest.param({"secrets": "9"}, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}}, {"secrets": "1"},
                 id="secrets"),
    pytest.param({"services": "9", "services.nodeports": "9", "services.loadbalancers": "9"}, a_service(),
                 {"services": "1", "services.nodeports": "0", "services.loadbalancers": "0"}, id="a plain service"),
    pytest.param({"services.nodeports": "9", "services.loadbalancers": "9"}, a_service(kind="NodePort", ports=2),
                 {"services.nodeports": "2", "services.loadbalancers": "0"}, id="node ports"),
    pytest.param({"services.nodeports": "9", "services.loadbalancers": "9"}, a_service(kind="LoadBalancer"),
                 {"services.nodeports": "1", "services.loadbalancers": "1"}, id="a load balancer"),
    pytest.param({"services.nodeports": "9", "services.loadbalancers": "9"},
                 a_service(kind="LoadBalancer", allocateLoadBalancerNodePorts=False),
                 {"services.nodeports": "0", "services.loadbalancers": "1"}, id="a load balancer without node ports"),
    pytest.param({"persistentvolumeclaims": "9", "requests.storage": "9Gi"}, a_claim(),
                 {"persistentvolumeclaims": "1", "requests.storage": "1Gi"}, id="claims"),
    pytest.param({f"{name}.storageclass.storage.k8s.io/{part}": "9Gi" for name in ("gold", "slow")
                  for part in ("requests.storage", "persistentvolumeclaims")}, a_claim(storageClassName="gold"),
                 {"gold.storageclass.storage.k8s.io/requests.storage": "1Gi",
                  "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
                  "slow.storageclass.storage.k8s.io/requests.storage": "0",
                  "slow.storageclass.storage.k8s.io/persistentvolumeclaims": "0"}, id="claims by class"),
    pytest.param({"count/resourcequotas": "9", "resourcequotas": "9"}, a_quota({}, "other"),
                 {"count/resourcequotas": "2", "resourcequotas": "2"}, id="quotas, and this one among them"),
    pytest.param({"example.com/odd": "3", "pods": "3"}, a_pod(), {"pods": "1"}, id="a name that nobody counts"),
]  # fmt: skip


@pytest.mark.parametrize(("hard", "document", "expected"), USAGE)
def test_an_object_uses_a_quota(hard: dict[str, str], document: dict[str, Any], expected: dict[str, str]) -> None:
    before, after = VirtualCluster(), VirtualCluster()
    before.create(a_quota(hard))
    before.create(document)
    after.create(document)
    after.create(a_quota(hard))
    assert used(before) == expected
    assert used(after) == expected
    assert before.get("resourcequotas", "default/q")["status"]["hard"] == hard


EXCEEDED = [
    pytest.param({"pods": "0"}, a_pod(),
                 'pods "p" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0',
                 id="pods"),
    pytest.param({"requests.cpu": "100m", "limits.memory": "1Gi", "pods": "9"}, a_pod(),
                 'pods "p" is forbidden: exceeded quota: q, requested: limits.memory=2Gi,requests.cpu=500m, '
                 "used: limits.memory=0,requests.cpu=0, limited: limits.memory=1Gi,requests.cpu=100m",
                 id="two of them"),
    pytest.param({"requests.cpu": "9", "limits.memory": "9Gi"}, a_pod(resources={}),
                 'pods "p" is forbidden: failed quota: q: must specify limits.memory for: c; requests.cpu for: c',
                 id="a pod that does not say what it wants"),
    pytest.param({"count/deployments.apps": "0"}, a_deployment(),
                 'deployments.apps "w" is forbidden: exceeded quota: q, requested: count/deployments.apps=1, '
                 "used: count/deployments.apps=0, limited: count/deployments.apps=0", id="deployments"),
    pytest.param({"requests.storage": "500Mi"}, a_claim(),
                 'persistentvolumeclaims "d" is forbidden: exceeded quota: q, requested: requests.storage=1Gi, '
                 "used: requests.storage=0, limited: requests.storage=500Mi", id="storage"),
    pytest.param({"services.nodeports": "1"}, a_service(kind="NodePort", ports=2),
                 'services "s" is forbidden: exceeded quota: q, requested: services.nodeports=2, '
                 "used: services.nodeports=0, limited: services.nodeports=1", id="node ports"),
]  # fmt: skip


@pytest.mark.parametrize(("hard", "document", "expected"), EXCEEDED)
def test_a_quota_refuses(hard: dict[str, str], document: dict[str, Any], expected: str) -> None:
    cluster = VirtualCluster()
    cluster.create(a_quota(hard))
    with pytest.raises(ApiError) as refused:
        cluster.create(document)
    assert (refused.value.code, refused.value.reason, refused.value.message) == (403, "Forbidden", expected)
    assert refused.value.details is not None and refused.value.details["name"] == document["metadata"]["name"]


ALL = ("gone", "plain", "best", "short", "vip", "far")
SCOPES = [
    pytest.param({"scopes": ["Terminating"]}, {"short"}, id="pods that end"),
    pytest.param({"scopes": ["NotTerminating"]}, {"gone", "plain", "best", "vip", "far"}, id="pods that do not"),
    pytest.param({"scopes": ["BestEffort"]}, {"best"}, id="best effort"),
    pytest.param({"scopes": ["NotBestEffort"]}, {"gone", "plain", "short", "vip", "far"}, id="not best effort"),
    pytest.param({"scopes": ["NotBestEffort", "Terminating"]}, {"short"}, id="two scopes"),
    pytest.param({"scopes": ["PriorityClass"]}, {"vip"}, id="any priority class"),
    pytest.param({"scopes": ["CrossNamespacePodAffinity"]}, {"far"}, id="affinity to other namespaces"),
    pytest.param({"expression": ("In", ["vip", "other"])}, {"vip"}, id="in"),
    pytest.param({"expression": ("In", ["other"])}, set(), id="in others"),
    pytest.param({"expression": ("NotIn", ["vip"])}, {"gone", "plain", "best", "short", "far"}, id="not in"),
    pytest.param({"expression": ("Exists", [])}, {"vip"}, id="exists"),
    pytest.param({"expression": ("DoesNotExist", [])}, {"gone", "plain", "best", "short", "far"}, id="does not exist"),
]


@pytest.mark.parametrize(("spec", "expected"), SCOPES)
def test_a_scope_selects_pods(spec: dict[str, Any], expected: set[str]) -> None:
    cluster = VirtualCluster()
    cluster.create(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "vip"}, "value": 5}
    )
    if "expression" in spec:
        operator, values = spec["expression"]
        wanted = {"scopeName": "PriorityClass", "operator": operator, **({"values": values} if values else {})}
        spec = {"scopeSelector": {"matchExpressions": [wanted]}}
    cluster.create(a_quota({"pods": "10"}, **spec))
    more: dict[str, dict[str, Any]] = {
        "best": {"resources": {}}, "short": {"activeDeadlineSeconds": 5}, "vip": {"priorityClassName": "vip"},
        "far": {"affinity": affinity(namespaces=["other"])}, "plain": {"affinity": affinity()},
    }  # fmt: skip
    counted = set()
    for name in ALL:
        before = used(cluster)["pods"]
        cluster.create(a_pod(name, **more.get(name, {})))
        if used(cluster)["pods"] != before:
            counted.add(name)
    assert counted == expected


def test_a_pod_that_ends_or_goes_uses_nothing() -> None:
    cluster = VirtualCluster()
    cluster.nodes(1)
    cluster.create(a_quota({"pods": "9", "count/pods": "9", "requests.memory": "9Gi"}))
    for name, notes in (("a", {"stowplan.io/run-seconds": "5"}), ("b", {})):
        pod = a_pod(name)
        cluster.create({**pod, "metadata": {"name": name, "annotations": notes}})
    cluster.settle()
    assert used(cluster) == {"count/pods": "2", "pods": "2", "requests.memory": "2Gi"}
    cluster.settle(5)
    assert used(cluster) == {"count/pods": "2", "pods": "1", "requests.memory": "1Gi"}
    cluster.delete("pods", "default/b")
    cluster.settle()
    assert used(cluster) == {"count/pods": "1", "pods": "0", "requests.memory": "0"}


def test_what_only_finalizers_keep_uses_nothing() -> None:
    cluster = VirtualCluster()
    cluster.create(a_quota({"pods": "9", "count/pods": "9"}))
    cluster.create(a_pod() | {"metadata": {"name": "p", "finalizers": ["example.io/hold"]}})
    cluster.delete("pods", "default/p")
    assert used(cluster) == {"count/pods": "1", "pods": "0"}


def test_the_status_is_charged_with_the_request() -> None:
    cluster = VirtualCluster(controllers=False)
    cluster.create(a_quota({"pods": "2"}))
    cluster.create(a_pod())
    assert cluster.get("resourcequotas", "default/q")["status"] == {"hard": {"pods": "2"}, "used": {"pods": "1"}}


def test_updates_are_charged() -> None:
    cluster = VirtualCluster()
    cluster.create(a_quota({"services.nodeports": "1", "requests.storage": "2Gi"}))
    service, claim = cluster.create(a_service()), cluster.create(a_claim())
    cluster.settle()
    with pytest.raises(
        ApiError, match=r"exceeded quota: q, requested: services.nodeports=2, used: services.nodeports=0"
    ):
        cluster.update({**service, "spec": {**service["spec"], **a_service(kind="NodePort", ports=2)["spec"]}})
    cluster.change("services", "default/s", type="NodePort")
    assert used(cluster)["services.nodeports"] == "1"
    with pytest.raises(ApiError, match=r"requested: requests.storage=2Gi, used: requests.storage=1Gi, limited"):
        cluster.change("persistentvolumeclaims", "default/d", resources={"requests": {"storage": "3Gi"}})
    cluster.change("persistentvolumeclaims", "default/d", resources={"requests": {"storage": "2Gi"}})
    assert used(cluster)["requests.storage"] == "2Gi"
    assert claim["spec"]["resources"]["requests"]["storage"] == "1Gi"


def test_a_pod_moves_between_scopes() -> None:
    cluster = VirtualCluster()
    cluster.create(a_quota({"pods": "0"}, "ending", scopes=["Terminating"]))
    cluster.create(a_quota({"pods": "5"}, "staying", scopes=["NotTerminating"]))
    cluster.create(a_pod())
    with pytest.raises(ApiError, match="exceeded quota: ending, requested: pods=1, used: pods=0, limited: pods=0"):
        cluster.change("pods", "default/p", activeDeadlineSeconds=10)
    cluster.change("resourcequotas", "default/ending", hard={"pods": "1"})
    cluster.change("pods", "default/p", activeDeadlineSeconds=10)
    assert (used(cluster, "ending"), used(cluster, "staying")) == ({"pods": "1"}, {"pods": "0"})


def test_a_dry_run_uses_nothing_and_is_refused_like_any_other() -> None:
    cluster = VirtualCluster()
    cluster.create(a_quota({"pods": "1"}))
    pods = cluster.resource("v1", "Pod")
    options = cluster.options()
    options.dry_run = True
    cluster.api.create(pods, "default", a_pod(), options)
    assert used(cluster) == {"pods": "0"}
    cluster.create(a_pod())
    with pytest.raises(ApiError, match="exceeded quota"):
        cluster.api.create(pods, "default", a_pod("other"), options)


def test_a_full_quota_comes_before_a_name_that_is_taken() -> None:
    cluster = VirtualCluster()
    cluster.create(a_quota({"pods": "1"}))
    cluster.create(a_pod())
    with pytest.raises(ApiError, match="exceeded quota"):
        cluster.create(a_pod())


def test_a_quota_is_about_its_namespace() -> None:
    cluster = VirtualCluster()
    cluster.create(a_quota({"pods": "0"}))
    cluster.create(a_pod() | {"metadata": {"name": "p", "namespace": "kube-system"}})
    cluster.delete("resourcequotas", "default/q")
    assert cluster.create(a_pod())["metadata"]["namespace"] == "default"


def test_a_changed_quota_counts_anew() -> None:
    cluster = VirtualCluster()
    cluster.create(a_quota({"pods": "5"}))
    cluster.create(a_pod())
    cluster.change("resourcequotas", "default/q", hard={"requests.cpu": "5"})
    assert used(cluster) == {"requests.cpu": "500m"}
    assert cluster.get("resourcequotas", "default/q")["status"]["hard"] == {"requests.cpu": "5"}


def test_a_changed_quota_still_counts_itself() -> None:
    cluster, both = VirtualCluster(), ("resourcequotas", "count/resourcequotas")
    cluster.create(a_quota(dict.fromkeys(both, "2")))
    assert used(cluster) == dict.fromkeys(both, "1")
    cluster.change("resourcequotas", "default/q", hard=dict.fromkeys(both, "1"))
    assert used(cluster) == dict.fromkeys(both, "1")
    with pytest.raises(ApiError, match="exceeded quota: q"):
        cluster.create(a_quota({"pods": "1"}, "second"))
    cluster.change("resourcequotas", "default/q", hard=dict.fromkeys(both, "2"))
    cluster.create(a_quota({"pods": "1"}, "second"))
    assert used(cluster) == dict.fromkeys(both, "2")
    cluster.delete("resourcequotas", "default/second")
    assert used(cluster) == dict.fromkeys(both, "1")
