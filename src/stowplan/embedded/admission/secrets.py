"""Secrets: the default type, and `stringData` written into `data`."""

from __future__ import annotations

import base64

from stowplan.embedded.documents import Document


def defaults(document: Document) -> None:
    document.setdefault("type", "Opaque")
    for key, value in document.pop("stringData", {}).items():
        document.setdefault("data", {})[key] = base64.b64encode(value.encode()).decode()
