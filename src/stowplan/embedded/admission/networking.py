"""Ingresses, Endpoints and EndpointSlices: the default class, and what ports are by default."""

from __future__ import annotations

from stowplan.embedded.admission.context import AdmissionContext
from stowplan.embedded.documents import Document
from stowplan.embedded.timestamps import seconds

_CLASSES = "ingressclasses.networking.k8s.io"
DEFAULT_CLASS, _OLD_CLASS = "ingressclass.kubernetes.io/is-default-class", "kubernetes.io/ingress.class"


def endpoints(document: Document) -> None:
    for subset in document.get("subsets", ()):
        for port in subset.get("ports", ()):
            port.setdefault("protocol", "TCP")


def endpoint_slice(document: Document) -> None:
    document.setdefault("endpoints", [])
    for port in document.get("ports", ()):
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def ingress_class(document: Document) -> None:
    if "parameters" in document["spec"]:
        document["spec"]["parameters"].setdefault("scope", "Cluster")


def admit_ingress(ingress: Document, context: AdmissionContext) -> None:
    """Give an ingress without a class the default one: the newest, and the first by name of several."""
    ingress["status"] = {"loadBalancer": {}}
    if "ingressClassName" in ingress["spec"] or _OLD_CLASS in ingress["metadata"].get("annotations", {}):
        return
    found = [stored.document["metadata"] for stored in context.store.all(_CLASSES)]
    default = [each for each in found if each.get("annotations", {}).get(DEFAULT_CLASS) == "true"]
    if default:
        first = min(default, key=lambda each: (-seconds(each.get("creationTimestamp", "")), each["name"]))
        ingress["spec"]["ingressClassName"] = first["name"]
