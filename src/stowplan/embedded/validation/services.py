"""Services: the type, the ports and the selector."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, invalid_value, required, unsupported
from stowplan.embedded.validation.metadata import check_labels


def check(service: Document) -> Iterator[StatusCause]:
    spec = service["spec"]
    kinds = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
    if spec["type"] not in kinds:
        yield unsupported("spec.type", spec["type"], kinds)
    if not spec.get("ports") and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        yield required("spec.ports")
    for index, port in enumerate(spec.get("ports", ())):
        if not 0 < port.get("port", 0) < 65536:
            yield invalid_value(
                f"spec.ports[{index}].port", port.get("port", 0), "must be between 1 and 65535, inclusive"
            )
        if len(spec["ports"]) > 1 and not port.get("name"):
            yield required(f"spec.ports[{index}].name")
    yield from check_labels("spec.selector", spec.get("selector", {}))
