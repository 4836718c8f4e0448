"""Pods of one template share what they have in common, and each is still what its own document says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.objects import kinds
from stowplan.objects.pod_documents import PodDecoder
from stowplan.objects.pods import Pod
from stowplan.objects.quantity import custom_value
from stowplan.objects.recent_values import RecentValues
from stowplan.objects.shape import signature
from tests.strategies import PODS

PLAIN = msgspec.json.Decoder(Pod, dec_hook=custom_value)
REAL = json.loads((Path(__file__).parents[2] / "benchmarks" / "data" / "pod.json").read_bytes())


def text_of(document: dict[str, Any]) -> bytes:
    return msgspec.json.encode(document)


def document(node: str | None = "n1", **spec: Any) -> dict[str, Any]:
    at = {} if node is None else {"nodeName": node}
    containers = [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]
    return {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"containers": containers, **at, **spec}}


def with_token(letters: str, mount: str = "/var/run/secrets/kubernetes.io/serviceaccount") -> dict[str, Any]:
    name = f"kube-api-access-{letters}"
    found = document(volumes=[{"name": name, "projected": {"sources": []}}])
    found["spec"]["containers"][0]["volumeMounts"] = [{"name": name, "readOnly": True, "mountPath": mount}]
    return found


# -- what it reads


@given(st.sampled_from(PODS), st.sampled_from(["", "n1", "n2"]), st.sampled_from(["", "Running", "Pending"]))
def test_it_reads_what_a_plain_decoder_reads(pod: Pod, node: str, phase: str) -> None:
    spec = msgspec.structs.replace(pod.spec, node_name=node)
    status = msgspec.structs.replace(pod.status, phase=phase)
    text = msgspec.json.encode(msgspec.structs.replace(pod, spec=spec, status=status), enc_hook=str)
    found = PodDecoder().decode(text)
    assert found == PLAIN.decode(text)
    assert found.shape.key == signature(PLAIN.decode(text))


def test_a_pod_of_a_real_server_is_the_same_but_for_the_name_of_the_token_volume() -> None:
    text = text_of(REAL)
    found, plain = PodDecoder().decode(text), PLAIN.decode(text)
    names = [volume.name for volume in found.spec.volumes]
    assert names == ["config", "credentials", "scratch", "data", "kube-api-access-"]
    assert msgspec.structs.replace(found.spec, volumes=()) == msgspec.structs.replace(plain.spec, volumes=())
    assert (found.metadata, found.status, found.shape) == (plain.metadata, plain.status, plain.shape)


def test_a_document_without_anything_is_a_pod() -> None:
    assert PodDecoder().decode(b"{}") == Pod()


@pytest.mark.parametrize("text", ['{"spec": {"nodeName": "n1"}}', '{"spec": {"nodeName":"n1"}}'])
def test_white_space_does_not_matter(text: str) -> None:
    assert PodDecoder().decode(text).node_name == "n1"


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(b'{"spec": {"containers": 5}}', id="spec"),
        pytest.param(b'{"spec": null}', id="null"),
        pytest.param(b'{"metadata": {"labels": {"a": 5}}}', id="labels"),
        pytest.param(b'{"metadata": {"ownerReferences": 5}}', id="owners"),
        pytest.param(b'{"status": {"containerStatuses": [{"resources": 5}]}}', id="status"),
        pytest.param(b'{"status": {"allocatedResources": [1]}}', id="amounts"),
        pytest.param(b'{"spec": {"nodeName":"n1', id="cut off"),
    ],
)
def test_what_a_plain_decoder_refuses_is_refused(broken: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        PLAIN.decode(broken)
    for _ in range(2):  # the first time leaves nothing behind
        with pytest.raises(msgspec.MsgspecError):
            PodDecoder().decode(broken)


# -- the name of the node


@pytest.mark.parametrize("order", [("n1", "n2"), ("n2", "n1"), (None, "n1"), ("n1", None)])
def test_a_label_that_is_called_like_the_field_is_not_the_node(order: tuple[str | None, str | None]) -> None:
    """One template with such a label, before and after the field."""
    for label in ("n1", "n2", "n3"):
        for node in order:
            term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"nodeName": label}}}
            affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
            after = document(node, affinity=affinity)
            before = {**after, "spec": {"affinity": affinity, **after["spec"]}}
            for each in (after, before):
                found = PodDecoder().decode(text_of(each))
                assert found.node_name == (node or "")
                assert found == PLAIN.decode(text_of(each))


@pytest.mark.parametrize("name", ['a"b', "a\\b", "ä", ""])
def test_an_odd_name_of_a_node_is_read(name: str) -> None:
    assert PodDecoder().decode(text_of(document(name))).node_name == name


# -- what is shared


def test_pods_of_a_template_share_their_parts_on_different_nodes() -> None:
    one, two = (kinds.decode(Pod, text_of(document(node))) for node in ("n1", "n2"))
    assert (one.node_name, two.node_name) == ("n1", "n2")
    assert one.spec.containers is two.spec.containers
    assert one.shape is two.shape
    assert one.status is two.status


def test_the_names_of_token_volumes_make_no_difference() -> None:
    one, two = (kinds.decode(Pod, text_of(with_token(letters))) for letters in ("abcde", "fghij"))
    assert one.spec.containers is two.spec.containers
    assert one.spec.volumes == two.spec.volumes


def test_a_volume_of_a_tenant_keeps_its_name() -> None:
    found = kinds.decode(Pod, text_of(document(volumes=[{"name": "kube-api-access-abcde", "emptyDir": {}}])))
    assert found.spec.volumes[0].name == "kube-api-access-abcde"


def test_pods_with_other_namespaces_and_resizes_have_other_shapes() -> None:
    one = document()
    other_namespace = {**one, "metadata": {**one["metadata"], "namespace": "other"}}
    resized = {**one, "status": {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "2"}}]}}
    waiting = {**one, "status": {"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}}
    pods = [kinds.decode(Pod, text_of(each)) for each in (one, other_namespace, resized, waiting)]
    assert len({id(pod.shape) for pod in pods}) == 4
    assert [pod.shape.key for pod in pods] == [signature(pod) for pod in pods]


def test_ephemeral_claims_are_named_after_their_own_pod() -> None:
    volumes = [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
    one, two = document(volumes=volumes), document(volumes=volumes)
    two["metadata"] = {**two["metadata"], "name": "q"}
    claims = [kinds.decode(Pod, text_of(each)).shape.claims for each in (one, two)]
    assert claims == [("n/p-data",), ("n/q-data",)]


def test_labels_and_owners_are_shared_and_names_are_not() -> None:
    found = []
    for name in ("p", "q"):
        each = document()
        owners = [{"kind": "ReplicaSet", "name": "r", "uid": "1", "controller": True}]
        each["metadata"] = {"name": name, "labels": {"app": "web"}, "ownerReferences": owners}
        found.append(kinds.decode(Pod, text_of(each)))
    one, two = found
    assert (one.name, two.name) == ("p", "q")
    assert one.labels is two.labels
    assert one.metadata.owner_references is two.metadata.owner_references


# -- what is kept


def test_what_is_kept_has_a_bound() -> None:
    kept = RecentValues[bytes, bytes](lambda text: text, len, most=10_000, heaviest=1000)
    for number in range(1000):
        kept.value(b"%d" % number)
    assert 0 < len(kept) <= 2 * 10_000 // 200
    kept.value(b"x" * 1001)
    assert b"x" * 1001 not in kept._young


def test_what_is_asked_for_again_stays() -> None:
    read: list[bytes] = []

    def noted(text: bytes) -> int:
        read.append(text)
        return len(text)

    kept = RecentValues[bytes, int](noted, len, most=1000, heaviest=1000)
    for number in range(100):
        kept.value(b"often")
        kept.value(b"%d" % number)
    assert read.count(b"often") == 1
