"""The requests that carry out the calls of claims: an update is a merge patch that a changed claim refuses."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.kube import claim_requests
from stowplan.objects.claim_calls import ClaimCall

PATH = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/mine"
USERS = [{"resource": "pods", "name": "pod", "uid": "u"}]


def a_call(verb: str, subresource: str = "", body: dict[str, Any] | None = None, version: str = "") -> ClaimCall:
    return ClaimCall(verb, "resourceclaims", "default", "mine", subresource, body, version)


@pytest.mark.parametrize(
    ("call", "method", "path", "body"),
    [
        pytest.param(a_call("get"), "GET", PATH, None, id="read"),
        pytest.param(a_call("delete"), "DELETE", PATH, None, id="delete"),
        pytest.param(
            a_call("update", body={"metadata": {"finalizers": ["f"]}}, version="7"),
            "PATCH",
            PATH,
            {"metadata": {"finalizers": ["f"], "resourceVersion": "7"}},
            id="finalizers",
        ),
        pytest.param(
            a_call("update", "status", {"status": {"allocation": {"devices": {}}, "reservedFor": USERS}}, "7"),
            "PATCH",
            f"{PATH}/status",
            {
                "metadata": {"resourceVersion": "7"},
                "status": {"allocation": {"devices": {}}, "reservedFor": USERS},
            },
            id="an allocation leaves what drivers say",
        ),
        pytest.param(
            a_call("update", "status", {"status": {}}, "7"),
            "PATCH",
            f"{PATH}/status",
            {
                "metadata": {"resourceVersion": "7"},
                "status": {"allocation": None, "reservedFor": None, "devices": None},
            },
            id="a deallocation",
        ),
    ],
)
def test_the_request(call: ClaimCall, method: str, path: str, body: dict[str, Any] | None) -> None:
    made = claim_requests.request(call)
    assert (made.method, made.path, made.body) == (method, path, body)


def test_a_new_claim_has_no_nulls() -> None:
    body = {"metadata": {"generateName": "pod-"}, "spec": {"devices": {"requests": None}}, "status": {}}
    made = claim_requests.request(ClaimCall("create", "resourceclaims", "default", body=body))
    assert (made.method, made.path) == ("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims")
    assert isinstance(made.body, dict)
    assert made.body["spec"] == {"devices": {}}


@pytest.mark.parametrize(
    ("status", "body", "known"),
    [
        pytest.param(200, b'{"metadata": {"name": "mine", "namespace": "default"}}', True, id="a claim"),
        pytest.param(409, b'{"message": "conflict"}', False, id="a refusal"),
        pytest.param(200, b"<html>", False, id="a page of somebody in between"),
    ],
)
def test_the_answer(status: int, body: bytes, known: bool) -> None:
    found = claim_requests.answer(a_call("get"), status, body, "")
    assert (found.claim is not None) is known
    assert found.ok is known
