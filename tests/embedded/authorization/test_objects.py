"""Roles and bindings as objects: defaults, refusals in the words of kube-apiserver 1.36, tables, aggregated roles."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.embedded.authorization import default_roles
from stowplan.embedded.authorization.role_aggregation import RoleAggregation
from stowplan.embedded.cluster import Embedded
from tests.embedded.client import Client

RBAC = "/apis/rbac.authorization.k8s.io/v1"
ROLES, BINDINGS = f"{RBAC}/namespaces/default/roles", f"{RBAC}/namespaces/default/rolebindings"
CLUSTER_ROLES, CLUSTER_BINDINGS = f"{RBAC}/clusterroles", f"{RBAC}/clusterrolebindings"
GROUP = "rbac.authorization.k8s.io"
READER = {"metadata": {"name": "reader"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def bound(role: str = "Role", **subject: str) -> dict[str, Any]:
    return {"metadata": {"name": "b"}, "roleRef": {"kind": role, "name": "reader"}, "subjects": [subject]}


def rule(**fields: list[str]) -> dict[str, Any]:
    return {"metadata": {"name": "r"}, "rules": [fields]}


@pytest.mark.parametrize(
    ("path", "document", "said"),
    [
        pytest.param(ROLES, rule(apiGroups=[""], resources=["pods"]),
                     "rules[0].verbs: Required value: verbs must contain at least one value", id="no verbs"),
        pytest.param(ROLES, rule(verbs=["get"]),
                     "rules[0].apiGroups: Required value: resource rules must supply at least one api group, "
                     "rules[0].resources: Required value: resource rules must supply at least one resource",
                     id="no groups and no resources"),
        pytest.param(ROLES, rule(verbs=["get"], nonResourceURLs=["/x"]),
                     'rules[0].nonResourceURLs: Invalid value: ["/x"]: '
                     "namespaced rules cannot apply to non-resource URLs", id="a path in a namespace"),
        pytest.param(CLUSTER_ROLES, rule(verbs=["get"], nonResourceURLs=["/x"], resources=["pods"]),
                     "rules cannot apply to both regular resources and non-resource URLs", id="a path and resources"),
        pytest.param(ROLES, {"metadata": {"name": "a%b"}},
                     """metadata.name: Invalid value: "a%b": may not contain '%'""", id="a name that is no path"),
        pytest.param(CLUSTER_ROLES, {"metadata": {"name": "r"}, "aggregationRule": {}},
                     "aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required "
                     "if aggregationRule is non-nil", id="an aggregation of nothing"),
        pytest.param(CLUSTER_ROLES, {"metadata": {"name": "r"}, "aggregationRule": {"clusterRoleSelectors": [
            {"matchExpressions": [{"key": "a", "operator": "Foo"}]}]}},
                     'matchExpressions[0].operator: Invalid value: "Foo": not a valid selector operator, '
                     "aggregationRule.clusterRoleSelectors[0]: Invalid value: null: invalid label selector.",
                     id="a selector that is none"),
        pytest.param(CLUSTER_BINDINGS, bound("Role", kind="User", name="u"),
                     'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
                     id="a Role for the whole cluster"),
        pytest.param(BINDINGS, bound("Nope", kind="User", name="u"),
                     'roleRef.kind: Unsupported value: "Nope": supported values: "Role", "ClusterRole"',
                     id="an unknown kind of role"),
        pytest.param(BINDINGS, bound() | {"roleRef": {"kind": "Role"}, "subjects": []}, "roleRef.name: Required value",
                     id="no role"),
        pytest.param(BINDINGS, bound(kind="Dog", name="u"),
                     'subjects[0].kind: Unsupported value: "Dog": supported values: "ServiceAccount", "User", "Group"',
                     id="an unknown subject"),
        pytest.param(BINDINGS, bound(kind="User", name="u", apiGroup="x"),
                     f'subjects[0].apiGroup: Unsupported value: "x": supported values: "{GROUP}"', id="another group"),
        pytest.param(BINDINGS, bound(kind="ServiceAccount", name="s", apiGroup="x"),
                     'subjects[0].apiGroup: Unsupported value: "x": supported values: ""',
                     id="an account of another group"),
        pytest.param(BINDINGS, bound(kind="Group"), "subjects[0].name: Required value", id="no name"),
        pytest.param(CLUSTER_BINDINGS, bound("ClusterRole", kind="ServiceAccount", name="s"),
                     "subjects[0].namespace: Required value", id="an account of no namespace"),
    ],
)  # fmt: skip
def test_what_is_refused(path: str, document: dict[str, Any], said: str) -> None:
    code, status = Client().ask("POST", path, document)
    assert (code, status["reason"]) == (422, "Invalid")
    assert said in status["message"]


def test_defaults_and_the_role_that_stays() -> None:
    client = Client()
    made = bound("Role", kind="User", name="u")
    made["subjects"] += [{"kind": "Group", "name": "g"}, {"kind": "ServiceAccount", "name": "s"}]
    code, found = client.ask("POST", BINDINGS, made)
    assert code == 201
    assert found["roleRef"]["apiGroup"] == GROUP
    assert [each.get("apiGroup") for each in found["subjects"]] == [GROUP, GROUP, None]
    code, status = client.ask("PUT", f"{BINDINGS}/b", {**found, "roleRef": {"kind": "ClusterRole", "name": "view"}})
    shown = '{"APIGroup":"rbac.authorization.k8s.io","Kind":"ClusterRole","Name":"view"}'
    assert (code, f"roleRef: Invalid value: {shown}: cannot change roleRef" in status["message"]) == (422, True)
    assert client.ask("PUT", f"{BINDINGS}/b", {**found, "subjects": []})[0] == 200


def test_tables() -> None:
    client = Client()
    made = bound(kind="User", name="u")
    made["subjects"] += [{"kind": "User", "name": "v"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]
    client.ask("POST", BINDINGS, made)
    client.ask("POST", ROLES, READER)
    _, table = client.ask("GET", BINDINGS, accept=TABLE)
    assert [each["name"] for each in table["columnDefinitions"]] == [
        "Name", "Role", "Age", "Users", "Groups", "ServiceAccounts",
    ]  # fmt: skip
    assert table["rows"][0]["cells"] == ["b", "Role/reader", "0s", "u, v", "", "n/s"]
    _, table = client.ask("GET", ROLES, accept=TABLE)
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Created At"]


def test_aggregated_roles_follow_those_that_they_select() -> None:
    client = Client()
    client.world.controllers._controllers.append(RoleAggregation(client.world.store))
    client.world.controllers._queued.append({})
    selectors = [{"matchLabels": {"to": "all"}}, {"matchExpressions": [{"key": "more", "operator": "Exists"}]}]
    whole = {
        "metadata": {"name": "all", "labels": {"to": "all"}},
        "aggregationRule": {"clusterRoleSelectors": selectors},
    }
    client.ask("POST", CLUSTER_ROLES, whole)
    pods, nodes = READER["rules"][0], {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}  # type: ignore[index]

    def rules_after(name: str, labels: dict[str, str], *rules: Any) -> Any:
        document = {"metadata": {"name": name, "labels": labels}, "rules": list(rules)}
        code, _ = client.ask("POST", CLUSTER_ROLES, document)
        if code == 409:
            client.ask("PUT", f"{CLUSTER_ROLES}/{name}", document)
        client.world.controllers.settle(client.world.now)
        return client.ask("GET", f"{CLUSTER_ROLES}/all")[1].get("rules")

    assert rules_after("b", {"to": "all"}, nodes) == [nodes]
    assert rules_after("a", {"more": "x"}, pods, nodes) == [nodes, pods]
    assert rules_after("c", {"to": "none"}, {**pods, "verbs": ["list"]}) == [nodes, pods]
    assert rules_after("b", {}, nodes) == [pods, nodes]


def test_the_roles_of_a_new_cluster() -> None:
    cluster = Embedded(with_controllers=False)
    for document in default_roles.documents():
        resource = cluster.api.catalogue.of_kind(document["apiVersion"], document["kind"])
        assert resource is not None
        namespace = document["metadata"].get("namespace", "")
        assert cluster.api.get(resource, namespace, document["metadata"]["name"])
    rules = {each["metadata"]["name"]: each.get("rules", []) for each in default_roles.documents()}
    assert all(rule in rules["edit"] for rule in rules["view"])
    assert all(rule in rules["admin"] for rule in rules["edit"])
    assert len(rules["admin"]) > len(rules["edit"]) > len(rules["view"])


def test_a_seed_makes_the_same_cluster_with_and_without_default_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Embedded(seed=7, with_controllers=False).api.generator.random()
    monkeypatch.setattr(default_roles, "documents", tuple)
    assert Embedded(seed=7, with_controllers=False).api.generator.random() == drawn
