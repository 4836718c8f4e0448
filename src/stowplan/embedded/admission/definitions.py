"""CustomResourceDefinitions: default names, and the status of an established definition."""

from __future__ import annotations

from stowplan.embedded.admission.context import AdmissionContext
from stowplan.embedded.documents import Document
from stowplan.embedded.schema import custom_resources
from stowplan.embedded.schema.structural import has_rules


def defaults(document: Document) -> None:
    spec = document["spec"]
    names = spec.setdefault("names", {})
    if kind := names.get("kind"):
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")
    spec.setdefault("conversion", {}).setdefault("strategy", "None")


def admit(document: Document, context: AdmissionContext) -> None:
    document["status"] = custom_resources.established(document, context.now)
    if has_rules(document["spec"]["versions"]):
        context.options.warnings.append("x-kubernetes-validations are not evaluated by the embedded cluster")
