"""What clients are given: defaults, versions, pages, views."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.embedded.authorization.users import ADMIN
from stowplan.embedded.schema import builtin_types, descriptions
from tests.embedded.client import DEPLOYMENTS, MERGE, POD, PODS, STRATEGIC, Client


@pytest.fixture
def client() -> Client:
    client = Client()
    assert client.ask("POST", PODS, POD)[0] == 201
    return client


def test_unknown_fields_are_a_warning_or_an_error(client: Client) -> None:
    odd = {"metadata": {"name": "odd"}, "spec": {"foo": 1, "containers": [{"name": "c", "image": "x", "bar": 2}]}}
    status, body = client.ask("POST", PODS, odd, fieldValidation="Strict")
    assert status == 400
    assert 'strict decoding error: unknown field "spec.containers[0].bar", unknown field "spec.foo"' in body["message"]
    status, body = client.ask("POST", PODS, odd)
    assert status == 201
    assert client.warnings == ['unknown field "spec.containers[0].bar"', 'unknown field "spec.foo"']
    assert "foo" not in body["spec"]


def test_a_pod_gets_what_a_server_gives(client: Client) -> None:
    _, pod = client.ask("GET", f"{PODS}/a")
    spec = pod["spec"]
    assert (spec["schedulerName"], spec["restartPolicy"], spec["priority"]) == ("default-scheduler", "Always", 0)
    assert spec["terminationGracePeriodSeconds"] == 30
    assert [each["key"] for each in spec["tolerations"]] == [
        "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable",
    ]  # fmt: skip
    assert spec["containers"][0]["imagePullPolicy"] == "Always"
    assert pod["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert pod["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        pytest.param({}, "BestEffort", id="no requests"),
        pytest.param({"requests": {"cpu": "1"}}, "Burstable", id="some requests"),
        pytest.param({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed", id="limits alone are requests, too"),
        pytest.param({"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
                     "Burstable", id="requests below limits"),
    ],
)  # fmt: skip
def test_quality_of_service(client: Client, resources: dict[str, Any], quality: str) -> None:
    container = {"name": "c", "image": "x", "resources": resources}
    pod = {"metadata": {"generateName": "q-"}, "spec": {"containers": [container]}}
    status, made = client.ask("POST", PODS, pod)
    assert (status, made["status"]["qosClass"]) == (201, quality)
    assert made["metadata"]["name"].startswith("q-")


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("100k", "100k"),
        (2, "2"),
        ("1e3", "1e3"),
    ],
)
def test_quantities_have_one_spelling(client: Client, written: Any, stored: str) -> None:
    container = {"name": "c", "image": "x", "resources": {"requests": {"memory": written}}}
    _, made = client.ask("POST", PODS, {"metadata": {"generateName": "q-"}, "spec": {"containers": [container]}})
    assert made["spec"]["containers"][0]["resources"]["requests"]["memory"] == stored


def test_a_pod_is_bound_once(client: Client) -> None:
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
    assert client.ask("POST", f"{PODS}/a/binding", binding) == (
        201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201},
    )  # fmt: skip
    status, body = client.ask("POST", f"{PODS}/a/binding", binding)
    assert (status, body["details"]) == (409, {"name": "a", "kind": "pods/binding"})
    assert body["message"].endswith('pod a is already assigned to node "n"')
    _, pod = client.ask("GET", f"{PODS}/a")
    assert (pod["spec"]["nodeName"], pod["status"]["conditions"][0]["type"]) == ("n", "PodScheduled")


def test_a_binding_clears_the_nominated_node(client: Client) -> None:
    client.ask("PATCH", f"{PODS}/a/status", {"status": {"nominatedNodeName": "m"}}, MERGE)
    assert client.ask("GET", f"{PODS}/a")[1]["status"]["nominatedNodeName"] == "m"
    binding = {"metadata": {"name": "a"}, "target": {"name": "n"}}
    assert client.ask("POST", f"{PODS}/a/binding", binding, dryRun="All")[0] == 201
    assert client.ask("GET", f"{PODS}/a")[1]["status"]["nominatedNodeName"] == "m"
    client.ask("POST", f"{PODS}/a/binding", binding)
    _, pod = client.ask("GET", f"{PODS}/a")
    assert pod["spec"]["nodeName"] == "n" and "nominatedNodeName" not in pod["status"]


def test_all_pages_show_the_state_of_the_first_page(client: Client) -> None:
    for name in "bcde":
        client.ask("POST", PODS, {**POD, "metadata": {"name": name}})
    _, first = client.ask("GET", PODS, limit="2")
    assert first["metadata"]["remainingItemCount"] == 3
    client.ask("DELETE", f"{PODS}/d")
    query = {"limit": "2", "continue": first["metadata"]["continue"]}
    _, second = client.ask("GET", PODS, **query)
    query["continue"] = second["metadata"]["continue"]
    _, third = client.ask("GET", PODS, **query)
    names = [item["metadata"]["name"] for page in (first, second, third) for item in page["items"]]
    assert names == ["a", "b", "c", "d", "e"]
    assert len({page["metadata"]["resourceVersion"] for page in (first, second, third)}) == 1
    status, body = client.ask("GET", PODS, **query)
    assert (status, body["reason"]) == (410, "Expired")


def test_an_update_that_changes_nothing_is_none(client: Client) -> None:
    _, pod = client.ask("GET", f"{PODS}/a")
    _, same = client.ask("PUT", f"{PODS}/a", pod)
    assert same == pod
    _, labelled = client.ask("PATCH", f"{PODS}/a", {"metadata": {"labels": {"x": "y"}}}, MERGE)
    assert labelled["metadata"]["resourceVersion"] != pod["metadata"]["resourceVersion"]
    assert labelled["metadata"]["generation"] == 1


def test_a_status_patch_touches_nothing_else(client: Client) -> None:
    patch = {"status": {"conditions": [{"type": "PodScheduled", "status": "False"}]}, "spec": {"nodeName": "n"}}
    status, pod = client.ask("PATCH", f"{PODS}/a/status", patch, STRATEGIC)
    assert (status, "nodeName" in pod["spec"], pod["status"]["phase"]) == (200, False, "Pending")
    assert pod["status"]["conditions"][0]["status"] == "False"


def test_finalizers_keep_an_object_until_they_are_removed(client: Client) -> None:
    path = "/api/v1/namespaces/default/configmaps"
    client.ask("POST", path, {"metadata": {"name": "c", "finalizers": ["x.io/y"]}})
    status, body = client.ask("DELETE", f"{path}/c")
    assert (status, "deletionTimestamp" in body["metadata"]) == (200, True)
    assert client.ask("GET", f"{path}/c")[0] == 200
    client.ask("PATCH", f"{path}/c", {"metadata": {"finalizers": None}}, MERGE)
    assert client.ask("GET", f"{path}/c")[0] == 404


def test_a_running_pod_terminates_first(client: Client) -> None:
    client.ask("POST", f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": {"name": "n"}})
    _, pod = client.ask("DELETE", f"{PODS}/a")
    assert (pod["kind"], pod["metadata"]["deletionGracePeriodSeconds"]) == ("Pod", 30)
    status, body = client.ask("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 0})
    assert (status, body["kind"], body["details"]["name"]) == (200, "Status", "a")


def test_a_dry_run_stores_nothing(client: Client) -> None:
    status, made = client.ask("POST", PODS, {**POD, "metadata": {"name": "dry"}}, dryRun="All")
    assert (status, made["metadata"]["name"]) == (201, "dry")
    assert client.ask("GET", f"{PODS}/dry")[0] == 404
    client.ask("DELETE", f"{PODS}/a", dryRun="All")
    assert client.ask("GET", f"{PODS}/a")[0] == 200


def test_events_are_the_same_in_both_groups(client: Client) -> None:
    event = {
        "metadata": {"name": "e"}, "regarding": {"kind": "Pod", "name": "a", "namespace": "default"}, "note": "hello",
        "reason": "Said", "type": "Normal", "reportingController": "me", "reportingInstance": "i", "action": "Say",
        "eventTime": "2026-01-01T00:00:00.000000Z",
    }  # fmt: skip
    status, made = client.ask("POST", "/apis/events.k8s.io/v1/namespaces/default/events", event)
    assert (status, made["note"], made["apiVersion"]) == (201, "hello", "events.k8s.io/v1")
    _, core = client.ask("GET", "/api/v1/namespaces/default/events/e")
    assert (core["message"], core["involvedObject"]["name"], core["apiVersion"]) == ("hello", "a", "v1")
    _, found = client.ask("GET", "/api/v1/events", fieldSelector="involvedObject.name=a,reason=Said")
    assert len(found["items"]) == 1


def test_scale_is_a_view_of_a_workload(client: Client) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": POD["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    client.ask("POST", DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})
    _, scale = client.ask("GET", f"{DEPLOYMENTS}/d/scale")
    assert (scale["kind"], scale["spec"]["replicas"], scale["status"]["selector"]) == ("Scale", 2, "a=b")
    client.ask("PATCH", f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 0}}, MERGE)
    _, deployment = client.ask("GET", f"{DEPLOYMENTS}/d")
    assert (deployment["spec"]["replicas"], deployment["metadata"]["generation"]) == (0, 2)


def test_a_table_has_columns_and_rows(client: Client) -> None:
    _, table = client.ask("GET", PODS, accept="application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
    assert [column["name"] for column in table["columnDefinitions"]][:5] == [
        "Name",
        "Ready",
        "Status",
        "Restarts",
        "Age",
    ]
    assert table["rows"][0]["cells"][:4] == ["a", "0/1", "Pending", "0"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize("accept", ["application/xml", "application/vnd.kubernetes.protobuf"])
def test_unsupported_formats_are_not_acceptable(client: Client, accept: str) -> None:
    assert client.ask("GET", PODS, accept=accept)[0] == 406


@pytest.mark.parametrize(
    "path", ["/", "/api", "/apis", "/api/v1", "/apis/apps", "/apis/apps/v1", "/version", "/healthz"]
)
def test_discovery(client: Client, path: str) -> None:
    assert client.ask("GET", path)[0] == 200


@pytest.mark.parametrize("path", ["/nope", "/apis/nope/v1", "/openapi/v3/apis/nope/v1", "/metrics"])
def test_pages_that_are_not_there(client: Client, path: str) -> None:
    assert client.ask("GET", path) == (404, "404 page not found\n")


def test_openapi_names_the_fields_of_every_kind(client: Client) -> None:
    _, root = client.ask("GET", "/openapi/v3")
    for entry in root["paths"].values():
        status, document = client.ask("GET", entry["serverRelativeURL"])
        assert status == 200
        assert document["components"]["schemas"]


def test_openapi_describes_kinds_and_fields(client: Client) -> None:
    _, document = client.ask("GET", "/openapi/v3/api/v1")
    pod, spec = (document["components"]["schemas"][f"core.v1.{name}"] for name in ("Pod", "PodSpec"))
    assert pod["description"].startswith("One or more containers")
    assert spec["properties"]["tolerations"]["description"] == "The taints that the pod puts up with."
    assert pod["properties"]["kind"]["description"] == "The kind of this object."
    quota = document["components"]["schemas"]["core.v1.ResourceQuota"]
    assert quota["properties"]["spec"]["description"] == "What is wanted."
    limits = document["components"]["schemas"]["core.v1.LimitRangeSpec"]["properties"]["limits"]
    assert limits["description"] == "One item for each type."
    assert spec["properties"]["affinity"]["description"].startswith("Which nodes and which other pods")
    term = document["components"]["schemas"]["core.v1.PodCondition"]["properties"]["message"]
    assert "description" not in term


def test_every_description_is_about_a_field_that_exists() -> None:
    for type_name, sentences in descriptions._written().items():
        unknown = sentences.keys() - {"about", *builtin_types.fields(type_name)}
        assert (type_name, unknown) == (type_name, set())
        assert all(each.endswith(".") for each in sentences.values())


@pytest.mark.parametrize(
    ("known", "token", "authenticated"),
    [
        pytest.param("secret", "secret", True, id="the cluster's token"),
        pytest.param("secret", "other", False, id="another token"),
        pytest.param(None, "any", False, id="a cluster without a token"),
    ],
)
def test_token_reviews(client: Client, known: str | None, token: str, authenticated: bool) -> None:
    if known is not None:
        client.handlers.access.authenticator.add(known, ADMIN)
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    status, review = client.ask("POST", path, {"spec": {"token": token}})
    assert (status, review["status"].get("authenticated", False)) == (201, authenticated)


@pytest.mark.parametrize(("user", "allowed"), [("kubernetes-admin", True), ("system:anonymous", False)])
def test_access_reviews(client: Client, user: str, allowed: bool) -> None:
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    spec = {"user": user, "nonResourceAttributes": {"path": "/metrics", "verb": "get"}}
    _, review = client.ask("POST", path, {"spec": spec})
    assert review["status"]["allowed"] is allowed


def test_the_second_version_of_openapi_has_no_definitions(client: Client) -> None:
    """kubectl needs it to be there, or it takes no list."""
    status, document = client.ask("GET", "/openapi/v2")
    assert (status, document["swagger"], document["definitions"]) == (200, "2.0", {})
