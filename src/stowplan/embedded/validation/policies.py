"""PodDisruptionBudgets and PriorityClasses."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, forbidden_field, invalid_value, unsupported
from stowplan.embedded.validation.workloads import check_at_most_all, check_int_or_percent

_HIGHEST = 1_000_000_000


def check_budget(budget: Document) -> Iterator[StatusCause]:
    spec = budget["spec"]
    if "minAvailable" in spec and "maxUnavailable" in spec:
        why = "minAvailable and maxUnavailable cannot be both set"
        yield invalid_value(
            "spec", {"minAvailable": spec["minAvailable"], "maxUnavailable": spec["maxUnavailable"]}, why
        )
    for name in ("minAvailable", "maxUnavailable"):
        if name in spec:
            yield from check_int_or_percent(f"spec.{name}", spec[name])
            yield from check_at_most_all(f"spec.{name}", spec[name])


def check_priority_class(document: Document) -> Iterator[StatusCause]:
    system = document["metadata"].get("name", "").startswith("system-")
    if document["value"] > _HIGHEST and not system:
        yield forbidden_field("value", f"maximum allowed value of a user defined priority is {_HIGHEST}")
    if document["preemptionPolicy"] not in ("Never", "PreemptLowerPriority"):
        yield unsupported("preemptionPolicy", document["preemptionPolicy"], ("Never", "PreemptLowerPriority"))


def check_priority_class_update(document: Document, old: Document) -> Iterator[StatusCause]:
    for name in ("value", "preemptionPolicy"):
        if document.get(name) != old.get(name):
            yield forbidden_field(name, "may not be changed in an update.")
