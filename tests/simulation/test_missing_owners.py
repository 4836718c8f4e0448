"""Controllers that a dump leaves out are made from their pods."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.simulation.missing_owners import missing_owners

Document = dict[str, Any]


def a_pod(name: str, kind: str, owner: str, labels: dict[str, str], **spec: Any) -> Document:
    owners = [{"kind": kind, "name": owner, "uid": "1", "controller": True}]
    metadata = {"name": name, "namespace": "shop", "labels": labels, "ownerReferences": owners}
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": [], "nodeName": "n1", "priority": 7, **spec}}


def made(*documents: Document) -> list[Document]:
    return [each for _, each in missing_owners([("dump", document) for document in documents])]


def test_a_replica_set_with_the_labels_that_its_pods_share() -> None:
    pods = [a_pod(f"web-{at}", "ReplicaSet", "web-7f", {"app": "web", "pod-template-hash": "7f", "at": f"{at}"})
            for at in range(3)]  # fmt: skip
    (found,) = made(*pods)
    assert (found["kind"], found["metadata"]["name"], found["spec"]["replicas"]) == ("ReplicaSet", "web-7f", 3)
    assert found["spec"]["selector"] == {"matchLabels": {"app": "web", "pod-template-hash": "7f"}}
    assert found["spec"]["template"]["spec"] == {"containers": []} and "ownerReferences" not in found["metadata"]


def test_it_belongs_to_the_deployment_that_is_there() -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "newest"}]}}
    metadata = {"name": "web", "namespace": "shop"}
    deployment = {"kind": "Deployment", "metadata": metadata, "spec": {"template": template}}
    (found,) = made(deployment, a_pod("web-7f-x", "ReplicaSet", "web-7f", {"app": "web", "pod-template-hash": "7f"}))
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Deployment", "web", True)
    labels = {"app": "web", "pod-template-hash": "7f"}
    assert found["spec"]["template"] == {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "newest"}]}}


def test_a_stateful_set_with_the_claims_of_its_pods() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-2"}}, {"name": "tmp", "emptyDir": {}}]
    labels = {"app": "db", "statefulset.kubernetes.io/pod-name": "db-2"}
    (found,) = made(a_pod("db-2", "StatefulSet", "db", labels, volumes=volumes))
    spec = found["spec"]
    assert (spec["replicas"], spec["ordinals"], spec["podManagementPolicy"]) == (1, {"start": 2}, "Parallel")
    assert [each["metadata"]["name"] for each in spec["volumeClaimTemplates"]] == ["data"]
    assert spec["template"]["spec"]["volumes"] == [{"name": "tmp", "emptyDir": {}}]
    assert spec["selector"] == {"matchLabels": {"app": "db"}}


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(a_pod("x", "DaemonSet", "agent", {"app": "a"}), id="of a DaemonSet, which no drain evicts"),
        pytest.param(a_pod("x", "Workflow", "w", {"app": "a"}), id="of a controller that is not simulated"),
        pytest.param(a_pod("x", "ReplicaSet", "web", {}), id="without labels"),
        pytest.param({"kind": "Pod", "metadata": {"name": "bare"}, "spec": {}}, id="without an owner"),
        pytest.param({**a_pod("x", "ReplicaSet", "web", {"a": "b"}), "status": {"phase": "Failed"}}, id="ended"),
    ],
)
def test_nothing_is_made_for_a_pod(document: Document) -> None:
    assert made(document) == []


def test_an_owner_that_is_there_is_not_made_again() -> None:
    owner = {"kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "shop"}}
    assert made(a_pod("x", "ReplicaSet", "web", {"a": "b"}), owner) == []
