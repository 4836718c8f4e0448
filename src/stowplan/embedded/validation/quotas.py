"""ResourceQuotas: the names and amounts of their limits, and their scopes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, invalid_value, required
from stowplan.embedded.validation import resource_names

_COMPUTE = ("cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory")
_PODS = ("pods", *_COMPUTE)
# The resources of Kubernetes that a quota with a scope can limit.
_OF_SCOPE: dict[str, tuple[str, ...]] = {
    "Terminating": _PODS, "NotTerminating": _PODS, "NotBestEffort": _PODS, "PriorityClass": _PODS,
    "CrossNamespacePodAffinity": _PODS, "BestEffort": ("pods",),
    "VolumeAttributesClass": ("persistentvolumeclaims", "requests.storage"),
}  # fmt: skip
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_WITH_VALUES = ("PriorityClass", "VolumeAttributesClass")
_MUST_EXIST = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating,"
    " ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


def check(quota: Document) -> Iterator[StatusCause]:
    spec = quota["spec"]
    for name, amount in sorted(spec.get("hard", {}).items()):
        yield from resource_names.check_in_quota(name, f"spec.hard[{name}]")
        yield from resource_names.check_amount(name, amount, f"spec.hard[{name}]")
    scopes = spec.get("scopes", [])
    for scope in scopes:
        yield from _scope(scope, spec, "spec.scopes", scopes, "spec.scopes", scopes)
    yield from _opposites(set(scopes), "spec.scopes", scopes)
    yield from _selector(spec)


def check_update(quota: Document, old: Document) -> Iterator[StatusCause]:
    scopes = quota["spec"].get("scopes", [])
    if set(scopes) != set(old["spec"].get("scopes", ())):
        yield invalid_value("spec.scopes", scopes or None, "field is immutable")


def _selector(spec: Document) -> Iterator[StatusCause]:
    if "scopeSelector" not in spec:
        return
    field, expressions = "spec.scopeSelector.matchExpressions", spec["scopeSelector"].get("matchExpressions", ())
    for each in expressions:
        scope, operator, values = each["scopeName"], each["operator"], each.get("values", [])
        yield from _scope(scope, spec, f"{field}.scopeName", scope, field, spec["scopeSelector"])
        if scope in _OF_SCOPE and scope not in _WITH_VALUES and operator != "Exists":
            yield invalid_value(f"{field}.operator", operator, _MUST_EXIST)
        if operator in ("In", "NotIn"):
            if not values:
                why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                yield required(f"{field}.values", why)
        elif operator not in ("Exists", "DoesNotExist"):
            yield invalid_value(f"{field}.operator", operator, "not a valid selector operator")
        elif values:
            why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            yield invalid_value(f"{field}.values", values, why)
    yield from _opposites({each["scopeName"] for each in expressions}, field, spec.get("scopes"))


def _scope(
    scope: str, spec: Document, field: str, found: Any, resources_field: str, selected: Any
) -> Iterator[StatusCause]:  # fmt: skip
    if scope not in _OF_SCOPE:
        yield invalid_value(field, found, "unsupported scope")
        return
    for name in sorted(spec.get("hard", {})):
        if resource_names.is_of_quotas(name) and name not in _OF_SCOPE[scope]:
            yield invalid_value(resources_field, selected, "unsupported scope applied to resource")


def _opposites(scopes: set[str], field: str, found: Any) -> Iterator[StatusCause]:
    for pair in _OPPOSITES:
        if pair <= scopes:
            yield invalid_value(field, found, "conflicting scopes")
