"""The known objects of one kind, so that each change is sent once: lists are compared with it, events applied to it.

An object that was deleted and created again under the same name becomes two changes. A document that cannot be read is
reported and skipped: the last readable state of its object stays until the object can be read again or is deleted.
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
    """The objects by key, with `keep_raw` also their JSON, and the resource version of the last change."""

    def __init__(self, resource: ApiResource, on_problem: Callable[[str], None], *, keep_raw: bool = False) -> None:
        self.objects: dict[str, Object] = {}
        self.documents: dict[str, bytes] = {}
        self.resource_version = ""
        self._resource = resource
        self._on_problem, self._keep_raw = on_problem, keep_raw
        self._deleted: set[str] = set()  # uids of pods that a read found deleted before the watch did

    # -- from a list

    def apply_page(self, documents: Iterable[msgspec.Raw], seen: set[str]) -> list[Change]:
        """The changes of one page. Its keys are added to `seen`."""
        changes: list[Change] = []
        for document in documents:
            found = self._read(document)
            if found is not None:
                seen.add(found.key)
                changes += self._put(found, document)
            elif (identified := _metadata_of(document)) is not None:
                seen.add(identified.key)
                changes += self._remove_namesake(identified)
        return changes

    def remove_missing(self, seen: set[str]) -> list[Change]:
        """The known objects that are on no page of a complete list."""
        self._deleted.clear()
        return [change for key in self.objects.keys() - seen for change in self._remove(self.objects[key])]

    # -- from a watch

    def apply_event(self, event: WatchEvent) -> list[Change]:
        """The changes of a watch event."""
        found = self._read(event.object) if event.type != "BOOKMARK" else None
        identified = found or _metadata_of(event.object)
        if identified is not None and identified.metadata.resource_version:
            self.resource_version = identified.metadata.resource_version
        if event.type == "DELETED" and identified is not None:
            self._deleted.discard(identified.uid)
            return list(self._remove(identified if found is None else found, readable=found is not None))
        if found is None:
            return [] if identified is None or event.type == "BOOKMARK" else self._remove_namesake(identified)
        if found.uid in self._deleted or self._is_stale(found):
            return []
        return list(self._put(found, event.object))

    def _is_stale(self, found: Object) -> bool:
        """True if a later state is known. Resource versions can be compared since Kubernetes 1.35."""
        known = self.objects.get(found.key)
        if known is None or known.uid != found.uid:
            return False
        old, new = known.metadata.resource_version, found.metadata.resource_version
        return old.isdigit() and new.isdigit() and int(new) <= int(old)

    # -- from a single read

    def apply_read(self, change: Change, document: bytes = b"") -> list[Change]:
        """The changes of a single read, ahead of the watch. Older events that arrive later are ignored."""
        if isinstance(change, Put):
            return [] if self._is_stale(change.object) else list(self._put(change.object, document))
        removed = list(self._remove(change.object))
        if removed:
            self._deleted.add(change.object.uid)
        return removed

    def _read(self, document: msgspec.Raw) -> Object | None:
        try:
            return self._resource.decode(document)
        except (StowplanError, msgspec.MsgspecError) as error:
            identified = _metadata_of(document)
            self._on_problem(self._resource.unreadable(error, "" if identified is None else identified.key))
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

    def _remove(self, found: Object, *, readable: bool = True) -> Iterator[Change]:
        """`readable`: False if nothing but the metadata could be read."""
        key = found.key
        known = self.objects.get(key)
        if known is not None and known.uid == found.uid:
            del self.objects[key]
            self.documents.pop(key, None)
            yield Gone(found if readable else known)

    def _remove_namesake(self, identified: Object) -> list[Change]:
        """An object that cannot be read: another one that had its name before is gone."""
        known = self.objects.get(identified.key)
        return [] if known is None or known.uid == identified.uid else list(self._remove(known))


def _metadata_of(document: msgspec.Raw) -> Object | None:
    """The metadata of a bookmark, or of a document that cannot be read otherwise."""
    try:
        return _any_object.decode(document)
    except msgspec.MsgspecError:
        return None
