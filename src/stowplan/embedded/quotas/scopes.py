"""The scopes of a quota: which pods, or claims, it is about."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from stowplan.embedded.admission.pods import quality
from stowplan.embedded.documents import Document
from stowplan.embedded.quotas.usage import CLAIMS, PODS


class Scope(msgspec.Struct, frozen=True):
    """One condition of a quota: a scope's name, and how its value is compared."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()

    def matches(self, collection: str, document: Document) -> bool:
        if collection == CLAIMS:
            return self.name == "VolumeAttributesClass" and any(map(self._compares, _attributes_classes(document)))
        if collection != PODS:
            return False
        spec = document["spec"]
        match self.name:
            case "Terminating" | "NotTerminating":
                return ends(document) == (self.name == "Terminating")
            case "BestEffort" | "NotBestEffort":
                return (quality(spec) == "BestEffort") == (self.name == "BestEffort")
            case "PriorityClass":
                return self._compares(spec.get("priorityClassName", ""))
            case "CrossNamespacePodAffinity":
                return any(map(_looks_elsewhere, _pod_terms(spec)))
        return False

    def _compares(self, value: str) -> bool:
        match self.operator:
            case "In":
                return value in self.values if value else False
            case "NotIn":
                return value not in self.values or not value
            case "Exists":
                return bool(value)
            case "DoesNotExist":
                return not value
        return False


def scopes_of(spec: Document) -> tuple[Scope, ...]:
    """The scopes of a quota's spec. All of them must match."""
    plain = [Scope(name) for name in spec.get("scopes", ())]
    selected = spec.get("scopeSelector", {}).get("matchExpressions", ())
    return (
        *plain,
        *(Scope(each["scopeName"], each["operator"], tuple(each.get("values", ()))) for each in selected),
    )


def ends(pod: Document) -> bool:
    """True if a pod may run for a limited time only."""
    deadline = pod["spec"].get("activeDeadlineSeconds")
    return deadline is not None and deadline >= 0


def _pod_terms(spec: Document) -> Iterator[Document]:
    affinity = spec.get("affinity", {})
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind, {})
        yield from terms.get("requiredDuringSchedulingIgnoredDuringExecution", ())
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
            yield weighted.get("podAffinityTerm", {})


def _looks_elsewhere(term: Document) -> bool:
    """True if an affinity term is about pods of other namespaces."""
    return bool(term.get("namespaces")) or term.get("namespaceSelector") is not None


def _attributes_classes(claim: Document) -> set[str]:
    """The attributes classes that a claim has, wants, or is about to get; "" if it has none."""
    status = claim.get("status", {})
    names = {
        claim["spec"].get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        status.get("modifyVolumeStatus", {}).get("targetVolumeAttributesClassName"),
    }
    return {name for name in names if name} or {""}
