"""What has been told of one kind, so that all is told once: a list is compared with it, events are added to it.

An object that came back under its old name is two things: the old one gone, a new one there. A document that
cannot be read is reported and passed over; what was known of its object stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from stowplan.kube.client import WatchEvent
from stowplan.kube.resources import ApiResource
from stowplan.objects.changes import Change, Gone, Put
from stowplan.objects.errors import StowplanError
from stowplan.objects.meta import Object

_any_object = msgspec.json.Decoder(Object)


class ReflectorCache:
    """`objects`, and with `keep_raw` their `documents`, by key. `resource_version`: how far it has come."""

    def __init__(self, resource: ApiResource, on_problem: Callable[[str], None], *, keep_raw: bool = False) -> None:
        self.objects: dict[str, Object] = {}
        self.documents: dict[str, bytes] = {}
        self.resource_version = ""
        self._resource = resource
        self._on_problem, self._keep_raw = on_problem, keep_raw
        self._buried: set[str] = set()  # uids that were learned to be gone before the watch said so

    # -- from a list

    def listed(self, documents: Iterable[msgspec.Raw], seen: set[str]) -> list[Change]:
        """What a page tells that is new; the keys on it are added to `seen`."""
        changes: list[Change] = []
        for document in documents:
            found = self._read(document)
            if found is not None:
                seen.add(found.key)
                changes += self._put(found, document)
            elif (known_as := _shell(document)) is not None:
                seen.add(known_as.key)
        return changes

    def vanished(self, seen: set[str]) -> list[Change]:
        """What is gone: known, but on no page of a whole list."""
        self._buried.clear()
        return [change for key in self.objects.keys() - seen for change in self._remove(self.objects[key])]

    # -- from a watch

    def happened(self, event: WatchEvent) -> list[Change]:
        """What an event tells that is new."""
        found = self._read(event.object) if event.type != "BOOKMARK" else None
        shell = found or _shell(event.object)
        if shell is not None and shell.metadata.resource_version:
            self.resource_version = shell.metadata.resource_version
        if found is None:
            return []
        if event.type == "DELETED":
            self._buried.discard(found.uid)
            return list(self._remove(found))
        if found.uid in self._buried or self._is_old_news(found):
            return []
        return list(self._put(found, event.object))

    def _is_old_news(self, found: Object) -> bool:
        """Whether we learned of a later state already. Versions may be compared since Kubernetes 1.35."""
        known = self.objects.get(found.key)
        if known is None or known.uid != found.uid:
            return False
        old, new = known.metadata.resource_version, found.metadata.resource_version
        return old.isdigit() and new.isdigit() and int(new) <= int(old)

    # -- from elsewhere

    def learned(self, change: Change, document: bytes = b"") -> list[Change]:
        """Take in what a single read found out, ahead of the watch; events that come late do not turn it back."""
        if isinstance(change, Put):
            return [] if self._is_old_news(change.object) else list(self._put(change.object, document))
        removed = list(self._remove(change.object))
        if removed:
            self._buried.add(change.object.uid)
        return removed

    # --

    def _read(self, document: msgspec.Raw) -> Object | None:
        try:
            return self._resource.decode(document)
        except (StowplanError, msgspec.MsgspecError) as error:
            self._on_problem(f"{self._resource.kind}: a document cannot be read and is passed over: {error}")
            return None

    def _put(self, found: Object, document: msgspec.Raw | bytes) -> Iterator[Change]:
        key = found.key
        known = self.objects.get(key)
        if known is not None:
            if known.metadata.resource_version == found.metadata.resource_version:
                return
            if known.uid != found.uid:
                yield Gone(known)
        self.objects[key] = found
        if self._keep_raw and document:
            self.documents[key] = bytes(document)
        yield Put(found)

    def _remove(self, found: Object) -> Iterator[Change]:
        key = found.key
        known = self.objects.get(key)
        if known is not None and known.uid == found.uid:
            del self.objects[key]
            self.documents.pop(key, None)
            yield Gone(found)


def _shell(document: msgspec.Raw) -> Object | None:
    """The names alone, of a bookmark or of a document that cannot be read further."""
    try:
        return _any_object.decode(document)
    except msgspec.MsgspecError:
        return None
