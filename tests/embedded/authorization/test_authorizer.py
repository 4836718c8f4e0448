"""Who may do what, as a table; the index of subjects; and nobody grants what they do not have."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.embedded.authorization import access_request
from stowplan.embedded.authorization.access_request import AccessRequest
from stowplan.embedded.authorization.authorizer import RoleAuthorizer
from stowplan.embedded.authorization.escalation import EscalationGuard
from stowplan.embedded.authorization.role_index import RoleIndex
from stowplan.embedded.authorization.role_kinds import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from stowplan.embedded.authorization.rules import Rule
from stowplan.embedded.authorization.users import ADMIN, ANONYMOUS, ApiUser, account_groups, account_name, account_of
from stowplan.embedded.errors import ApiError
from stowplan.embedded.resources import BUILT_IN
from stowplan.embedded.store import DocumentStore

JANE = ApiUser("jane", ("devs", "system:authenticated"))
ROBOT = ApiUser(account_name("day", "robot"), account_groups("day"))


def rule(resources: str, verbs: str, group: str = "", names: str = "", urls: str = "") -> dict[str, Any]:
    found = {"apiGroups": [group] if resources else [], "resources": resources.split(), "verbs": verbs.split()}
    return found | {"resourceNames": names.split(), "nonResourceURLs": urls.split()}


class Roles:
    """A store with roles and bindings, and those who read it."""

    def __init__(self) -> None:
        self.store = DocumentStore()
        self.authorizer = RoleAuthorizer(RoleIndex(self.store))

    def role(self, name: str, *rules: dict[str, Any], namespace: str = "") -> None:
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        key = f"{namespace}/{name}" if namespace else name
        document = {"kind": "Role" if namespace else "ClusterRole", "metadata": metadata, "rules": list(rules)}
        self.store.put(ROLES if namespace else CLUSTER_ROLES, key, document)

    def bind(self, name: str, role: str, *subjects: dict[str, str], namespace: str = "") -> None:
        kind, _, role_name = role.partition("/")
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        document = {
            "kind": "RoleBinding" if namespace else "ClusterRoleBinding", "metadata": metadata,
            "roleRef": {"kind": kind, "name": role_name}, "subjects": list(subjects),
        }  # fmt: skip
        key = f"{namespace}/{name}" if namespace else name
        self.store.put(ROLE_BINDINGS if namespace else CLUSTER_ROLE_BINDINGS, key, document)

    def granting(self, *rules: dict[str, Any]) -> Roles:
        """The rules granted to jane, everywhere."""
        self.role("r", *rules)
        self.bind("b", "ClusterRole/r", {"kind": "User", "name": "jane"})
        return self

    def may(self, user: ApiUser, verb: str, resource: str = "pods", **more: str) -> bool:
        resource, _, subresource = resource.partition("/")
        return self.authorizer.allows(user, AccessRequest(verb, resource=resource, subresource=subresource, **more))


@pytest.mark.parametrize(
    ("rules", "verb", "asked", "allowed"),
    [
        pytest.param([rule("pods", "get")], "get", {}, True, id="the verb on the resource"),
        pytest.param([rule("pods", "get")], "list", {}, False, id="another verb"),
        pytest.param([rule("pods", "get")], "get", {"group": "apps"}, False, id="another group"),
        pytest.param([rule("pods", "get")], "get", {"subresource": "log"}, False, id="no subresource"),
        pytest.param([rule("pods/log", "get")], "get", {"subresource": "log"}, True, id="the subresource"),
        pytest.param([rule("pods/log", "get")], "get", {}, False, id="the subresource alone"),
        pytest.param([rule("*/log", "get")], "get", {"subresource": "log"}, True, id="a subresource of everything"),
        pytest.param([rule("*/log", "get")], "get", {"subresource": "status"}, False, id="another subresource"),
        pytest.param([rule("*", "get")], "get", {"subresource": "log"}, True, id="all resources, and what they have"),
        pytest.param([rule("pods", "*")], "whatever", {}, True, id="all verbs"),
        pytest.param([rule("pods", "get", "*")], "get", {"group": "apps"}, True, id="all groups"),
        pytest.param([rule("pods", "get", names="a b")], "get", {"name": "b"}, True, id="a name"),
        pytest.param([rule("pods", "get", names="a b")], "get", {"name": "c"}, False, id="another name"),
        pytest.param([rule("pods", "list", names="a")], "list", {}, False, id="a name, and none in the request"),
        pytest.param([rule("pods", "get"), rule("nodes", "list")], "list", {}, False, id="two rules are not mixed"),
        pytest.param([rule("", "get", urls="/metrics")], "get", {"path": "/metrics"}, True, id="a path"),
        pytest.param([rule("", "get", urls="/metrics")], "get", {"path": "/metrics/x"}, False, id="a longer path"),
        pytest.param([rule("", "get", urls="/metrics/*")], "get", {"path": "/metrics/x"}, True, id="all below a path"),
        pytest.param([rule("", "get", urls="*")], "post", {"path": "/x"}, False, id="another method"),
        pytest.param([rule("*", "*", "*")], "get", {"path": "/x"}, False, id="all resources, but no path"),
        pytest.param([rule("", "*", urls="*")], "get", {}, False, id="all paths, but no resource"),
    ],
)
def test_rules(rules: list[dict[str, Any]], verb: str, asked: dict[str, str], allowed: bool) -> None:
    request = AccessRequest(verb, resource="" if "path" in asked else "pods", **asked)
    assert Roles().granting(*rules).authorizer.allows(JANE, request) is allowed


def test_subjects_and_scopes() -> None:
    roles = Roles()
    roles.role("reader", rule("pods", "get"), namespace="day")
    roles.role("lister", rule("pods", "list"))
    roles.bind("a", "Role/reader", {"kind": "Group", "name": "devs"}, namespace="day")
    roles.bind("b", "ClusterRole/lister", {"kind": "ServiceAccount", "name": "robot"}, namespace="day")
    assert roles.may(JANE, "get", namespace="day")
    assert not roles.may(JANE, "get", namespace="night")
    assert not roles.may(JANE, "get"), "a namespace is not the cluster"
    assert not roles.may(ApiUser("devs"), "get", namespace="day"), "a user is no group"
    assert roles.may(ROBOT, "list", namespace="day"), "without a namespace, an account of the binding's"
    assert not roles.may(ApiUser(account_name("night", "robot")), "list", namespace="day")
    roles.bind("c", "ClusterRole/lister", {"kind": "ServiceAccount", "name": "robot", "namespace": "day"})
    assert roles.may(ROBOT, "list")
    assert roles.may(ADMIN, "anything", "at/all")
    assert not roles.may(ANONYMOUS, "get", namespace="day")
    assert account_of(ROBOT.name) == ("day", "robot")
    assert account_of("jane") is None


def test_reasons() -> None:
    roles = Roles()
    roles.role("reader", rule("pods", "get"), namespace="day")
    roles.bind("a", "Role/reader", {"kind": "ServiceAccount", "name": "robot", "namespace": "day"}, namespace="day")
    roles.bind("b", "ClusterRole/lost", {"kind": "User", "name": "jane"}, {"kind": "Group", "name": "devs"})
    found = roles.authorizer.decide(ROBOT, AccessRequest("get", resource="pods", namespace="day"))
    assert found.reason == 'RBAC: allowed by RoleBinding "a/day" of Role "reader" to ServiceAccount "robot/day"'
    found = roles.authorizer.decide(JANE, AccessRequest("get", resource="pods"))
    assert (found.allowed, found.reason) == (False, 'RBAC: clusterrole.rbac.authorization.k8s.io "lost" not found')
    assert roles.authorizer.decide(ROBOT, AccessRequest("list", resource="pods")).reason == ""


def test_changes_count_at_once() -> None:
    roles = Roles().granting(rule("pods", "get"))
    assert roles.may(JANE, "get")
    roles.role("r", rule("pods", "list"))
    assert (roles.may(JANE, "get"), roles.may(JANE, "list")) == (False, True)
    roles.bind("b", "ClusterRole/r", {"kind": "User", "name": "ann"})
    assert (roles.may(JANE, "list"), roles.may(ApiUser("ann"), "list")) == (False, True)
    roles.store.remove(CLUSTER_ROLES, "r")
    assert not roles.may(ApiUser("ann"), "list")
    roles.role("r", rule("pods", "list"))
    roles.store.remove(CLUSTER_ROLE_BINDINGS, "b")
    assert not roles.may(ApiUser("ann"), "list")
    assert RoleAuthorizer(RoleIndex(roles.store)).index._granted == roles.authorizer.index._granted == {}


class _Untouchable(dict[str, Any]):
    """A document that notes who reads it."""

    reads = 0

    def __getitem__(self, key: str) -> Any:
        type(self).reads += 1
        return super().__getitem__(key)


def test_a_decision_looks_at_no_bindings_of_others() -> None:
    roles = Roles().granting(rule("pods", "get"))
    for number in range(50):
        subject = {"kind": "User", "name": f"u{number}"}
        document = {
            "kind": "ClusterRoleBinding",
            "roleRef": {"kind": "ClusterRole", "name": "r"},
            "subjects": [subject],
        }
        roles.store.put(CLUSTER_ROLE_BINDINGS, f"b{number}", _Untouchable(document | {"metadata": {"name": "x"}}))
    _Untouchable.reads = 0
    assert roles.may(JANE, "get")
    assert not roles.may(JANE, "list")
    assert _Untouchable.reads == 0
    assert roles.may(ApiUser("u7"), "get")
    assert _Untouchable.reads > 0, "the document can tell"


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        pytest.param("GET", "/api/v1/namespaces/day/pods/a", {}, AccessRequest("get", "", "pods", "", "a", "day"),
                     id="an object"),
        pytest.param("HEAD", "/api/v1/nodes/a", {}, AccessRequest("get", "", "nodes", name="a"), id="its head"),
        pytest.param("GET", "/api/v1/pods", {}, AccessRequest("list", "", "pods"), id="a list"),
        pytest.param("GET", "/api/v1/pods", {"watch": "1"}, AccessRequest("watch", "", "pods"), id="a watch"),
        pytest.param("GET", "/api/v1/pods", {"watch": "false"}, AccessRequest("list", "", "pods"), id="no watch"),
        pytest.param("GET", "/api/v1/pods", {"fieldSelector": "a=b,metadata.name=x"},
                     AccessRequest("list", "", "pods", name="x"), id="a list of one"),
        pytest.param("GET", "/api/v1/pods", {"fieldSelector": "metadata.name!=x"}, AccessRequest("list", "", "pods"),
                     id="a list of all but one"),
        pytest.param("POST", "/apis/apps/v1/namespaces/day/deployments", {},
                     AccessRequest("create", "apps", "deployments", namespace="day"), id="a new object"),
        pytest.param("PUT", "/api/v1/nodes/a/status", {}, AccessRequest("update", "", "nodes", "status", "a"),
                     id="a status"),
        pytest.param("DELETE", "/api/v1/namespaces/day/pods", {},
                     AccessRequest("deletecollection", "", "pods", namespace="day"), id="all objects"),
        pytest.param("DELETE", "/api/v1/namespaces/day", {},
                     AccessRequest("delete", "", "namespaces", name="day", namespace="day"), id="a namespace"),
        pytest.param("PUT", "/api/v1/namespaces/day/finalize", {},
                     AccessRequest("update", "", "namespaces", "finalize", "day", "day"), id="of a namespace"),
        pytest.param("GET", "/api/v1/namespaces", {}, AccessRequest("list", "", "namespaces"), id="all namespaces"),
        pytest.param("GET", "/apis/apps/v1", {}, AccessRequest("get", path="/apis/apps/v1"), id="discovery"),
        pytest.param("GET", "/version", {}, AccessRequest("get", path="/version"), id="a path"),
        pytest.param("POST", "/", {}, AccessRequest("post", path="/"), id="the root"),
    ],
)  # fmt: skip
def test_what_a_request_wants(method: str, path: str, query: dict[str, str], expected: AccessRequest) -> None:
    assert access_request.of_http(method, path, query) == expected


def test_the_words_of_a_refusal() -> None:
    assert AccessRequest("list", resource="pods", namespace="default").refusal("x") == (
        'User "x" cannot list resource "pods" in API group "" in the namespace "default"'
    )
    assert AccessRequest("get", "apps", "deployments", "scale", "d").refusal("<x>") == (
        'User "&lt;x&gt;" cannot get resource "deployments/scale" in API group "apps" at the cluster scope'
    )
    assert AccessRequest("get", path="/metrics").refusal("x") == 'User "x" cannot get path "/metrics"'


def refused(roles: Roles, kind: str, document: dict[str, Any], user: ApiUser | None = JANE) -> str:
    (resource,) = (each for each in BUILT_IN if each.kind == kind)
    try:
        EscalationGuard(roles.authorizer).check(resource, document, user)
    except ApiError as error:
        return error.message
    return ""


@pytest.mark.parametrize(
    ("owned", "wanted", "missing"),
    [
        pytest.param([rule("pods", "get list")], rule("pods", "get"), [], id="less"),
        pytest.param([rule("pods", "get"), rule("pods", "list")], rule("pods", "get list"), [], id="in two rules"),
        pytest.param([rule("pods", "get")], rule("pods nodes", "get list"),
                     ['{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}',
                      '{APIGroups:[""], Resources:["pods"], Verbs:["list"]}'], id="more"),
        pytest.param([rule("pods", "*")], rule("pods", "*"), [], id="all verbs"),
        pytest.param([rule("pods", "get list")], rule("pods", "*"),
                     ['{APIGroups:[""], Resources:["pods"], Verbs:["*"]}'], id="many verbs are not all"),
        pytest.param([rule("*/status", "get")], rule("pods/status", "get"), [], id="a subresource of all"),
        pytest.param([rule("pods", "get", names="a b")], rule("pods", "get", names="a"), [], id="a name of two"),
        pytest.param([rule("pods", "get", names="a")], rule("pods", "get"),
                     ['{APIGroups:[""], Resources:["pods"], Verbs:["get"]}'], id="all names"),
        pytest.param([rule("pods", "get", names="a")], rule("pods", "get", names="b"),
                     ['{APIGroups:[""], Resources:["pods"], ResourceNames:["b"], Verbs:["get"]}'], id="another name"),
        pytest.param([rule("", "get", urls="/a/*")], rule("", "get", urls="/a/b /c"),
                     ['{NonResourceURLs:["/c"], Verbs:["get"]}'], id="paths"),
    ],
)  # fmt: skip
def test_nobody_writes_a_role_with_more_than_they_have(
    owned: list[dict[str, Any]], wanted: dict[str, Any], missing: list[str]
) -> None:
    said = refused(Roles().granting(*owned), "ClusterRole", {"metadata": {"name": "new"}, "rules": [wanted]})
    prefix = 'clusterroles.rbac.authorization.k8s.io "new" is forbidden: user "jane" (groups=["devs" '
    prefix += '"system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
    assert said == (prefix + "\n".join(missing) if missing else "")


def wide(groups: int, resources: int, verbs: int, names: int = 0) -> dict[str, Any]:
    """A rule with that many values in its lists."""
    return {
        "apiGroups": [f"g{each}" for each in range(groups)], "resources": [f"r{each}" for each in range(resources)],
        "verbs": [f"v{each}" for each in range(verbs)], "resourceNames": [f"n{each}" for each in range(names)],
    }  # fmt: skip


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param([wide(1000, 1000, 1000, 1000)], id="one rule of a million million"),
        pytest.param([wide(1, 10, 1001)], id="one rule of a little more than the most"),
        pytest.param([wide(10, 10, 60), wide(10, 10, 60)], id="two rules together"),
        pytest.param([{"verbs": ["get"] * 200, "nonResourceURLs": ["/x"] * 200}], id="paths"),
    ],
)
def test_rules_that_stand_for_too_much_are_refused_unseen(wanted: list[dict[str, Any]]) -> None:
    role = {"metadata": {"name": "new"}, "rules": wanted}
    said = refused(Roles().granting(rule("pods", "get")), "ClusterRole", role)
    assert "its rules have more than 10000 combinations of API groups, resources, verbs and names" in said
    assert len(said) < 500
    assert refused(Roles().granting(*wanted), "ClusterRole", role) == "", "one rule covers each of them"


def test_a_long_list_of_what_is_missing_is_cut() -> None:
    role = {"metadata": {"name": "new"}, "rules": [wide(10, 10, 100)]}
    said = refused(Roles().granting(rule("pods", "get")), "ClusterRole", role)
    assert "is attempting to grant RBAC permissions not currently held:\n{APIGroups:" in said
    assert said.endswith(" more characters)")
    assert len(said) < 11_000


def test_a_rule_for_resources_and_paths_is_covered_only_as_a_whole() -> None:
    """It is not valid, but it is compared before it is validated."""
    both = {**rule("secrets", "get"), "nonResourceURLs": ["/x"]}
    said = refused(
        Roles().granting(rule("", "get", urls="/x")), "ClusterRole", {"metadata": {"name": "new"}, "rules": [both]}
    )
    assert said.endswith('{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}')


def test_the_ways_around() -> None:
    new = {"metadata": {"name": "new"}, "rules": [rule("secrets", "get")]}
    rbac = "rbac.authorization.k8s.io"
    assert refused(Roles().granting(rule("pods", "get")), "ClusterRole", new)
    assert not refused(Roles().granting(rule("clusterroles", "escalate", rbac, "new")), "ClusterRole", new)
    assert refused(Roles().granting(rule("clusterroles", "escalate", rbac, "old")), "ClusterRole", new)
    assert not refused(Roles(), "ClusterRole", new, ADMIN)
    assert not refused(Roles(), "ClusterRole", new, None), "a controller"
    binding = {"metadata": {"name": "give", "namespace": "day"}, "roleRef": {"kind": "ClusterRole", "name": "big"}}
    for more, said in ((rule("pods", "get"), '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'),
                       (rule("secrets", "get"), ""), (rule("clusterroles", "bind", rbac, "big"), "")):  # fmt: skip
        roles = Roles().granting(more)
        roles.role("big", rule("secrets", "get"))
        assert refused(roles, "RoleBinding", binding).endswith(said) is True
        assert bool(refused(roles, "RoleBinding", binding)) is bool(said)
    assert refused(Roles(), "RoleBinding", binding) == 'rolebindings.rbac.authorization.k8s.io "big" not found'


def test_only_who_has_everything_aggregates() -> None:
    collecting = {"metadata": {"name": "new"}, "aggregationRule": {"clusterRoleSelectors": [{}]}}
    said = 'clusterroles.rbac.authorization.k8s.io "new" is forbidden: '
    said += "must have cluster-admin privileges to use the aggregationRule"
    assert refused(Roles().granting(rule("pods", "*")), "ClusterRole", collecting) == said
    assert refused(Roles().granting(rule("*", "*", "*")), "ClusterRole", collecting) == "", "that has escalate in it"


def test_all_rules_of_a_user() -> None:
    roles = Roles().granting(rule("pods", "get"))
    roles.bind("lost", "ClusterRole/lost", {"kind": "User", "name": "jane"})
    found, lost = roles.authorizer.rules(JANE, "day")
    assert found == [Rule(("get",), ("",), ("pods",))]
    assert lost == ['clusterrole.rbac.authorization.k8s.io "lost" not found']
