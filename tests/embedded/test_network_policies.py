"""NetworkPolicies: kept and shown as Kubernetes does; nothing enforces them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.client import Client

PATH = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"


@pytest.mark.parametrize(
    ("spec", "types"),
    [
        pytest.param({}, ["Ingress"], id="nothing"),
        pytest.param({"egress": [{}]}, ["Ingress", "Egress"], id="with rules for egress"),
        pytest.param({"egress": [{}], "policyTypes": ["Egress"]}, ["Egress"], id="as it says"),
    ],
)
def test_defaults(spec: dict[str, Any], types: list[str]) -> None:
    code, found = Client().ask("POST", PATH, {"metadata": {"name": "n"}, "spec": {"podSelector": {}, **spec}})
    assert (code, found["spec"]["policyTypes"], found["metadata"]["generation"]) == (201, types, 1)


def test_ports_and_the_table() -> None:
    client = Client()
    spec = {"podSelector": {"matchLabels": {"a": "b"}}, "ingress": [{"ports": [{"port": 80}]}]}
    _, found = client.ask("POST", PATH, {"metadata": {"name": "n"}, "spec": spec})
    assert found["spec"]["ingress"] == [{"ports": [{"port": 80, "protocol": "TCP"}]}]
    _, table = client.ask("GET", PATH, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Pod-Selector", "Age"]
    assert table["rows"][0]["cells"] == ["n", "a=b", "0s"]
