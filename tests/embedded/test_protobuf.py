"""What kubectl 1.36 sends when it creates things by command, and what is no protobuf at all."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from stowplan.embedded.http import protobuf

CONFIG_MAP = "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEh4KFAoEa2VwdBIAGgAiACoAMgA4AEIAEgYKAWESAWIaACIA"
DEPLOYMENT = (
    "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50ErIBCh8KA3dlYhIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEoABCAASDAoKCgNhcHASA3dlYhpm"
    "ChwKABIAGgAiACoAMgA4AEIAWgoKA2FwcBIDd2ViEkYSKAoBeBIDeDoxKgAyCgoAEAAYUCIAKgBCAGoAcgCAAQCIAQCQAQCiAQAaADIAQgBKAFIA"
    "WABgAGgAggEAigEAmgEAwgEAIgIKACgAOAAaDAgAEAAYACAAKAA4ABoAIgA="
)
BUDGET = (
    "azhzAAogCglwb2xpY3kvdjESE1BvZERpc3J1cHRpb25CdWRnZXQSNgoRCgFwEgAaACIAKgAyADgAQgASFQoJCAEQABoDNTAlEggKBgoBYRIBYhoK"
    "CAAYACAAKAAwABoAIgA="
)
PRIORITY = (
    "azhzAAolChRzY2hlZHVsaW5nLms4cy5pby92MRINUHJpb3JpdHlDbGFzcxIwChIKAnBjEgAaACIAKgAyADgAQgAQBRgAIgAqFFByZWVtcHRMb3dlclBy"
    "aW9yaXR5GgAiAA=="
)
QUOTA = "azhzAAoTCgJ2MRINUmVzb3VyY2VRdW90YRIXChEKAXESABoAIgAqADIAOABCABIAGgAaACIA"


@pytest.mark.parametrize(
    ("sent", "spec"),
    [
        pytest.param(CONFIG_MAP, {"kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "b"}}, id="a map"),
        pytest.param(DEPLOYMENT, {
            "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "x", "image": "x:1", "ports": [{"containerPort": 80}]}]}}},
        }, id="a number that may be missing keeps its zero"),
        pytest.param(BUDGET, {"kind": "PodDisruptionBudget", "metadata": {"name": "p"}, "spec": {
            "minAvailable": "50%", "selector": {"matchLabels": {"a": "b"}}}}, id="a number or a text"),
        pytest.param(PRIORITY, {
            "kind": "PriorityClass", "metadata": {"name": "pc"}, "value": 5, "preemptionPolicy": "PreemptLowerPriority",
        }, id="a text whose type is of another package"),
        pytest.param(QUOTA, {"kind": "ResourceQuota", "metadata": {"name": "q"}}, id="a kind without a spec"),
    ],
)  # fmt: skip
def test_what_kubectl_sends(sent: str, spec: dict[str, Any]) -> None:
    found = protobuf.decode(base64.b64decode(sent))
    found.pop("apiVersion")
    assert found == spec


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b'{"kind": "Pod"}', id="JSON"),
        pytest.param(base64.b64decode(QUOTA).replace(b"Quota", b"Thing"), id="a kind that is not served"),
        pytest.param(b"k8s\0\xff", id="a number without an end"),
        pytest.param(b"k8s\0\x0a\x7f", id="a message without an end"),
        pytest.param(b"k8s\0\x0b", id="an unknown wire type"),
        pytest.param(b"k8s\0\x08\x01", id="a number where a message should be"),
    ],
)
def test_what_cannot_be_read(body: bytes) -> None:
    with pytest.raises(protobuf.MalformedError):
        protobuf.decode(body)


def test_the_type_of_every_field_is_known() -> None:
    wire = protobuf._wire()
    plain = {*protobuf._SPECIAL, *protobuf._NUMBERS, "string", "bytes"}
    types = {kind.lstrip("+*[]{}") for fields in wire.values() for _, kind in fields.values()}
    assert types - plain - wire.keys() == set()


def test_every_cut_is_refused_or_read() -> None:
    whole = base64.b64decode(DEPLOYMENT)
    for length in range(len(whole)):
        try:
            protobuf.decode(whole[:length])
        except protobuf.MalformedError:
            continue
