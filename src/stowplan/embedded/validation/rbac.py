"""Roles and bindings: what a rule must have, and which subjects and roles a binding can name."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, invalid_value, required, unsupported
from stowplan.embedded.validation.metadata import (
    check_label_key,
    check_label_value,
    check_labels,
    check_name,
    check_path_segment,
)

_GROUP = "rbac.authorization.k8s.io"
_KINDS = ("ServiceAccount", "User", "Group")


def check_role(role: Document) -> Iterator[StatusCause]:
    for number, rule in enumerate(role.get("rules", ())):
        yield from _rule(f"rules[{number}]", rule, namespaced=True)


def check_cluster_role(role: Document) -> Iterator[StatusCause]:
    for number, rule in enumerate(role.get("rules", ())):
        yield from _rule(f"rules[{number}]", rule, namespaced=False)
    if "aggregationRule" not in role:
        return
    field, selectors = "aggregationRule.clusterRoleSelectors", role["aggregationRule"].get("clusterRoleSelectors", ())
    if not selectors:
        yield required(field, "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for number, selector in enumerate(selectors):
        problems = list(_selector(f"{field}[{number}]", selector))
        yield from problems
        if problems:
            yield invalid_value(f"{field}[{number}]", None, "invalid label selector.")


def _rule(field: str, rule: Document, *, namespaced: bool) -> Iterator[StatusCause]:
    if not rule.get("verbs"):
        yield required(f"{field}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        if namespaced:
            why = "namespaced rules cannot apply to non-resource URLs"
            yield invalid_value(f"{field}.nonResourceURLs", urls, why)
        if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
            why = "rules cannot apply to both regular resources and non-resource URLs"
            yield invalid_value(f"{field}.nonResourceURLs", urls, why)
        return
    for name, what in (("apiGroups", "api group"), ("resources", "resource")):
        if not rule.get(name):
            yield required(f"{field}.{name}", f"resource rules must supply at least one {what}")


def _selector(field: str, selector: Document) -> Iterator[StatusCause]:
    yield from check_labels(f"{field}.matchLabels", selector.get("matchLabels", {}))
    for number, each in enumerate(selector.get("matchExpressions", ())):
        yield from _expression(f"{field}.matchExpressions[{number}]", each)


def _expression(field: str, expression: Document) -> Iterator[StatusCause]:
    operator, values = expression["operator"], expression.get("values", ())
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            why = "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield StatusCause(f"{field}.values", why, "FieldValueForbidden")
    else:
        yield invalid_value(f"{field}.operator", operator, "not a valid selector operator")
    yield from check_label_key(f"{field}.key", expression["key"])
    for number, value in enumerate(values):
        yield from check_label_value(f"{field}.values[{number}]", value)


def check_role_binding(binding: Document) -> Iterator[StatusCause]:
    yield from _binding(binding, ("Role", "ClusterRole"), namespaced=True)


def check_cluster_role_binding(binding: Document) -> Iterator[StatusCause]:
    yield from _binding(binding, ("ClusterRole",), namespaced=False)


def _binding(binding: Document, kinds: tuple[str, ...], *, namespaced: bool) -> Iterator[StatusCause]:
    role = binding["roleRef"]
    if role["apiGroup"] != _GROUP:
        yield unsupported("roleRef.apiGroup", role["apiGroup"], (_GROUP,))
    if role["kind"] not in kinds:
        yield unsupported("roleRef.kind", role["kind"], kinds)
    if role["name"]:
        yield from check_path_segment("roleRef.name", role["name"])
    else:
        yield required("roleRef.name")
    for number, subject in enumerate(binding.get("subjects", ())):
        yield from _subject(f"subjects[{number}]", subject, namespaced=namespaced)


def _subject(field: str, subject: Document, *, namespaced: bool) -> Iterator[StatusCause]:
    kind, name, group = subject["kind"], subject["name"], subject.get("apiGroup", "")
    if not name:
        yield required(f"{field}.name")
    if kind not in _KINDS:
        yield unsupported(f"{field}.kind", kind, _KINDS)
        return
    if kind == "ServiceAccount" and name:
        yield from check_name(f"{field}.name", name)
    wanted = "" if kind == "ServiceAccount" else _GROUP
    if group != wanted:
        yield unsupported(f"{field}.apiGroup", group, (wanted,))
    if kind == "ServiceAccount" and not namespaced and not subject.get("namespace"):
        yield required(f"{field}.namespace")


def check_binding_update(binding: Document, old: Document) -> Iterator[StatusCause]:
    role = binding["roleRef"]
    if role != old["roleRef"]:
        shown = {"APIGroup": role["apiGroup"], "Kind": role["kind"], "Name": role["name"]}
        yield invalid_value("roleRef", shown, "cannot change roleRef")
