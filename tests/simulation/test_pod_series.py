"""Pods of one template: their names, and the claims that each has for itself."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects import kinds
from stowplan.objects.pods import Pod
from stowplan.objects.storage import PersistentVolumeClaim
from stowplan.simulation.pod_series import PodSeries


def a_pod(name: str, owner: str = "", volumes: list[Any] | None = None) -> Pod:
    owners = [{"apiVersion": "apps/v1", "kind": owner, "name": "web", "uid": "1", "controller": True}] if owner else []
    labels = {"app": "web", "statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": "0"}
    metadata = {"name": name, "namespace": "shop", "ownerReferences": owners, "labels": labels}
    return kinds.convert(Pod, {"metadata": metadata, "spec": {"containers": [], "volumes": volumes or []}})


def a_claim(name: str) -> PersistentVolumeClaim:
    return kinds.convert(PersistentVolumeClaim, {"metadata": {"name": name, "namespace": "shop", "uid": "c"}})


@pytest.mark.parametrize(
    ("name", "owner", "expected"),
    [
        pytest.param("web", "", ["web", "web-2", "web-3"], id="a pod"),
        pytest.param("web-0", "", ["web-0", "web-0-2", "web-0-3"], id="a pod that ends with a number"),
        pytest.param("web-7f-x", "ReplicaSet", ["web-7f-x", "web-7f-x-2", "web-7f-x-3"], id="of a ReplicaSet"),
        pytest.param("web-0", "StatefulSet", ["web-0", "web-1", "web-2"], id="of a StatefulSet"),
        pytest.param("web", "StatefulSet", ["web", "web-2", "web-3"], id="of a StatefulSet, without a number"),
    ],
)  # fmt: skip
def test_names(name: str, owner: str, expected: list[str]) -> None:
    series = PodSeries(a_pod(name, owner))
    assert [series[at][0].name for at in range(3)] == expected
    assert len({series[at][0].uid for at in range(3)}) == 3
    assert series[1][0].shape is series[0][0].shape


def test_names_that_are_taken_are_left_out() -> None:
    series = PodSeries(a_pod("web-0", "StatefulSet"), taken={"shop/web-0", "shop/web-2"})
    found = [series[at][0] for at in (2, 0, 1)]
    assert [each.name for each in found] == ["web-4", "web-1", "web-3"]
    assert [each.labels["apps.kubernetes.io/pod-index"] for each in found] == ["4", "1", "3"]
    assert found[0].labels["statefulset.kubernetes.io/pod-name"] == "web-4"


def test_each_pod_of_a_stateful_set_has_its_claim_and_shares_the_others() -> None:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}},
        {"name": "common", "persistentVolumeClaim": {"claimName": "common"}},
    ]
    series = PodSeries(a_pod("web-0", "StatefulSet", volumes), [a_claim("data-web-0"), a_claim("another")])
    pod, claims = series[3]
    assert [each.key for each in claims] == ["shop/data-web-3"]
    names = [each.persistent_volume_claim.claim_name for each in pod.spec.volumes if each.persistent_volume_claim]
    assert names == ["data-web-3", "common"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"storageClassName": "fast"}, "fast", id="its class"),
        pytest.param({}, "standard", id="the default class"),
        pytest.param({"storageClassName": ""}, "", id="no class at all"),
    ],
)
def test_the_claim_of_an_ephemeral_volume_belongs_to_its_pod(given: dict[str, str], expected: str) -> None:
    volumes = [{"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": given}}}]
    series = PodSeries(a_pod("web", volumes=volumes), storage_class="standard")
    for at, name in enumerate(("web-tmp", "web-2-tmp")):
        pod, (claim,) = series[at]
        assert (claim.name, claim.storage_class, claim.not_made_for(pod)) == (name, expected, "")
