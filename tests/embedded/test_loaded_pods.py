"""Pods of a dump that are alike. The judge is the API: it must make the same of each pod that is not copied."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.embedded import loaded_pods, manifests
from tests.embedded.virtual_cluster import VirtualCluster

CONTAINERS = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "0.5", "memory": "1024Mi"}}}]
CONDITIONS = [{"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "there", "controller": True}
LIMITED = [
    {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "small", "namespace": "limited"},
     "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "1"}}]}},
    {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": "limited"},
     "spec": {"hard": {"pods": "2"}}},
]  # fmt: skip


def a_pod(name: Any = "web-1", **changes: Any) -> dict[str, Any]:
    """`changes`: of the metadata, the spec and the status, by the names of their fields."""
    metadata: dict[str, Any] = {"name": name, "namespace": "shop", "labels": {"app": "web"}}
    spec: dict[str, Any] = {"containers": CONTAINERS, "nodeName": "n1"}
    status: Any = {"phase": "Running", "conditions": CONDITIONS}
    for key, value in changes.items():
        if key == "status":
            status = value
        else:
            (spec if key in ("nodeName", "containers", "schedulingGates", "hostname") else metadata)[key] = value
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status}


def loaded(pods: list[dict[str, Any]], *, copies: bool) -> tuple[str, list[str], dict[str, int], int]:
    """What is stored, what is refused, what was loaded, and the next number that the generator draws."""
    cluster, refused = VirtualCluster(controllers=False), list[str]()
    manifests.load_documents(cluster.api, (("before", each) for each in LIMITED), cluster.now)
    with pytest.MonkeyPatch.context() as patch:
        if not copies:
            patch.setattr(loaded_pods, "MOST", 0)
        pairs = [("dump", copy.deepcopy(each)) for each in pods]
        result = manifests.load_documents(cluster.api, pairs, cluster.now, lambda error: refused.append(str(error)))
    stored = json.dumps([(key, each.document) for key, each in cluster.store.collection("pods").items.items()])
    return stored, refused, dict(result.loaded), cluster.api.generator.getrandbits(64)


PODS = st.builds(
    lambda name, changes: a_pod(name, **changes),
    st.sampled_from(["web-1", "web-2", "web-3", "web-4", "db-0", "Not_a_name", "x" * 254, "", None, 7]),
    st.fixed_dictionaries(
        {},
        optional={
            "namespace": st.sampled_from(["shop", "limited", "", None]),
            "labels": st.sampled_from([{"app": "web"}, {"app": "db"}, {"app": "not a value"}, {}, None]),
            "annotations": st.sampled_from([{"a": "null"}, {"a": "b"}]),
            "ownerReferences": st.just([OWNER]),
            "generateName": st.just("web-"),
            "resourceVersion": st.just("7"),
            "nodeName": st.sampled_from(["n1", "n2", "", None, 5]),
            "hostname": st.sampled_from(["web", 5]),
            "schedulingGates": st.just([{"name": "wait"}]),
            "containers": st.sampled_from([CONTAINERS, [], None, "none"]),
            "status": st.sampled_from([None, {}, {"phase": "Pending"}, {"phase": 5}, {"phase": None}, "Running", []]),
        },
    ),
)


@given(st.lists(PODS, max_size=12))
def test_a_copy_is_what_the_api_would_have_made(pods: list[dict[str, Any]]) -> None:
    assert loaded(pods, copies=True) == loaded(pods, copies=False)


def test_pods_of_a_template_are_copied_and_share_what_they_have_in_common() -> None:
    cluster = VirtualCluster(controllers=False)
    pods = [a_pod(f"web-{number}", nodeName=f"n{number}") for number in range(3)]
    manifests.load_documents(cluster.api, (("dump", each) for each in pods), cluster.now)
    first, *others = (each.document for each in cluster.store.collection("pods").items.values())
    assert all(each["spec"]["containers"] is first["spec"]["containers"] for each in others)
    assert others[0]["metadata"]["labels"] is others[1]["metadata"]["labels"]
    assert [each["spec"]["nodeName"] for each in (first, *others)] == ["n0", "n1", "n2"]
    assert len({each["metadata"]["uid"] for each in (first, *others)}) == 3


def test_each_pod_of_a_limited_namespace_is_charged() -> None:
    refused = loaded([a_pod(f"web-{number}", namespace="limited") for number in range(4)], copies=True)[1]
    assert len(refused) == 2 and all("exceeded quota: few" in each for each in refused)


def test_what_happens_to_a_copy_happens_to_no_other_pod() -> None:
    cluster = VirtualCluster()
    cluster.nodes(2)
    pods = [a_pod(f"web-{number}", nodeName=f"node-{number % 2}") for number in range(4)]
    manifests.load_documents(cluster.api, (("dump", each) for each in pods), cluster.now)
    before = json.dumps(cluster.get("pods", "shop/web-1"))
    changed = cluster.get("pods", "shop/web-3")
    cluster.update({**changed, "metadata": {**changed["metadata"], "labels": {"app": "other"}}})
    cluster.settle()
    assert json.dumps(cluster.get("pods", "shop/web-1")) == before
    assert cluster.get("pods", "shop/web-3")["metadata"]["labels"] == {"app": "other"}
