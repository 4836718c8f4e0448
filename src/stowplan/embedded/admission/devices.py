"""DeviceClasses, ResourceSlices, ResourceClaims and their templates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stowplan.embedded.documents import Document


def claim(document: Document) -> None:
    for request in _requests(document.get("spec", {})):
        _amount(request)


def template(document: Document) -> None:
    for request in _requests(document.get("spec", {}).get("spec", {})):
        _amount(request)


def _requests(spec: Document) -> Iterator[Document]:
    for request in spec.get("devices", {}).get("requests", ()):
        if "exactly" in request:
            yield request["exactly"]
        yield from request.get("firstAvailable", ())


def _amount(request: Document) -> None:
    request.setdefault("allocationMode", "ExactCount")
    if request["allocationMode"] == "ExactCount" and not request.get("count"):
        request["count"] = 1


def claim_status(document: Document, _old: Document) -> Document:
    """The claim without what drivers said of devices that it does not have any more."""
    status = document.get("status", {})
    if "devices" not in status:
        return document
    results = status.get("allocation", {}).get("devices", {}).get("results", ())
    allocated = {_place(each) for each in results}
    left = [each for each in status["devices"] if _place(each) in allocated]
    kept = {key: value for key, value in status.items() if key != "devices"}
    return {**document, "status": {**kept, "devices": left} if left else kept}


def _place(found: Document) -> tuple[Any, ...]:
    return tuple(found.get(name) for name in ("driver", "pool", "device", "shareID"))
