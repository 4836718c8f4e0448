"""Device classes, resource slices, claims and templates: what is refused, filled in, and shown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.client import Client

GROUP = "/apis/resource.k8s.io/v1"
CLASSES, SLICES = f"{GROUP}/deviceclasses", f"{GROUP}/resourceslices"
CLAIMS = f"{GROUP}/namespaces/default/resourceclaims"
TEMPLATES = f"{GROUP}/namespaces/default/resourceclaimtemplates"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def a_claim(*requests: dict[str, Any], name: str = "c", **devices: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [*requests], **devices}}}


def exactly(name: str = "gpu", **more: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": "gpu", **more}}


def a_slice(*devices: dict[str, Any], **spec: Any) -> dict[str, Any]:
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    found = {"driver": "gpu.example.com", "pool": pool, "nodeName": "n", "devices": [*devices], **spec}
    return {"metadata": {"name": "s"}, "spec": {key: value for key, value in found.items() if value is not None}}


def a_device(name: str = "gpu-0", **more: Any) -> dict[str, Any]:
    return {"name": name, **more}


def a_capacity(**policy: Any) -> dict[str, Any]:
    return {"capacity": {"m": {"value": "8", "requestPolicy": policy}}}


def a_class(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "gpu"}, "spec": spec}


def cel(expression: str) -> list[dict[str, Any]]:
    return [{"cel": {"expression": expression}}]


PER_DEVICE = {"nodeName": None, "perDeviceNodeSelection": True}


@pytest.mark.parametrize(
    ("path", "document", "message"),
    [
        pytest.param(CLASSES, a_class(selectors=cel("device.driver ==")), "Invalid value", id="a class: half a text"),
        pytest.param(CLASSES, a_class(selectors=[{}]), "selectors[0].cel: Required value", id="a class: no selector"),
        pytest.param(
            CLASSES, a_class(selectors=cel("true" + " " * 10241)), "may not be more than 10240 bytes", id="long"
        ),
        pytest.param(CLASSES, a_class(extendedResourceName="cpu"), "must be a valid extended resource name", id="cpu"),
        pytest.param(CLASSES, a_class(config=[{}]), "config[0].opaque: Required value", id="a class: no configuration"),
        pytest.param(CLAIMS, a_claim(exactly("GPU")), "a lowercase RFC 1123 label must consist", id="a name"),
        pytest.param(CLAIMS, a_claim(*[exactly(f"r{i}") for i in range(33)]), "must have at most 32 items", id="33"),
        pytest.param(CLAIMS, a_claim(exactly(), exactly()), 'requests[1]: Duplicate value: "gpu"', id="a name twice"),
        pytest.param(
            CLAIMS,
            a_claim(exactly(selectors=cel("device.nothing.else("))),
            "selectors[0].cel.expression",
            id="a selector of a request",
        ),
        pytest.param(
            CLAIMS,
            a_claim({**exactly(), "firstAvailable": [{"name": "a", "deviceClassName": "g"}]}),
            "but multiple fields are set",
            id="both forms of a request",
        ),
        pytest.param(
            CLAIMS,
            a_claim(exactly(), constraints=[{"matchAttribute": "a.b/c", "distinctAttribute": "a.b/c"}]),
            "but multiple fields are set",
            id="both constraints",
        ),
        pytest.param(
            CLAIMS,
            a_claim(exactly(), config=[{"requests": ["other"], "opaque": {"driver": "d", "parameters": {}}}]),
            "must be the name of a request in the claim",
            id="a configuration of nobody",
        ),
        pytest.param(
            CLAIMS,
            a_claim(exactly(), config=[{"opaque": {"driver": "d"}}]),
            "parameters: Required value",
            id="no parameters",
        ),
        pytest.param(
            TEMPLATES,
            {"metadata": {"name": "t"}, "spec": {"spec": a_claim({"name": "a"})["spec"]}},
            "spec.spec.devices.requests[0]: Required value",
            id="a template",
        ),
        pytest.param(
            SLICES, a_slice(a_device(), a_device()), 'devices[1]: Duplicate value: "gpu-0"', id="a device twice"
        ),
        pytest.param(SLICES, a_slice(driver=""), "spec.driver: Required value", id="no driver"),
        pytest.param(SLICES, a_slice(pool={"name": "a//b", "resourceSliceCount": 1}), "spec.pool.name", id="a pool"),
        pytest.param(SLICES, a_slice(allNodes=True), "{`nodeName`, `allNodes`}", id="two places"),
        pytest.param(SLICES, a_slice(nodeName=None, allNodes=False), "must be either unset or set to true", id="false"),
        pytest.param(
            SLICES,
            a_slice(nodeName=None, nodeSelector={"nodeSelectorTerms": []}),
            "must have exactly one node selector term",
            id="no term",
        ),
        pytest.param(
            SLICES,
            a_slice(a_device(), **PER_DEVICE),
            "exactly one of `nodeName`, `nodeSelector`, `allNodes`",
            id="a device of no node",
        ),
        pytest.param(
            SLICES, a_slice(a_device(nodeName="n")), "can only be set if `perDeviceNodeSelection`", id="a place"
        ),
        pytest.param(
            SLICES,
            a_slice(a_device(), sharedCounters=[{"name": "s", "counters": {"c": {"value": "1"}}}]),
            "only one of `sharedCounters` or `devices` is allowed",
            id="counters and devices",
        ),
        pytest.param(
            SLICES, a_slice(sharedCounters=[{"name": "s"}], devices=None), "counters: Required value", id="no counters"
        ),
        pytest.param(
            SLICES,
            a_slice(a_device(consumesCounters=[{"counterSet": "", "counters": {"c": {"value": "1"}}}])),
            "counterSet: Required value",
            id="no counter set",
        ),
        pytest.param(
            SLICES,
            a_slice(a_device(taints=[{"key": "k", "effect": "Never"}])),
            'Unsupported value: "Never"',
            id="an effect",
        ),
        pytest.param(
            SLICES, a_slice(a_device(attributes={"a/b": {}})), "exactly one value must be specified", id="no value"
        ),
        pytest.param(
            SLICES, a_slice(a_device(attributes={"/b": {"int": 1}})), "the domain must not be empty", id="no domain"
        ),
        pytest.param(
            SLICES, a_slice(a_device(attributes={"a": {"string": "x" * 65}})), "more than 64 bytes", id="a text"
        ),
        pytest.param(
            SLICES,
            a_slice(a_device(**a_capacity(default="1"))),
            "allowMultipleAllocations must be true",
            id="a policy of a device that is not shared",
        ),
        pytest.param(
            SLICES,
            a_slice(a_device(allowMultipleAllocations=True, **a_capacity(validValues=["1"]))),
            "required when validValues is defined",
            id="no default",
        ),
        pytest.param(
            SLICES,
            a_slice(a_device(allowMultipleAllocations=True, **a_capacity(default="2", validValues=["1"]))),
            "default value is not valid",
            id="a wrong default",
        ),
        pytest.param(
            SLICES,
            a_slice(a_device(allowMultipleAllocations=True, **a_capacity(default="2", validRange={}))),
            "required when validRange is defined",
            id="no minimum",
        ),
        pytest.param(
            SLICES, a_slice(*(a_device(f"gpu-{i}") for i in range(129))), "must have at most 128 items", id="129"
        ),
    ],
)
def test_what_is_refused(path: str, document: dict[str, Any], message: str) -> None:
    code, body = Client().ask("POST", path, document)
    assert (code, message in body["message"]) == (422, True), body["message"]


def test_a_request_is_for_one_device_unless_it_says_otherwise() -> None:
    alternatives = [
        {"name": "a", "deviceClassName": "g"},
        {"name": "b", "deviceClassName": "g", "allocationMode": "All"},
    ]
    code, body = Client().ask("POST", CLAIMS, a_claim(exactly(), {"name": "list", "firstAvailable": alternatives}))
    assert code == 201 and body["status"] == {}
    first, second = body["spec"]["devices"]["requests"]
    assert (first["exactly"]["allocationMode"], first["exactly"]["count"]) == ("ExactCount", 1)
    assert [each["allocationMode"] for each in second["firstAvailable"]] == ["ExactCount", "All"]
    assert [each.get("count") for each in second["firstAvailable"]] == [1, None]


# -- the status

RESULT = {"request": "gpu", "driver": "gpu.example.com", "pool": "n", "device": "gpu-0"}
USER = {"resource": "pods", "name": "p", "uid": "u"}
ALLOCATED = {"allocation": {"devices": {"results": [RESULT]}}}


def with_status(*statuses: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Write statuses one after the other, and return the last answer."""
    client = Client()
    code, body = client.ask("POST", CLAIMS, a_claim(exactly()))
    for status in statuses:
        code, body = client.ask("PUT", f"{CLAIMS}/c/status", {**a_claim(exactly()), "status": status})
    return code, body


@pytest.mark.parametrize(
    ("statuses", "message"),
    [
        pytest.param([{"reservedFor": [USER]}], "may not be specified when `allocated` is not set", id="no allocation"),
        pytest.param(
            [{**ALLOCATED, "reservedFor": [{"name": "p"}]}], "reservedFor[0].resource: Required value", id="a user"
        ),
        pytest.param(
            [{**ALLOCATED, "reservedFor": [{**USER, "uid": str(n)} for n in range(257)]}],
            "status.reservedFor: Too many: 257: must have at most 256 items",
            id="too many users",
        ),
        pytest.param([{**ALLOCATED, "reservedFor": [USER, USER]}], 'Duplicate value: "u"', id="a user twice"),
        pytest.param([ALLOCATED, {"allocation": {"devices": {}}}], "field is immutable", id="another allocation"),
        pytest.param(
            [{"allocation": {"devices": {"results": [{**RESULT, "request": "other"}]}}}],
            "must be the name of a request in the claim",
            id="a result of nobody",
        ),
        pytest.param(
            [{"allocation": {"devices": {"results": [RESULT] * 33}}}], "must have at most 32 items", id="33 devices"
        ),
    ],
)
def test_which_status_is_refused(statuses: list[dict[str, Any]], message: str) -> None:
    code, body = with_status(*statuses)
    assert (code, message in body["message"]) == (422, True), body


def test_a_claim_is_deallocated_with_what_drivers_said_of_its_devices() -> None:
    place = {key: RESULT[key] for key in ("driver", "pool", "device")}
    code, body = with_status({**ALLOCATED, "devices": [{**place, "data": {"a": 1}}]})
    assert code == 200 and body["status"]["devices"][0]["data"] == {"a": 1}
    code, body = with_status({**ALLOCATED, "devices": [place]}, {"devices": [place]})
    assert (code, body["status"]) == (200, {})


def test_a_claim_that_is_being_deleted_gets_no_new_users() -> None:
    client = Client()
    document = a_claim(exactly())
    client.ask("POST", CLAIMS, {**document, "metadata": {"name": "c", "finalizers": ["example.com/busy"]}})
    assert client.ask("PUT", f"{CLAIMS}/c/status", {**document, "status": ALLOCATED})[0] == 200
    client.ask("DELETE", f"{CLAIMS}/c")
    code, body = client.ask("PUT", f"{CLAIMS}/c/status", {**document, "status": {**ALLOCATED, "reservedFor": [USER]}})
    assert code == 422 and "new entries may not be added" in body["message"]


@pytest.mark.parametrize(
    ("path", "document", "cells"),
    [
        pytest.param(CLAIMS, a_claim(exactly()), ["c", "pending"], id="a claim"),
        pytest.param(SLICES, a_slice(), ["s", "n", "gpu.example.com", "n"], id="a slice of a node"),
        pytest.param(
            SLICES, a_slice(nodeName=None, allNodes=True), ["s", "", "gpu.example.com", "n"], id="of all nodes"
        ),
        pytest.param(CLASSES, a_class(), ["gpu"], id="a class"),
    ],
)
def test_what_tables_show(path: str, document: dict[str, Any], cells: list[Any]) -> None:
    client = Client()
    assert client.ask("POST", path, document)[0] == 201
    code, body = client.ask("GET", path, accept=TABLE)
    assert code == 200 and body["rows"][0]["cells"][:-1] == cells
