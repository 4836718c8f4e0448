"""What a dump has of an object: all that decisions read, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from stowplan.objects import kinds
from stowplan.simulation.dump.cluster_dump import ClusterDump
from stowplan.simulation.dump.contents import CONTENTS

OF_HUBS = {
    "ManagedCluster", "ManagedClusterSet", "ManagedClusterSetBinding", "AddOnPlacementScore", "Placement",
    "PlacementDecision",
}  # fmt: skip
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "managedFields": [{"manager": "kubectl"}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "gpu-memory": "4096"},
    },
    "spec": {
        "containers": [{"name": "c", "image": "web", "env": [{"name": "PASSWORD", "value": "secret"}], "args": ["x"]}],
        "volumes": [{"name": "token", "projected": {}}, {"name": "data", "persistentVolumeClaim": {"claimName": "d"}}],
    },
    "status": {"phase": "Running", "podIP": "10.1.2.3", "containerStatuses": [{"name": "c", "imageID": "sha"}]},
}


def fields(kind: Any, path: str = "") -> Iterator[str]:
    """Yield the path of every field of a type, and of the types of its fields."""
    found = msgspec.inspect.type_info(kind) if isinstance(kind, type) else kind
    match found:
        case msgspec.inspect.StructType():
            for field in found.fields:
                yield f"{path}.{field.encode_name}"
                yield from fields(field.type, f"{path}.{field.encode_name}")
        case msgspec.inspect.UnionType():
            for each in found.types:
                yield from fields(each, path)
        case msgspec.inspect.VarTupleType():
            yield from fields(found.item_type, path)


def test_every_kind_that_decisions_read_is_in_a_dump() -> None:
    assert set(kinds.KINDS) - set(CONTENTS) == OF_HUBS | {"FinishedMember"}


@pytest.mark.parametrize("kind", sorted(set(kinds.KINDS) & set(CONTENTS)))
def test_every_field_that_decisions_read_is_in_a_dump(kind: str) -> None:
    assert set(fields(kinds.KINDS[kind])) - set(fields(CONTENTS[kind])) == set()


def test_what_nobody_reads_is_left_out() -> None:
    (found,) = ClusterDump([POD]).plain()
    assert found == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop", "annotations": {"gpu-memory": "4096"}},
        "spec": {
            "containers": [{"name": "c", "image": "web"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "d"}}],
        },
        "status": {"phase": "Running", "containerStatuses": []},
    }


def an_object(kind: str, version: str = "v1", namespace: str = "shop", **more: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "it", "namespace": namespace}, **more}


@pytest.mark.parametrize(
    ("document", "there"),
    [
        pytest.param(an_object("Secret"), False, id="a Secret"),
        pytest.param(an_object("Lease", namespace="kube-system"), True, id="the lease of a scheduler"),
        pytest.param(an_object("Lease", namespace="kube-node-lease"), False, id="the lease of a node"),
        pytest.param(an_object("Pod", status={"phase": "Failed"}), False, id="a pod that has ended"),
        pytest.param(
            {**POD, "status": {"phase": "Failed"}, "metadata": {"name": "p", "ownerReferences": [{"kind": "Job"}]}},
            True,
            id="a pod of a Job that has ended",
        ),
        pytest.param(an_object("Event", regarding={"kind": "Pod", "name": "x"}), False, id="an event of another pod"),
        pytest.param(an_object("PodGroup", "scheduling.x-k8s.io/v1alpha1"), True, id="an older PodGroup"),
    ],
)
def test_objects_that_no_decision_depends_on_are_left_out(document: dict[str, Any], there: bool) -> None:
    dump = ClusterDump([document])
    assert (len(dump), dump.left_out.total()) == ((1, 0) if there else (0, 1))


def test_events_of_waiting_pods_are_there_but_not_in_a_shared_dump() -> None:
    waiting = an_object("Pod", spec={"containers": []})
    event = an_object("Event", regarding={"kind": "Pod", "name": "it", "namespace": "shop"}, note="0/3 nodes …")
    dump = ClusterDump([event, waiting])
    assert [each["kind"] for each in dump.plain()] == ["Pod", "Event"]
    assert [each["kind"] for each in dump.anonymised(b"key")] == ["Pod"]


def test_of_the_images_of_nodes_those_that_pods_use_are_there() -> None:
    images = [{"names": ["web:latest", "web@sha256:1"], "sizeBytes": 9}, {"names": ["other:1"], "sizeBytes": 8}]
    node = an_object("Node", status={"images": images})
    assert ClusterDump([node, POD]).plain()[0]["status"]["images"] == [{"names": ["web:latest"], "sizeBytes": 9}]


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"metadata": "shop-secret"}, id="a text instead of metadata"),
        pytest.param({"metadata": {"labels": ["shop-secret"]}}, id="a list instead of labels"),
        pytest.param({"spec": {"containers": {"shop-secret": 1}}}, id="a mapping instead of a list"),
        pytest.param({"spec": {"priority": "shop-secret"}}, id="a text instead of a number"),
        pytest.param({"spec": {"tolerations": [{"key": {"shop-secret": 1}}]}}, id="a mapping instead of a key"),
        pytest.param({"metadata": {"creationTimestamp": "shop-secret"}}, id="a text instead of a time"),
        pytest.param({"spec": {"overhead": {"cpu": "shop-secret"}}}, id="a text instead of an amount"),
        pytest.param({"metadata": None, "spec": None}, id="null"),
    ],
)
def test_odd_documents_lose_their_names_too(odd: dict[str, Any]) -> None:
    (found,) = ClusterDump([{"apiVersion": "v1", "kind": "Pod", **odd}]).anonymised(b"key")
    assert "shop" not in str(found) and "secret" not in str(found)
