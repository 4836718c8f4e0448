"""Events: their namespace is that of the object they are about."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import StatusCause, invalid_value


def check(event: Document) -> Iterator[StatusCause]:
    involved = event["involvedObject"].get("namespace", "")
    namespace = event["metadata"].get("namespace", "")
    if namespace != (involved or "default") and not (not involved and namespace in ("kube-system", "")):
        yield invalid_value("involvedObject.namespace", involved, "does not match event.namespace")
