"""Defaults of the kinds that need a line or two."""

from __future__ import annotations

import base64
from typing import Any, TypeAlias

from stowplan.embedded import crds
from stowplan.embedded.admission.context import AdmissionContext
from stowplan.embedded.structural import has_rules

Document: TypeAlias = dict[str, Any]

_LABEL = "kubernetes.io/metadata.name"


def namespace(document: Document) -> None:
    if name := document["metadata"].get("name"):
        document["metadata"].setdefault("labels", {})[_LABEL] = name


def admit_namespace(document: Document, _around: AdmissionContext) -> None:
    document["metadata"].setdefault("labels", {})[_LABEL] = document["metadata"]["name"]
    document["spec"] = {"finalizers": ["kubernetes"]}
    document["status"] = {"phase": "Active"}


def admit_node(document: Document, _around: AdmissionContext) -> None:
    """What a kubelet can use is all there is, unless it says otherwise."""
    status = document.setdefault("status", {})
    if "capacity" in status:
        status.setdefault("allocatable", dict(status["capacity"]))


def secret(document: Document) -> None:
    document.setdefault("type", "Opaque")
    for key, value in document.pop("stringData", {}).items():
        document.setdefault("data", {})[key] = base64.b64encode(value.encode()).decode()


def priority_class(document: Document) -> None:
    document.setdefault("preemptionPolicy", "PreemptLowerPriority")
    document.setdefault("value", 0)


def definition(document: Document) -> None:
    spec = document["spec"]
    names = spec.setdefault("names", {})
    if kind := names.get("kind"):
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")
    spec.setdefault("conversion", {}).setdefault("strategy", "None")


def admit_definition(document: Document, around: AdmissionContext) -> None:
    document["status"] = crds.established(document, around.now)
    if has_rules(document["spec"]["versions"]):
        around.asked.warnings.append("x-kubernetes-validations are not evaluated by the embedded cluster")
