"""Services: defaults, a cluster IP, and node ports."""

from __future__ import annotations

from stowplan.embedded.admission.context import AdmissionContext
from stowplan.embedded.documents import Document

_NODE_PORTS = range(30000, 32768)
_WITH_NODE_PORTS = ("NodePort", "LoadBalancer")


def defaults(service: Document) -> None:
    spec = service["spec"]
    spec.setdefault("sessionAffinity", "None")
    spec.setdefault("type", "ClusterIP")
    for port in spec.get("ports", ()):
        port.setdefault("protocol", "TCP")
        if "port" in port:
            port.setdefault("targetPort", port["port"])
    if spec["type"] == "ExternalName":
        return
    spec.setdefault("internalTrafficPolicy", "Cluster")
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec["type"] in _WITH_NODE_PORTS:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def admit(service: Document, context: AdmissionContext) -> None:
    """Give the service a free address of 10.96.0.0/16, and free node ports if its type has them."""
    spec = service["spec"]
    service["status"] = {"loadBalancer": {}}
    if spec["type"] == "ExternalName":
        return
    others = [each.document["spec"] for each in context.store.all("services")]
    taken = {each.get("clusterIP") for each in others}
    while "clusterIP" not in spec:
        candidate = f"10.96.{context.generator.randrange(1, 256)}.{context.generator.randrange(1, 255)}"
        if candidate not in taken:
            spec["clusterIP"] = candidate
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if spec["type"] in _WITH_NODE_PORTS and spec.get("allocateLoadBalancerNodePorts", True):
        used = {port.get("nodePort") for each in others for port in each.get("ports", ())}
        for port in spec.get("ports", ()):
            free = next(number for number in _NODE_PORTS if number not in used)
            used.add(port.setdefault("nodePort", free))
