"""The keys of controllers that wait for room in a quota, by namespace."""

from __future__ import annotations

from stowplan.embedded.documents import Document
from stowplan.embedded.store import StoreChange
from stowplan.objects import quantity

_LIMITING = ("resourcequotas", "limitranges")


class RefusedKeys:
    """A key is that of a namespaced object, with the number of its controller."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[tuple[int, str], None]] = {}

    def add(self, number: int, key: str) -> None:
        self._waiting.setdefault(_namespace(key), {})[number, key] = None

    def discard(self, number: int, key: str) -> None:
        waiting = self._waiting.get(_namespace(key))
        if waiting is not None:
            waiting.pop((number, key), None)
            if not waiting:
                del self._waiting[_namespace(key)]

    def freed_by(self, change: StoreChange) -> list[tuple[int, str]]:
        """The keys to try again because a namespace allows more than before."""
        if not self._waiting or change.collection not in _LIMITING or change.before is None:
            return []
        waiting = self._waiting.get(_namespace(change.key))
        return list(waiting) if waiting and _allows_more(change.before, change.now) else []


def _namespace(key: str) -> str:
    return key.partition("/")[0]


def _allows_more(before: Document, now: Document | None) -> bool:
    """True if a quota or LimitRange is gone or changed, or if less is used of a quota."""
    if now is None or before["spec"] != now["spec"]:
        return True
    old, new = (each.get("status", {}).get("used", {}) for each in (before, now))
    return any(quantity.nanos(text) < quantity.nanos(old.get(name, text)) for name, text in new.items())
