"""LimitRanges: what they give to pods, and which pods and claims they refuse, in which words."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.embedded.errors import ApiError
from tests.embedded.test_quotas import a_claim, a_pod, a_quota
from tests.embedded.virtual_cluster import VirtualCluster

SET = "kubernetes.io/limit-ranger"


def a_range(*items: dict[str, Any], name: str = "l") -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": {"limits": list(items)}}


def per(kind: str = "Container", **bounds: dict[str, str]) -> dict[str, Any]:
    return {"type": kind, **bounds}


DEFAULTED = [
    pytest.param(per(max={"cpu": "2"}),
                 per(max={"cpu": "2"}, default={"cpu": "2"}, defaultRequest={"cpu": "2"}), id="limits are the maximum"),
    pytest.param(per(min={"cpu": "1"}), per(min={"cpu": "1"}, defaultRequest={"cpu": "1"}),
                 id="requests are the minimum"),
    pytest.param(per(default={"cpu": "1"}, min={"cpu": "100m"}),
                 per(default={"cpu": "1"}, min={"cpu": "100m"}, defaultRequest={"cpu": "1"}), id="or the limits"),
    pytest.param(per("Pod", max={"cpu": "2"}), per("Pod", max={"cpu": "2"}), id="pods have no defaults"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), DEFAULTED)
def test_a_limit_range_has_defaults(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert VirtualCluster().create(a_range(given))["spec"]["limits"] == [expected]


COMPLETED = [
    pytest.param([a_range(per(default={"cpu": "1", "memory": "1Gi"}, defaultRequest={"cpu": "100m"}))], {},
                 {"requests": {"cpu": "100m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
                 "cpu, memory request for container c; cpu, memory limit for container c", id="what is missing is set"),
    pytest.param([a_range(per(default={"cpu": "1", "memory": "1Gi"}))],
                 {"limits": {"cpu": "2"}, "requests": {"memory": "1Mi"}},
                 {"requests": {"cpu": "2", "memory": "1Mi"}, "limits": {"cpu": "2", "memory": "1Gi"}},
                 "memory limit for container c", id="what is there is kept"),
    pytest.param([a_range(per(default={"cpu": "1"})), a_range(per(default={"memory": "1Gi", "cpu": "3"}), name="m")],
                 {}, {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
                 "memory request for container c; memory limit for container c",
                 id="the second LimitRange sets what the first left"),
    pytest.param([a_range(per("Pod", max={"cpu": "9"}))], {"limits": {"cpu": "1"}},
                 {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}, None, id="nothing is told of nothing"),
]  # fmt: skip


@pytest.mark.parametrize(("ranges", "resources", "expected", "told"), COMPLETED)
def test_a_pod_is_completed(
    ranges: list[dict[str, Any]], resources: dict[str, Any], expected: dict[str, Any], told: str | None
) -> None:
    cluster = VirtualCluster()
    for each in ranges:
        cluster.create(each)
    pod = cluster.create(a_pod(resources=resources))
    assert pod["spec"]["containers"][0]["resources"] == expected
    annotation = pod["metadata"].get("annotations", {}).get(SET)
    assert annotation == (told and f"LimitRanger plugin set: {told}")


def test_init_containers_are_completed_and_the_class_of_the_pod_follows() -> None:
    cluster = VirtualCluster()
    cluster.create(a_range(per(default={"cpu": "1", "memory": "1Gi"})))
    pod = cluster.create(a_pod(resources={}, initContainers=[{"name": "i", "image": "x"}]))
    assert pod["spec"]["initContainers"][0]["resources"]["limits"] == {"cpu": "1", "memory": "1Gi"}
    assert pod["status"]["qosClass"] == "Guaranteed"
    assert pod["metadata"]["annotations"][SET].endswith("; cpu, memory limit for init container i")


ASKS = {"requests": {"cpu": "500m"}, "limits": {"cpu": "1"}}
REFUSED = [
    pytest.param(per(min={"cpu": "600m"}), a_pod(resources=ASKS),
                 "minimum cpu usage per Container is 600m, but request is 500m", id="too little"),
    pytest.param(per(max={"cpu": "900m"}), a_pod(resources=ASKS),
                 "maximum cpu usage per Container is 900m, but limit is 1", id="too much"),
    pytest.param(per(maxLimitRequestRatio={"cpu": "1500m"}), a_pod(resources=ASKS),
                 "cpu max limit to request ratio per Container is 1500m, but provided ratio is 2.000000", id="a ratio"),
    pytest.param(per(maxLimitRequestRatio={"memory": "2"}), a_pod(resources=ASKS),
                 "memory max limit to request ratio per Container is 2, but no request is specified or request is 0",
                 id="a ratio of nothing"),
    pytest.param(per(maxLimitRequestRatio={"memory": "2"}), a_pod(resources={"requests": {"memory": "1"}}),
                 "memory max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
                 id="a ratio to nothing"),
    pytest.param(per("Pod", min={"memory": "1Mi"}), a_pod(resources=ASKS),
                 "minimum memory usage per Pod is 1Mi.  No request is specified", id="a pod without a request"),
    pytest.param(per("Pod", max={"memory": "1Mi"}), a_pod(resources=ASKS),
                 "maximum memory usage per Pod is 1Mi.  No limit is specified", id="a pod without a limit"),
    pytest.param(per("Pod", max={"cpu": "1500m"}),
                 a_pod(resources=ASKS, initContainers=[
                     {"name": "i", "image": "x", "resources": {"limits": {"cpu": "2"}}}]),
                 "maximum cpu usage per Pod is 1500m, but limit is 2", id="init containers count"),
    pytest.param(per("Pod", max={"cpu": "900m", "memory": "1Mi"}, min={"cpu": "600m"}), a_pod(resources=ASKS),
                 "[minimum cpu usage per Pod is 600m, but request is 500m, maximum cpu usage per Pod is 900m, "
                 "but limit is 1, maximum memory usage per Pod is 1Mi.  No limit is specified]", id="several problems"),
    pytest.param(per("PersistentVolumeClaim", min={"storage": "2Gi"}), a_claim(),
                 "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi", id="a small claim"),
    pytest.param(per("PersistentVolumeClaim", max={"storage": "500Mi"}), a_claim(),
                 "maximum storage usage per PersistentVolumeClaim is 500Mi, but request is 1Gi", id="a large claim"),
]  # fmt: skip


@pytest.mark.parametrize(("item", "document", "expected"), REFUSED)
def test_a_limit_range_refuses(item: dict[str, Any], document: dict[str, Any], expected: str) -> None:
    cluster = VirtualCluster()
    cluster.create(a_range(item))
    with pytest.raises(ApiError) as refused:
        cluster.create(document)
    name, plural = document["metadata"]["name"], f"{document['kind'].lower()}s"
    assert (refused.value.code, refused.value.message) == (403, f'{plural} "{name}" is forbidden: {expected}')


def test_defaults_that_do_not_fit_a_pod_make_it_invalid() -> None:
    cluster = VirtualCluster()
    cluster.create(a_range(per(default={"cpu": "1"}, defaultRequest={"cpu": "1"})))
    with pytest.raises(ApiError, match="must be less than or equal to cpu limit of 1") as refused:
        cluster.create(a_pod(resources={"requests": {"cpu": "2"}}))
    assert refused.value.code == 422


def test_limit_ranges_come_before_quotas() -> None:
    cluster = VirtualCluster()
    cluster.create(a_quota({"pods": "0", "requests.memory": "1Gi"}))
    cluster.create(a_range(per(max={"cpu": "100m"}, default={"memory": "1Gi"})))
    with pytest.raises(ApiError, match="maximum cpu usage per Container is 100m"):
        cluster.create(a_pod(resources={"limits": {"cpu": "1"}}))
    with pytest.raises(ApiError, match="exceeded quota: q, requested: pods=1"):
        cluster.create(a_pod(resources={}))


def test_pods_that_exist_are_left_alone_and_claims_are_not() -> None:
    cluster = VirtualCluster()
    cluster.create(a_pod(resources={}))
    cluster.create(a_claim())
    cluster.create(a_range(per(max={"cpu": "1"}), per("PersistentVolumeClaim", max={"storage": "1Mi"})))
    assert cluster.change("pods", "default/p", activeDeadlineSeconds=5)["spec"]["activeDeadlineSeconds"] == 5
    with pytest.raises(ApiError, match="maximum storage usage per PersistentVolumeClaim is 1Mi, but request is 2Gi"):
        cluster.change("persistentvolumeclaims", "default/d", resources={"requests": {"storage": "2Gi"}})


def test_a_limit_range_is_about_its_namespace() -> None:
    cluster = VirtualCluster()
    cluster.create(a_range(per("Pod", max={"cpu": "1m"})))
    cluster.create(a_pod() | {"metadata": {"name": "p", "namespace": "kube-system"}})
    cluster.delete("limitranges", "default/l")
    assert cluster.create(a_pod())["metadata"]["name"] == "p"
