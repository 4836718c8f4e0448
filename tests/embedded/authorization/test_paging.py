"""Pages of lists with RBAC: a continue token shows and deletes nothing that its sender could not without it."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.embedded.authorization.guarded import ROOT, GuardedCluster

SECRETS, MINE = "/api/v1/secrets", "/api/v1/namespaces/mine"
MADE_UP = [
    pytest.param({"list": 1, "start": 0}, id="a number"),
    pytest.param({"list": "1", "start": 0}, id="a number in quotes"),
    pytest.param({"list": "", "start": 0}, id="no id"),
    pytest.param({"list": "x", "start": -1}, id="a start before the first"),
    pytest.param({"list": "x", "start": 1.5}, id="a start between two"),
    pytest.param({"list": "x", "start": 10**30}, id="a start far away"),
    pytest.param({"list": [], "start": 0}, id="a list"),
    pytest.param(5, id="a number alone"),
]


@pytest.fixture
def cluster() -> GuardedCluster:
    """The user bob may list ConfigMaps and list and delete Secrets in his namespace; the other Secrets are not his."""
    found = GuardedCluster()
    found.world.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}})
    for name in "abc":
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "kube-system"}}
        found.world.create(secret)
        found.world.create({**secret, "metadata": {"name": name, "namespace": "mine", "labels": {"name": name}}})
    group, where = "rbac.authorization.k8s.io", {"name": "bob", "namespace": "mine"}
    made = {"apiVersion": f"{group}/v1", "metadata": where}
    rule = {"apiGroups": [""], "resources": ["configmaps", "secrets"], "verbs": ["list", "deletecollection"]}
    found.world.create({**made, "kind": "Role", "rules": [rule]})
    role, bob = {"kind": "Role", "name": "bob"}, {"kind": "User", "name": "bob"}
    found.world.create({**made, "kind": "RoleBinding", "roleRef": role, "subjects": [bob]})
    return found


def first_page(cluster: GuardedCluster, path: str = SECRETS, **query: str) -> str:
    """The continue token of a list of the administrator."""
    code, found = cluster.ask("GET", path, token=ROOT, query={"limit": "1", **query})
    assert code == 200
    return str(found["metadata"]["continue"])


@pytest.mark.parametrize("place", MADE_UP)
def test_a_token_that_is_made_up(cluster: GuardedCluster, place: Any) -> None:
    first_page(cluster)
    token = base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")
    code, status = cluster.as_user("bob", "GET", f"{MINE}/secrets", query={"continue": token})
    assert (code, status["kind"]) in ((400, "Status"), (410, "Status"))


@pytest.mark.parametrize(
    ("of", "query", "path", "asked"),
    [
        pytest.param(SECRETS, {}, f"{MINE}/secrets", {}, id="another namespace"),
        pytest.param(f"{MINE}/secrets", {}, f"{MINE}/configmaps", {}, id="another kind"),
        pytest.param(f"{MINE}/secrets", {}, f"{MINE}/secrets", {"labelSelector": "name=a"}, id="other labels"),
        pytest.param(f"{MINE}/secrets", {}, f"{MINE}/secrets", {"fieldSelector": "metadata.name=a"}, id="other fields"),
        pytest.param(f"{MINE}/secrets", {"labelSelector": "name!=a"}, f"{MINE}/secrets", {}, id="no labels"),
    ],
)  # fmt: skip
def test_the_token_of_another_list(
    cluster: GuardedCluster, of: str, query: dict[str, str], path: str, asked: dict[str, str]
) -> None:
    token = first_page(cluster, of, **query)
    code, status = cluster.as_user("bob", "GET", path, query={**asked, "continue": token})
    assert (code, status["reason"]) == (410, "Expired")
    code, rest = cluster.ask("GET", of, token=ROOT, query={**query, "continue": token})
    assert (code, rest["kind"]) == (200, "SecretList"), "the list itself goes on"


def test_a_list_goes_on_for_who_may_read_it(cluster: GuardedCluster) -> None:
    query = {"limit": "2", "labelSelector": "name"}
    _, first = cluster.as_user("bob", "GET", f"{MINE}/secrets", query=query)
    query["continue"] = first["metadata"]["continue"]
    assert cluster.as_user("ann", "GET", f"{MINE}/secrets", query=query)[0] == 403
    code, second = cluster.as_user("bob", "GET", f"{MINE}/secrets", query=query)
    found = [item["metadata"]["name"] for page in (first, second) for item in page["items"]]
    assert (code, found) == (200, ["a", "b", "c"])


def test_ids_of_lists_cannot_be_guessed(cluster: GuardedCluster) -> None:
    tokens = [first_page(cluster) for _ in range(2)]
    ids = [json.loads(base64.urlsafe_b64decode(token + "=="))["list"] for token in tokens]
    assert len(set(ids)) == 2
    assert all(len(each) == len("00000000-0000-4000-8000-000000000000") for each in ids)


# --- deleting


def names(cluster: GuardedCluster, namespace: str) -> str:
    metadata = [each["metadata"] for each in cluster.world.all("secrets")]
    return "".join(each["name"] for each in metadata if each["namespace"] == namespace)


@pytest.mark.parametrize("of", [SECRETS, f"{MINE}/secrets"], ids=["another list", "the same list"])
def test_a_token_deletes_nothing(cluster: GuardedCluster, of: str) -> None:
    token = first_page(cluster, of)
    code, status = cluster.as_user("bob", "DELETE", f"{MINE}/secrets", query={"continue": token})
    assert (code, status["reason"]) == (400, "BadRequest")
    assert (names(cluster, "kube-system"), names(cluster, "mine")) == ("abc", "abc")


@pytest.mark.parametrize(
    ("query", "left"),
    [
        pytest.param({}, "", id="all"),
        pytest.param({"limit": "2"}, "c", id="the first two"),
        pytest.param({"labelSelector": "name!=b"}, "b", id="those with labels"),
        pytest.param({"fieldSelector": "metadata.name=b"}, "ac", id="one by its name"),
    ],
)
def test_only_what_is_asked_for_is_deleted(cluster: GuardedCluster, query: dict[str, str], left: str) -> None:
    code, found = cluster.as_user("bob", "DELETE", f"{MINE}/secrets", query=query)
    assert (code, found["kind"], "continue" in found["metadata"]) == (200, "SecretList", False)
    assert (names(cluster, "kube-system"), names(cluster, "mine")) == ("abc", left)
