"""Ingresses, Endpoints, EndpointSlices and HorizontalPodAutoscalers: what is refused, filled in, and shown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.client import Client

NETWORK, DISCOVERY = "/apis/networking.k8s.io/v1", "/apis/discovery.k8s.io/v1"
INGRESSES, CLASSES = f"{NETWORK}/namespaces/default/ingresses", f"{NETWORK}/ingressclasses"
ENDPOINTS, SLICES = "/api/v1/namespaces/default/endpoints", f"{DISCOVERY}/namespaces/default/endpointslices"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def an_ingress(host: str = "a.example", **path: Any) -> dict[str, Any]:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend, **path}]
    return {"metadata": {"name": "i"}, "spec": {"rules": [{"host": host, "http": {"paths": paths}}]}}


def a_class(name: str = "c", controller: str = "example.io/x", default: str = "false") -> dict[str, Any]:
    annotations = {"ingressclass.kubernetes.io/is-default-class": default}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": {"controller": controller}}


def endpoints(ip: str = "10.0.0.1", port: int = 80) -> dict[str, Any]:
    return {"metadata": {"name": "e"}, "subsets": [{"addresses": [{"ip": ip}], "ports": [{"port": port}]}]}


def a_slice(*addresses: str, kind: str = "IPv4") -> dict[str, Any]:
    found = [{"addresses": list(addresses)}]
    return {"metadata": {"name": "s"}, "addressType": kind, "endpoints": found, "ports": [{"port": 80}]}


def an_autoscaler(**spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    return {"metadata": {"name": "h"}, "spec": {"scaleTargetRef": target, "maxReplicas": 3, **spec}}


@pytest.mark.parametrize(
    ("path", "document", "message"),
    [
        pytest.param(INGRESSES, {"metadata": {"name": "i"}}, "either `defaultBackend` or `rules` must be specified",
                     id="an ingress to nowhere"),
        pytest.param(INGRESSES, an_ingress(pathType=None), "pathType must be specified", id="no type of a path"),
        pytest.param(INGRESSES, an_ingress(pathType="About"), 'Unsupported value: "About"', id="an unknown type"),
        pytest.param(INGRESSES, an_ingress(path="x"), 'Invalid value: "x": must be an absolute path', id="no slash"),
        pytest.param(INGRESSES, an_ingress("10.0.0.1"), "must be a DNS name, not an IP address", id="an address"),
        pytest.param(INGRESSES, an_ingress("A_b"), "a lowercase RFC 1123 subdomain must", id="a host that is none"),
        pytest.param(INGRESSES, an_ingress(backend={}), "resource or service backend is required", id="no backend"),
        pytest.param(INGRESSES, an_ingress(backend={"service": {"name": "web"}}), "port name or number is required",
                     id="no port"),
        pytest.param(INGRESSES, an_ingress(backend={"service": {"port": {"number": 99999}}}),
                     "must be between 1 and 65535, inclusive", id="a port that is none"),
        pytest.param(CLASSES, a_class(controller="x"), "must be a domain-prefixed path", id="a controller"),
        pytest.param(ENDPOINTS, endpoints("10.0.0.300"), "must be a valid IP address", id="endpoints: an address"),
        pytest.param(ENDPOINTS, endpoints("127.0.0.1"), "may not be in the loopback range", id="endpoints: loopback"),
        pytest.param(ENDPOINTS, endpoints(port=0), "must be between 1 and 65535, inclusive", id="endpoints: a port"),
        pytest.param(SLICES, a_slice("10.0.0.1", kind=""), "addressType: Required value", id="a slice of nothing"),
        pytest.param(SLICES, a_slice("10.0.0.1", kind="IPv5"), 'Unsupported value: "IPv5"', id="a slice: a type"),
        pytest.param(SLICES, a_slice(), "must contain at least 1 address", id="a slice without addresses"),
        pytest.param(SLICES, a_slice("::2"), "must be an IPv4 address", id="a slice: the other kind"),
        pytest.param(AUTOSCALERS, an_autoscaler(maxReplicas=0), "must be set and greater than 0", id="no replicas"),
        pytest.param(AUTOSCALERS, an_autoscaler(minReplicas=9), "greater than or equal to `minReplicas`", id="bounds"),
        pytest.param(AUTOSCALERS, an_autoscaler(scaleTargetRef={}), "spec.scaleTargetRef.kind: Required value",
                     id="no target"),
        pytest.param(AUTOSCALERS, an_autoscaler(metrics=[{"type": "Moon"}]), 'Unsupported value: "Moon"',
                     id="a metric"),
        pytest.param(AUTOSCALERS, an_autoscaler(metrics=[{"type": "Pods"}]), "must populate information",
                     id="a metric without a source"),
    ],
)  # fmt: skip
def test_what_is_refused(path: str, document: dict[str, Any], message: str) -> None:
    code, body = Client().ask("POST", path, document)
    assert code == 422
    assert message in body["message"]


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        pytest.param([], None, id="there is no class"),
        pytest.param([a_class()], None, id="none is the default"),
        pytest.param([a_class(), a_class("d", default="true")], "d", id="one is the default"),
    ],
)
def test_an_ingress_gets_the_default_class(classes: list[dict[str, Any]], expected: str | None) -> None:
    client = Client()
    for each in classes:
        assert client.ask("POST", CLASSES, each)[0] == 201
    code, body = client.ask("POST", INGRESSES, an_ingress())
    assert code == 201
    assert body["spec"].get("ingressClassName") == expected


def test_endpoints_are_deprecated_and_clients_are_told() -> None:
    client = Client()
    for method, path, document in (("POST", ENDPOINTS, endpoints()), ("GET", f"{ENDPOINTS}/e", None)):
        assert client.ask(method, path, document)[0] in (200, 201)
        assert client.warnings == ["v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"]


def test_an_autoscaler_gets_a_metric_and_a_behaviour() -> None:
    code, body = Client().ask("POST", AUTOSCALERS, an_autoscaler(behavior={"scaleDown": {"selectPolicy": "Min"}}))
    assert code == 201
    assert body["spec"]["minReplicas"] == 1
    assert body["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 80
    assert body["spec"]["behavior"]["scaleDown"]["selectPolicy"] == "Min"
    assert body["spec"]["behavior"]["scaleUp"]["policies"][0]["value"] == 4


@pytest.mark.parametrize(
    ("path", "document", "cells"),
    [
        pytest.param(INGRESSES, an_ingress(), ["i", "<none>", "a.example", "", "80"], id="an ingress"),
        pytest.param(CLASSES, a_class(), ["c", "example.io/x", "<none>"], id="a class"),
        pytest.param(ENDPOINTS, endpoints(), ["e", "10.0.0.1:80"], id="endpoints"),
        pytest.param(ENDPOINTS, {"metadata": {"name": "e"}}, ["e", "<none>"], id="no endpoints"),
        pytest.param(SLICES, a_slice(*(f"10.0.0.{number}" for number in range(1, 6))),
                     ["s", "IPv4", "80", "10.0.0.1,10.0.0.2,10.0.0.3 + 2 more..."], id="a slice"),
        pytest.param(AUTOSCALERS, an_autoscaler(), ["h", "Deployment/web", "cpu: <unknown>/80%", "1", 3, 0],
                     id="an autoscaler"),
    ],
)  # fmt: skip
def test_what_tables_show(path: str, document: dict[str, Any], cells: list[Any]) -> None:
    client = Client()
    assert client.ask("POST", path, document)[0] == 201
    code, body = client.ask("GET", path, accept=TABLE)
    assert code == 200
    assert body["rows"][0]["cells"][:-1] == cells
