"""What clients are refused, and with which words, as recorded from kube-apiserver 1.36."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.client import APPLY, DEPLOYMENTS, JSON_PATCH, MERGE, POD, PODS, STRATEGIC, Client

SPEC: dict[str, Any] = {"containers": [{"name": "c", "image": "x"}]}


@pytest.fixture
def client() -> Client:
    client = Client()
    assert client.ask("POST", PODS, POD)[0] == 201
    return client


@pytest.mark.parametrize(
    ("request_", "code", "reason", "message"),
    [
        pytest.param(("GET", "/api/v1/nope"), 404, "NotFound", "the server could not find the requested resource",
                     id="an unknown resource"),
        pytest.param(("GET", f"{PODS}/x"), 404, "NotFound", 'pods "x" not found', id="an unknown pod"),
        pytest.param(("GET", f"{DEPLOYMENTS}/x"), 404, "NotFound", 'deployments.apps "x" not found',
                     id="an unknown object of a group"),
        pytest.param(("GET", f"{PODS}/a/scale"), 404, "NotFound", "the server could not find the requested resource",
                     id="a subresource that the kind does not have"),
        pytest.param(("POST", PODS, "{bad"), 400, "BadRequest", "json parse error", id="malformed JSON"),
        pytest.param(("POST", PODS, "[]"), 400, "BadRequest", "must be of type Pod", id="no object"),
        pytest.param(("POST", PODS, ""), 400, "BadRequest", "unexpected end of JSON input", id="nothing at all"),
        pytest.param(("POST", PODS, {"kind": "Node", "apiVersion": "v1"}), 400, "BadRequest",
                     'Node in version "v1" cannot be handled as a Pod', id="another kind"),
        pytest.param(("POST", PODS, {"kind": "Pod", "apiVersion": "apps/v1"}), 400, "BadRequest",
                     'no kind "Pod" is registered for version "apps/v1"', id="another version"),
        pytest.param(("POST", PODS, POD, "text/plain"), 415, "UnsupportedMediaType",
                     "the body of the request was in an unknown format", id="an unknown media type"),
        pytest.param(("PUT", PODS, POD), 405, "MethodNotAllowed",
                     "the server does not allow this method on the requested resource", id="PUT of a collection"),
        pytest.param(("POST", f"{PODS}/a", POD), 405, "MethodNotAllowed", "", id="POST of an object"),
        pytest.param(("POST", "/api/v1/pods", POD), 405, "MethodNotAllowed", "", id="POST without a namespace"),
        pytest.param(("GET", f"{PODS}/a/binding"), 405, "MethodNotAllowed", "", id="GET of a binding"),
        pytest.param(("POST", f"{PODS}/a/status", {}), 405, "MethodNotAllowed", "", id="POST of a status"),
        pytest.param(("POST", "/api/v1/namespaces/none/pods", POD), 404, "NotFound", 'namespaces "none" not found',
                     id="a namespace that is not there"),
        pytest.param(("POST", PODS, {}), 422, "Invalid",
                     'Pod "" is invalid: [metadata.name: Required value: name or generateName is required, '
                     "spec.containers: Required value]", id="an empty pod"),
        pytest.param(("POST", PODS, {**POD, "metadata": {"name": "A_b"}}), 422, "Invalid",
                     "a lowercase RFC 1123 subdomain must consist of", id="a name that is none"),
        pytest.param(("POST", PODS, {**POD, "metadata": {"name": "b", "namespace": "other"}}), 400, "BadRequest",
                     "the namespace of the provided object does not match the namespace sent on the request",
                     id="another namespace"),
        pytest.param(("POST", PODS, {**POD, "metadata": {"name": "b"}, "spec": {"containers": [
                         {"name": "c", "image": "x", "resources": {"requests": {"gpu": "1"}}}]}}), 422, "Invalid",
                     '[spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": must be a standard resource '
                     'type or fully qualified, spec.containers[0].resources.requests[gpu]: Invalid value: "gpu": '
                     "must be a standard resource for containers]", id="a resource that is not qualified"),
        pytest.param(("POST", PODS, POD), 409, "AlreadyExists", 'pods "a" already exists', id="a second time"),
        pytest.param(("POST", PODS, {**POD, "spec": {"containers": "x"}}), 400, "BadRequest",
                     "json: cannot unmarshal string into Go struct field", id="text for a list"),
        pytest.param(("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {"replicas": "three"}}), 400,
                     "BadRequest", "of type int", id="text for a number"),
        pytest.param(("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": {"replicas": 1}}), 422, "Invalid",
                     'Deployment.apps "d" is invalid: [spec.selector: Required value, spec.template.metadata.labels: '
                     "Invalid value: null: `selector` does not match template `labels`, "
                     "spec.template.spec.containers: Required value]", id="an empty deployment"),
        pytest.param(("PUT", f"{PODS}/a", {**POD, "metadata": {"name": "a", "resourceVersion": "1"}}), 409, "Conflict",
                     'Operation cannot be fulfilled on pods "a": the object has been modified; please apply your '
                     "changes to the latest version and try again", id="a stale version"),
        pytest.param(("PUT", f"{PODS}/a", {**POD, "metadata": {"name": "b"}}), 400, "BadRequest",
                     "the name of the object (b) does not match the name on the URL (a)", id="another name"),
        pytest.param(("PUT", f"{PODS}/b", {**POD, "metadata": {"name": "b"}}), 404, "NotFound", 'pods "b" not found',
                     id="an update of nothing"),
        pytest.param(("PATCH", f"{PODS}/a", "{bad", JSON_PATCH), 400, "BadRequest", "error decoding patch",
                     id="a malformed patch"),
        pytest.param(("PATCH", f"{PODS}/a", [], MERGE), 400, "BadRequest", "error decoding patch",
                     id="a list for a merge patch"),
        pytest.param(("PATCH", f"{PODS}/a", [{"op": "nope", "path": "/x"}], JSON_PATCH), 422, "Invalid",
                     "the server rejected our request due to an error in our request", id="an unknown operation"),
        pytest.param(("PATCH", f"{PODS}/a", {"metadata": {"labels": 5}}, STRATEGIC), 422, "Invalid", "cannot unmarshal",
                     id="a patch that breaks the object"),
        pytest.param(("PATCH", f"{PODS}/a", {"metadata": {"uid": "1"}}, MERGE), 422, "Invalid",
                     'Pod "a" is invalid: metadata.uid: Invalid value: "1": field is immutable', id="another uid"),
        pytest.param(("PATCH", f"{PODS}/a", {"spec": {"nodeName": "q"}}, MERGE), 422, "Invalid",
                     "pod updates may not change fields other than", id="a pod's node"),
        pytest.param(("PATCH", f"{PODS}/a", {"metadata": {"labels": {"a b": "c"}}}, MERGE), 422, "Invalid",
                     "name part must consist of alphanumeric characters", id="a label that is none"),
        pytest.param(("PATCH", f"{PODS}/a", "{}", APPLY), 422, "Invalid",
                     "fieldManager: Required value: is required for apply patch",
                     id="server-side apply by nobody"),
        pytest.param(("PATCH", f"{PODS}/a", {}, "application/json"), 415, "UnsupportedMediaType", "",
                     id="no patch type"),
        pytest.param(("DELETE", f"{PODS}/none"), 404, "NotFound", 'pods "none" not found', id="delete nothing"),
        pytest.param(("DELETE", f"{PODS}/a", {"preconditions": {"uid": "zz"}}), 409, "Conflict",
                     "the UID in the precondition (zz) does not match the UID in record", id="delete another"),
        pytest.param(("DELETE", f"{PODS}/a", {"propagationPolicy": "Zap"}), 422, "Invalid",
                     'propagationPolicy: Unsupported value: "Zap"', id="an unknown propagation"),
        pytest.param(("DELETE", "/api/v1/namespaces/default"), 403, "Forbidden",
                     'namespaces "default" is forbidden: this namespace may not be deleted', id="the default one"),
        pytest.param(("POST", f"{PODS}/a/binding", {"metadata": {"name": "b"}, "target": {"name": "n"}}), 400,
                     "BadRequest", "name in URL does not match name in Binding object", id="bind another"),
        pytest.param(("POST", f"{PODS}/a/binding", {"metadata": {"name": "a", "uid": "zz"}, "target": {"name": "n"}}),
                     409, "Conflict", "Precondition failed: UID in precondition: zz", id="bind an earlier pod"),
        pytest.param(("POST", f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": {}}), 422, "Invalid",
                     "target.name: Required value", id="bind to nothing"),
        pytest.param(("POST", f"{PODS}/none/eviction", {"metadata": {"name": "none"}}), 404, "NotFound",
                     'pods "none" not found', id="evict nothing"),
    ],
)  # fmt: skip
def test_refusals(client: Client, request_: tuple[Any, ...], code: int, reason: str, message: str) -> None:
    status, body = client.ask(*request_)
    assert (status, body["kind"], body["status"], body["code"]) == (code, "Status", "Failure", code)
    assert body["reason"] == reason or not reason
    assert message in body["message"]


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        pytest.param({"labelSelector": "a b c"}, 400, "unable to parse requirement: found 'b', expected: in, notin",
                     id="a label selector"),
        pytest.param({"fieldSelector": "spec.foo=x"}, 400, "field label not supported: spec.foo", id="a field"),
        pytest.param({"limit": "x"}, 400, 'strconv.ParseInt: parsing "x": invalid syntax', id="a limit"),
        pytest.param({"continue": "zzz"}, 400, "continue key is not valid", id="a token"),
        pytest.param({"resourceVersion": "abc"}, 400, "invalid resource version", id="a version"),
        pytest.param({"resourceVersion": "99999999"}, 504, "Too large resource version: 99999999", id="the future"),
        pytest.param({"watch": "1", "sendInitialEvents": "true"}, 422, "sendInitialEvents requires setting",
                     id="initial events without a match"),
    ],
)  # fmt: skip
def test_refused_lists(client: Client, query: dict[str, str], code: int, message: str) -> None:
    status, body = client.ask("GET", PODS, **query)
    assert (status, body["code"]) == (code, code)
    assert message in body["message"]


def test_refused_mounts(client: Client) -> None:
    mounts = [{"name": "a"}, {"mountPath": "/x"}, {"name": "a", "mountPath": "/y"}, {"name": "a", "mountPath": "/y"}]
    container = {"name": "c", "image": "x", "volumeMounts": [*mounts, {"name": "q", "mountPath": "/z"}]}
    pod = {"metadata": {"name": "b"}, "spec": {"volumes": [{"name": "a"}], "containers": [container]}}
    _, body = client.ask("POST", PODS, pod)
    start = "spec.containers[0].volumeMounts"
    assert [(cause["field"].removeprefix(start), cause["message"]) for cause in body["details"]["causes"]] == [
        ("[0].mountPath", "Required value"),
        ("[1].name", "Required value"),
        ("[1].name", 'Not found: ""'),
        ("[3].mountPath", 'Invalid value: "/y": must be unique'),
        ("[4].name", 'Not found: "q"'),
    ]


@pytest.mark.parametrize(
    ("toleration", "message"),
    [
        pytest.param({"key": "a", "operator": "Exists", "value": "x"},
                     'operator: Invalid value: "x": value must be empty when `operator` is \'Exists\'',
                     id="a value that any value would match"),
        pytest.param({"operator": "Equal", "value": "x"},
                     'operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means '
                     '"match all values and all keys"', id="no key"),
        pytest.param({"key": "a", "tolerationSeconds": 4},
                     'effect: Invalid value: "": effect must be \'NoExecute\' when `tolerationSeconds` is set',
                     id="seconds without NoExecute"),
        pytest.param({"key": "a", "operator": "Foo"},
                     'operator: Unsupported value: "Foo": supported values: "Equal", "Exists"',
                     id="an unknown operator"),
        pytest.param({"key": "a", "effect": "Bar"}, 'effect: Unsupported value: "Bar": supported values: "NoSchedule", '
                     '"PreferNoSchedule", "NoExecute"', id="an unknown effect"),
        pytest.param({"key": "a b"}, 'key: Invalid value: "a b": name part must consist of', id="a key that is none"),
        pytest.param({"key": "a", "value": "x y"}, 'operator: Invalid value: "x y": a valid label must be',
                     id="a value that is none"),
    ],
)  # fmt: skip
def test_refused_tolerations(client: Client, toleration: dict[str, Any], message: str) -> None:
    pod = {"metadata": {"name": "b"}, "spec": {**SPEC, "tolerations": [toleration]}}
    status, body = client.ask("POST", PODS, pod)
    assert (status, body["reason"]) == (422, "Invalid")
    assert body["message"].startswith(f'Pod "b" is invalid: spec.tolerations[0].{message}')


@pytest.mark.parametrize(
    ("method", "path", "what"),
    [
        pytest.param("GET", f"{PODS}/a/log", "there are no logs", id="logs"),
        pytest.param("POST", f"{PODS}/a/exec", "nothing can be executed", id="exec"),
        pytest.param("GET", f"{PODS}/a/exec", "nothing can be executed", id="exec by a web socket"),
        pytest.param("POST", f"{PODS}/a/portforward", "no port can be forwarded", id="port-forward"),
        pytest.param("POST", f"{PODS}/a/attach", "nothing can be attached to", id="attach"),
        pytest.param("PATCH", f"{PODS}/a/ephemeralcontainers", "none can be debugged", id="debug"),
        pytest.param("GET", "/apis/metrics.k8s.io/v1beta1/nodes", "nothing is measured", id="top"),
    ],
)
def test_what_needs_containers_says_that_there_are_none(client: Client, method: str, path: str, what: str) -> None:
    status, body = client.ask(method, path)
    assert (status, body["reason"]) == (400, "BadRequest")
    assert body["message"].startswith(f"no containers run here, so {what}")


def test_metrics_are_announced_but_have_no_resources(client: Client) -> None:
    _, groups = client.ask("GET", "/apis")
    assert "metrics.k8s.io" in [group["name"] for group in groups["groups"]]
    _, listed = client.ask("GET", "/apis/metrics.k8s.io/v1beta1")
    assert listed["resources"] == []
