"""Requests to a cluster with RBAC: who they are from, what is refused and with which words, tokens, reviews."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from typing import Any

import aiohttp
import pytest
import yaml

from stowplan.embedded.authorization.users import ApiUser
from stowplan.embedded.cluster import Embedded
from tests.embedded.authorization.guarded import ROOT, GuardedCluster

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
READS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
REVIEWS = "/apis/authorization.k8s.io/v1"
ROBOT = "system:serviceaccount:default:robot"


@pytest.fixture
def cluster() -> GuardedCluster:
    found = GuardedCluster()
    found.account("robot")
    return found


@pytest.mark.parametrize(
    ("method", "path", "message", "details"),
    [
        pytest.param("GET", PODS, 'pods is forbidden: User "x" cannot list resource "pods" in API group "" in the '
                     'namespace "default"', {"kind": "pods"}, id="a list"),
        pytest.param("GET", f"{PODS}/a", 'pods "a" is forbidden: User "x" cannot get resource "pods" in API group "" '
                     'in the namespace "default"', {"name": "a", "kind": "pods"}, id="an object"),
        pytest.param("GET", f"{PODS}/a/log", 'pods "a" is forbidden: User "x" cannot get resource "pods/log" in API '
                     'group "" in the namespace "default"', {"name": "a", "kind": "pods"}, id="a subresource"),
        pytest.param("GET", "/apis/apps/v1/deployments", 'deployments.apps is forbidden: User "x" cannot list '
                     'resource "deployments" in API group "apps" at the cluster scope',
                     {"group": "apps", "kind": "deployments"}, id="of a group, everywhere"),
        pytest.param("GET", "/metrics", 'forbidden: User "x" cannot get path "/metrics"', {}, id="a path"),
        pytest.param("GET", "/api/v1/nope", 'nope is forbidden: User "x" cannot list resource "nope" in API group "" '
                     "at the cluster scope", {"kind": "nope"}, id="what is not there"),
        pytest.param("POST", MAPS, 'configmaps is forbidden: User "x" cannot create resource "configmaps" in API '
                     'group "" in the namespace "default"', {"kind": "configmaps"}, id="a new object"),
    ],
)  # fmt: skip
def test_the_words_of_a_refusal(
    cluster: GuardedCluster, method: str, path: str, message: str, details: dict[str, str]
) -> None:
    code, status = cluster.as_user("x", method, path, {} if method == "POST" else None)
    assert (code, status["reason"], status["message"], status["details"]) == (403, "Forbidden", message, details)


def test_who_is_asked_for(cluster: GuardedCluster) -> None:
    assert cluster.ask("GET", PODS, token=ROOT)[0] == 200
    assert cluster.ask("GET", PODS, token="wrong") == (401, {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "Unauthorized",
        "reason": "Unauthorized", "code": 401,
    })  # fmt: skip
    code, status = cluster.ask("GET", PODS)
    assert (code, 'User "system:anonymous" cannot list' in status["message"]) == (403, True)
    assert cluster.ask("GET", "/version")[0] == 200
    assert cluster.ask("GET", "/api/v1")[0] == 403
    assert cluster.as_user("x", "GET", "/api/v1")[0] == 200, "discovery is for all who are known"


def test_a_binding_lets_in_and_its_end_locks_out(cluster: GuardedCluster) -> None:
    cluster.grant("reads", "x", READS)
    assert cluster.as_user("x", "GET", PODS)[0] == 200
    assert cluster.as_user("x", "GET", PODS, query={"watch": "1"})[0] == 403
    assert cluster.as_user("x", "DELETE", f"{PODS}/a")[0] == 403
    cluster.world.delete("clusterrolebindings.rbac.authorization.k8s.io", "reads")
    assert cluster.as_user("x", "GET", PODS)[0] == 403


def test_who_may_get_an_object_does_not_watch_it(cluster: GuardedCluster) -> None:
    """A real server answers with the object, whatever `watch` says; a watch of one object has a field selector."""
    cluster.world.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}})
    cluster.grant("gets", "x", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]})
    code, found = cluster.as_user("x", "GET", f"{MAPS}/m", query={"watch": "true"})
    assert (code, found["kind"], found["metadata"]["name"]) == (200, "ConfigMap", "m")
    query = {"watch": "true", "fieldSelector": "metadata.name=m"}
    code, status = cluster.as_user("x", "GET", MAPS, query=query)
    assert (code, 'cannot watch resource "configmaps"' in status["message"]) == (403, True)


# --- impersonation


def test_who_may_impersonate(cluster: GuardedCluster) -> None:
    token = cluster.token("robot")

    def acting(*headers: tuple[str, str]) -> tuple[int, str]:
        code, found = cluster.ask("GET", PODS, token=token, headers=headers)
        return code, found.get("message", "")

    jane, devs = ("Impersonate-User", "jane"), ("Impersonate-Group", "devs")
    code, said = acting(jane)
    assert (code, said) == (403, f'pods is forbidden: User "{ROBOT}" cannot impersonate-on:user-info:list resource '
                            '"pods" in API group "" in the namespace "default"')  # fmt: skip
    cluster.grant("as-jane", ROBOT, {"apiGroups": [""], "resources": ["users"], "resourceNames": ["jane"],
                                     "verbs": ["impersonate"]})  # fmt: skip
    cluster.grant("jane", "jane", READS)
    assert acting(jane)[0] == 200
    assert acting(jane, devs)[0] == 403
    assert acting(("Impersonate-User", "ann"))[0] == 403
    assert acting(devs)[0] == 400
    cluster.grant("as-devs", ROBOT, {"apiGroups": [""], "resources": ["groups"], "verbs": ["impersonate"]})
    assert acting(jane, devs)[0] == 200


def test_the_narrow_way_to_impersonate(cluster: GuardedCluster) -> None:
    token, jane = cluster.token("robot"), (("Impersonate-User", "jane"),)
    cluster.grant("jane", "jane", READS, {**READS, "resources": ["nodes"]})
    cluster.grant("as-jane", ROBOT, {"apiGroups": ["authentication.k8s.io"], "resources": ["users"],
                                     "verbs": ["impersonate:user-info"]})  # fmt: skip
    assert cluster.ask("GET", PODS, token=token, headers=jane)[0] == 403
    cluster.grant("on-pods", ROBOT, {**READS, "verbs": ["impersonate-on:user-info:list"]})
    assert cluster.ask("GET", PODS, token=token, headers=jane)[0] == 200
    assert cluster.ask("GET", "/api/v1/nodes", token=token, headers=jane)[0] == 403


def narrow(mode: str) -> list[dict[str, Any]]:
    """All rights of a narrower way to impersonate."""
    return [
        {"apiGroups": ["authentication.k8s.io"], "resources": ["*"], "verbs": [f"impersonate:{mode}"]},
        {"apiGroups": ["*"], "resources": ["*"], "verbs": [f"impersonate-on:{mode}:list"]},
    ]


NODE, MASTERS = ("Impersonate-User", "system:node:n"), ("Impersonate-Group", "system:masters")


@pytest.mark.parametrize(
    ("mode", "headers", "message"),
    [
        pytest.param("user-info", [("Impersonate-User", "x"), MASTERS],
                     f'groups.authentication.k8s.io "system:masters" is forbidden: User "{ROBOT}" cannot '
                     'impersonate:user-info resource "groups" in API group "authentication.k8s.io" at the cluster '
                     "scope: impersonating the system:masters group is not allowed", id="who may do everything"),
        pytest.param("user-info", [NODE], f'pods is forbidden: User "{ROBOT}" cannot impersonate-on:arbitrary-node:'
                     'list resource "pods" in API group "" in the namespace "default"', id="a node as a user"),
        pytest.param("arbitrary-node", [NODE], 'pods is forbidden: User "system:node:n" cannot list resource "pods" '
                     'in API group "" in the namespace "default"', id="a node as a node"),
        pytest.param("arbitrary-node", [NODE, MASTERS], f'users "system:node:n" is forbidden: User "{ROBOT}" cannot '
                     'impersonate resource "users" in API group "" at the cluster scope', id="a node with groups"),
        pytest.param("serviceaccount", [("Impersonate-User", ROBOT), MASTERS],
                     f'serviceaccounts "robot" is forbidden: User "{ROBOT}" cannot impersonate resource '
                     '"serviceaccounts" in API group "" in the namespace "default"', id="an account with groups"),
    ],
)  # fmt: skip
def test_where_the_narrow_way_does_not_lead(
    cluster: GuardedCluster, mode: str, headers: list[tuple[str, str]], message: str
) -> None:
    """In the words of kube-apiserver 1.36."""
    cluster.grant("narrow", ROBOT, *narrow(mode))
    code, status = cluster.ask("GET", PODS, token=cluster.token("robot"), headers=tuple(headers))
    assert (code, status["message"]) == (403, message)


def test_the_wide_way_leads_everywhere(cluster: GuardedCluster) -> None:
    cluster.grant("wide", ROBOT, {"apiGroups": [""], "resources": ["users", "groups"], "verbs": ["impersonate"]})
    headers = (("Impersonate-User", "x"), MASTERS)
    assert cluster.ask("GET", PODS, token=cluster.token("robot"), headers=headers)[0] == 200


@pytest.mark.parametrize(
    ("headers", "groups"),
    [
        pytest.param([("User", "jane")], ["system:authenticated"], id="a user"),
        pytest.param([("User", "jane"), ("Group", "a"), ("Group", "b")], ["a", "b", "system:authenticated"],
                     id="groups"),
        pytest.param([("User", ROBOT)], ["system:serviceaccounts", "system:serviceaccounts:default",
                                         "system:authenticated"], id="an account"),
    ],
)  # fmt: skip
def test_as_whom(cluster: GuardedCluster, headers: list[tuple[str, str]], groups: list[str]) -> None:
    sent = tuple((f"Impersonate-{name}", value) for name, value in headers)
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    code, review = cluster.ask("POST", path, {}, token=ROOT, headers=(*sent, ("Impersonate-Extra-a%2Fb", "c")))
    expected = {"username": headers[0][1], "groups": groups, "extra": {"a/b": ["c"]}}
    assert (code, review["status"]["userInfo"]) == (201, expected)


# --- tokens


def test_tokens_of_accounts(cluster: GuardedCluster) -> None:
    cluster.grant("reads", ROBOT, READS)
    token = cluster.token("robot")
    header, claims, _ = token.split(".")
    assert json.loads(base64.urlsafe_b64decode(claims + "=="))["sub"] == ROBOT
    assert cluster.ask("GET", PODS, token=token)[0] == 200
    assert cluster.ask("GET", PODS, token=f"{header}.{claims}.{'A' * 43}")[0] == 401, "somebody else signed it"
    forged = base64.urlsafe_b64encode(json.dumps({"sub": "x"}).encode()).decode().rstrip("=")
    assert cluster.ask("GET", PODS, token=token.replace(claims, forged))[0] == 401
    cluster.world.now += 3599
    assert cluster.ask("GET", PODS, token=token)[0] == 200
    cluster.world.now += 2
    assert cluster.ask("GET", PODS, token=token)[0] == 401, "it has expired"
    assert cluster.ask("GET", PODS, token=cluster.token("robot", audiences=["vault"]))[0] == 401, "for somebody else"
    fresh = cluster.token("robot", expirationSeconds=7200)
    cluster.world.delete("serviceaccounts", "default/robot")
    assert cluster.ask("GET", PODS, token=fresh)[0] == 401
    cluster.account("robot")
    assert cluster.ask("GET", PODS, token=fresh)[0] == 401, "another account of that name"


def test_a_bound_token_ends_with_its_pod(cluster: GuardedCluster) -> None:
    spec = {"serviceAccountName": "robot", "containers": [{"name": "c", "image": "x"}]}
    cluster.world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    token = cluster.token("robot", boundObjectRef={"apiVersion": "v1", "kind": "Pod", "name": "p"})
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    code, review = cluster.ask("POST", path, {}, token=token)
    assert (code, review["status"]["userInfo"]["extra"]["authentication.kubernetes.io/pod-name"]) == (201, ["p"])
    cluster.world.delete("pods", "default/p", grace_period_seconds=0)
    assert cluster.ask("POST", path, {}, token=token)[0] == 401


@pytest.mark.parametrize("more", [{}, {"uid": "another"}], ids=["by its name", "by another uid, too"])
def test_a_token_is_bound_to_no_pod_of_another_account(cluster: GuardedCluster, more: dict[str, str]) -> None:
    cluster.account("other")
    spec = {"serviceAccountName": "other", "containers": [{"name": "c", "image": "x"}]}
    cluster.world.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
    path, bound = "/api/v1/namespaces/default/serviceaccounts/robot/token", {"apiVersion": "v1", "kind": "Pod"}
    asked = {"spec": {"boundObjectRef": {**bound, "name": "p", **more}}}
    code, status = cluster.ask("POST", path, asked, token=ROOT)
    said = 'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.'
    assert (code, status["message"]) == (400, said)


@pytest.mark.parametrize(
    ("account", "spec", "code", "message"),
    [
        pytest.param("robot", {"expirationSeconds": 300}, 422,
                     'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 300: '
                     "may not specify a duration less than 10 minutes", id="too short"),
        pytest.param("nobody", {}, 404, 'serviceaccounts "nobody" not found', id="no account"),
        pytest.param("robot", {"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "x"}}, 404,
                     'pods "x" not found', id="no pod"),
        pytest.param("robot", {"boundObjectRef": {"apiVersion": "v1", "kind": "Foo", "name": "x"}}, 400,
                     "cannot bind token to object of type /v1, Kind=Foo", id="no kind for that"),
    ],
)  # fmt: skip
def test_token_requests_that_are_refused(
    cluster: GuardedCluster, account: str, spec: dict[str, Any], code: int, message: str
) -> None:
    path = f"/api/v1/namespaces/default/serviceaccounts/{account}/token"
    assert (found := cluster.ask("POST", path, {"spec": spec}, token=ROOT))[0] == code
    assert found[1]["message"] == message


# --- reviews


def test_access_reviews_tell_the_truth(cluster: GuardedCluster) -> None:
    cluster.grant("reads", "x", READS)
    lists = {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}}
    deletes = {"resourceAttributes": {"verb": "delete", "resource": "pods", "namespace": "default"}}

    def status(path: str, spec: dict[str, Any], user: str = "") -> Any:
        code, found = cluster.as_user(user, "POST", path, {"spec": spec}) if user else cluster.ask(
            "POST", path, {"spec": spec}, token=ROOT)  # fmt: skip
        return found["status"] if code == 201 else found["message"]

    because = 'RBAC: allowed by ClusterRoleBinding "reads" of ClusterRole "reads" to User "x"'
    allowed = {"allowed": True, "reason": because}
    assert status(f"{REVIEWS}/subjectaccessreviews", {"user": "x", **lists}) == allowed
    assert status(f"{REVIEWS}/subjectaccessreviews", {"user": "x", **deletes}) == {"allowed": False}
    assert status(f"{REVIEWS}/selfsubjectaccessreviews", lists, "x") == allowed
    assert status(f"{REVIEWS}/selfsubjectaccessreviews", lists) == {"allowed": True}
    assert status(f"{REVIEWS}/namespaces/default/localsubjectaccessreviews", {"user": "x", **lists}) == allowed
    local = {"user": "x", "resourceAttributes": {"verb": "list", "namespace": "other"}}
    assert "must match metadata.namespace" in status(f"{REVIEWS}/namespaces/default/localsubjectaccessreviews", local)
    paths = {"nonResourceAttributes": {"verb": "get", "path": "/version"}}
    assert status(f"{REVIEWS}/selfsubjectaccessreviews", paths, "x")["allowed"] is True
    nothing: dict[str, Any] = {"nonResourceAttributes": {}}
    assert status(f"{REVIEWS}/selfsubjectaccessreviews", nothing, "x") == {"allowed": False}
    assert "exactly one of" in status(f"{REVIEWS}/selfsubjectaccessreviews", {})
    assert "at least one of user or group" in status(f"{REVIEWS}/subjectaccessreviews", lists)
    assert "cannot create resource" in status(f"{REVIEWS}/subjectaccessreviews", {"user": "x", **lists}, "x")


def test_rules_reviews(cluster: GuardedCluster) -> None:
    cluster.grant("reads", "x", READS)
    code, review = cluster.as_user("x", "POST", f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "a"}})
    found = review["status"]
    assert (code, found["incomplete"]) == (201, False)
    assert found["resourceRules"][0] == READS
    assert {"/version", "/api/*"} <= {url for rule in found["nonResourceRules"] for url in rule["nonResourceURLs"]}
    path = f"{REVIEWS}/selfsubjectrulesreviews"
    assert cluster.as_user("x", "POST", path, {"spec": {}})[1]["message"] == "no namespace on request"


def test_token_reviews(cluster: GuardedCluster) -> None:
    path, token = "/apis/authentication.k8s.io/v1/tokenreviews", cluster.token("robot")
    _, review = cluster.ask("POST", path, {"spec": {"token": token}}, token=ROOT)
    assert review["status"]["authenticated"] is True
    assert review["status"]["user"]["username"] == ROBOT
    assert review["status"]["audiences"] == ["https://kubernetes.default.svc"]
    cluster.world.now += 4000
    _, review = cluster.ask("POST", path, {"spec": {"token": token}}, token=ROOT)
    assert review["status"] == {"user": {}, "error": "invalid bearer token"}
    assert cluster.ask("POST", path, {"spec": {}}, token=ROOT)[0] == 400


# --- what is checked beside the verb


def test_rights_are_not_given_away(cluster: GuardedCluster) -> None:
    rbac = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["*"], "verbs": ["create", "update", "get"]}
    cluster.grant("roles", "x", rbac, READS)
    new = {"metadata": {"name": "new"}, "rules": [READS]}
    assert cluster.as_user("x", "POST", CLUSTER_ROLES, new)[0] == 201
    more = {**new, "rules": [{**READS, "verbs": ["delete"]}]}
    code, status = cluster.as_user("x", "PUT", f"{CLUSTER_ROLES}/new", more)
    assert (code, "is attempting to grant RBAC permissions not currently held" in status["message"]) == (403, True)
    assert cluster.ask("PUT", f"{CLUSTER_ROLES}/new", more, token=ROOT)[0] == 200
    kept = {**more, "metadata": {"name": "new", "finalizers": ["a/b"]}}
    assert cluster.as_user("x", "PUT", f"{CLUSTER_ROLES}/new", kept)[0] == 200, "what garbage collection needs"


def test_who_applies_a_new_object_must_be_allowed_to_create_it(cluster: GuardedCluster) -> None:
    cluster.grant("patches", "x", {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]})
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}}
    how: dict[str, Any] = {"kind": "application/apply-patch+yaml", "query": {"fieldManager": "me", "force": "true"}}
    code, status = cluster.as_user("x", "PATCH", f"{MAPS}/m", body, **how)
    assert (code, 'cannot create resource "configmaps"' in status["message"]) == (403, True)
    assert cluster.ask("PATCH", f"{MAPS}/m", body, token=ROOT, **how)[0] == 201
    assert cluster.as_user("x", "PATCH", f"{MAPS}/m", {**body, "data": {"a": "c"}}, **how)[0] == 200


def test_without_rbac_everything_is_allowed() -> None:
    cluster = GuardedCluster(enforced=False)
    cluster.account("robot")
    assert cluster.ask("GET", PODS)[0] == 200
    assert cluster.ask("GET", PODS, token="unknown")[0] == 200
    assert cluster.ask("GET", PODS, token=cluster.token("robot"))[0] == 200
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    assert cluster.ask("POST", path, {})[1]["status"]["userInfo"]["username"] == "kubernetes-admin"
    assert cluster.as_user("x", "POST", path, {})[1]["status"]["userInfo"]["username"] == "x"
    _, review = cluster.ask("POST", f"{REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    assert review["status"]["resourceRules"] == [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]


def test_over_https() -> None:
    """The kubeconfig is enough, and needed."""

    async def run() -> None:
        async with Embedded(rbac=True, with_controllers=False) as cluster:
            config = yaml.safe_load(cluster.kubeconfig())
            trusted = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
            server, context = config["clusters"][0]["cluster"]["server"], ssl.create_default_context(cadata=trusted)
            assert server.startswith("https://127.0.0.1:")
            jane = cluster.token_for(ApiUser("jane", ("system:authenticated",)))
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
                for token, status in ((config["users"][0]["user"]["token"], 200), (jane, 403), ("x", 401), ("", 403)):
                    headers = {"Authorization": f"Bearer {token}"} if token else {}
                    async with session.get(f"{server}/api/v1/pods", headers=headers) as answer:
                        assert answer.status == status
            assert yaml.safe_load(cluster.kubeconfig(jane))["users"][0]["user"] == {"token": jane}
            assert cluster.problems == []

    asyncio.run(run())
