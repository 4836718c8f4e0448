"""Which tolerations of a pod match which taints of a node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stowplan.embedded.documents import Document


def tolerates(toleration: Document, taint: Document) -> bool:
    """True if a toleration matches a taint. Without a key, or without an effect, it matches all of them."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    if toleration.get("key") and toleration["key"] != taint["key"]:
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")


def matching(tolerations: Sequence[Document], taints: Iterable[Document]) -> list[Document] | None:
    """The first toleration for each taint; None if one of the taints has none."""
    found = []
    for taint in taints:
        toleration = next((each for each in tolerations if tolerates(each, taint)), None)
        if toleration is None:
            return None
        found.append(toleration)
    return found


def taints_of(node: Document | None, *effects: str) -> list[Document]:
    """The taints of a node that have one of these effects."""
    found = node["spec"].get("taints", ()) if node is not None else ()
    return [taint for taint in found if taint["effect"] in effects]
