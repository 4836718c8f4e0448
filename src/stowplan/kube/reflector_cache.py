"""The known objects of one kind, so that each change is sent once: lists are compared with it, events applied to it.

An object that was deleted and created again under the same name becomes two changes. A document that cannot be read is
that object's trouble alone: `unreadable` says what counts instead, and the changes say that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from stowplan.kube.client import WatchEvent
from stowplan.kube.resources import ApiResource
from stowplan.kube.unreadable import LONGEST_PROBLEM, UnreadableObject, substitute
from stowplan.objects.changes import Change, Gone, Put
from stowplan.objects.in_part import read_in_part
from stowplan.objects.meta import Object, ObjectMeta
from stowplan.objects.pods import Pod


class _Identity(msgspec.Struct, rename="camel"):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Identified(msgspec.Struct):
    metadata: _Identity


_any_object = msgspec.json.Decoder(Object)
_identified = msgspec.json.Decoder(_Identified)
# kubectl's copy of the whole object, for kubectl alone. Pods may have any number of annotations, and plugins may read
# any of them, so all others are kept.
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class ReflectorCache:
    """The objects by key, with `keep_raw` also their JSON, and the resource version of the last change.

    `unreadable`: the objects whose latest version cannot be read, by key. `on_unreadable` is called with each of them
    once, `on_problem` with a sentence about each new problem.
    """

    def __init__(
        self,
        resource: ApiResource,
        on_problem: Callable[[str], None],
        *,
        keep_raw: bool = False,
        on_unreadable: Callable[[UnreadableObject], None] = lambda _: None,
    ) -> None:
        self.objects: dict[str, Object] = {}
        self.documents: dict[str, bytes] = {}
        self.unreadable: dict[str, UnreadableObject] = {}
        self.resource_version = ""
        self._resource, self._of_pods = resource, resource.object_type is Pod
        self._on_problem, self._on_unreadable, self._keep_raw = on_problem, on_unreadable, keep_raw
        self._deleted: set[str] = set()  # uids of pods that a read found deleted before the watch did

    # -- from a list

    def apply_page(self, documents: Iterable[msgspec.Raw], seen: set[str]) -> list[Change]:
        """The changes of one page. Its keys are added to `seen`."""
        changes: list[Change] = []
        again = len(self.objects) > len(seen)  # it is not the first list, so most of it is known
        for document in documents:
            if again and (key := self._known_key(document)):
                seen.add(key)
                continue
            try:
                found = self._resource.decode(document)
            except Exception as error:
                identified = _metadata_of(document)
                seen.add(identified.key)
                changes += self._put_unreadable(identified, document, error)
            else:
                seen.add(found.key)
                changes += self._put(found, document)
        return changes

    def _known_key(self, document: msgspec.Raw) -> str:
        """The key of an object that is known at this very version, "" for any other. Little of it is decoded."""
        try:
            found = _identified.decode(document).metadata
        except Exception:
            return ""
        key = f"{found.namespace}/{found.name}" if found.namespace else found.name
        known = self.objects.get(key)
        if known is None or known.uid != found.uid or key in self.unreadable or not found.resource_version:
            return ""
        return key if known.metadata.resource_version == found.resource_version else ""

    def remove_missing(self, seen: set[str]) -> list[Change]:
        """The known objects that are on no page of a complete list."""
        self._deleted.clear()
        for key in self.unreadable.keys() - seen:
            del self.unreadable[key]
        return [change for key in self.objects.keys() - seen for change in self._remove(self.objects[key])]

    # -- from a watch

    def apply_event(self, event: WatchEvent) -> list[Change]:
        """The changes of a watch event."""
        found, problem = None, None
        if event.type != "BOOKMARK":
            try:
                found = self._resource.decode(event.object)
            except Exception as error:
                problem = error
        identified = found or _metadata_of(event.object)
        if identified.metadata.resource_version:
            self.resource_version = identified.metadata.resource_version
        if event.type == "DELETED":
            self._deleted.discard(identified.uid)
            return list(self._remove(identified, readable=found is not None))
        if problem is not None:
            return self._put_unreadable(identified, event.object, problem)
        if found is None or found.uid in self._deleted or self._is_stale(found):
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

    # -- one object

    def _put(self, found: Object, document: msgspec.Raw | bytes) -> Iterator[Change]:
        key = found.key
        known = self.objects.get(key)
        if self.unreadable:
            self.unreadable.pop(key, None)
        if known is not None:
            if known.metadata.resource_version == found.metadata.resource_version:
                return
            if known.uid != found.uid:
                yield Gone(known)
        if self._of_pods and LAST_APPLIED in found.metadata.annotations:
            found = _without_last_applied(found)
        self.objects[key] = found
        if self._keep_raw and document:
            self.documents[key] = bytes(document)
        yield Put(found)

    def _put_unreadable(self, identified: Object, document: msgspec.Raw, error: Exception) -> list[Change]:
        """A version that cannot be read; `identified` has its metadata, as far as possible."""
        key = identified.key
        known, changes = self.objects.get(key), list[Change]()
        if known is not None and known.uid != identified.uid:  # another object that had its name before is gone
            changes += self._remove(known)
            known = None
        metadata, last = identified.metadata, self.unreadable.get(key)
        if last is not None and (last.uid, last.resource_version) == (metadata.uid, metadata.resource_version):
            return changes  # a list repeats what is known
        if metadata.uid in self._deleted or self._is_stale(identified):
            return changes
        instead = substitute(self._resource, bytes(document), known)
        if instead.counts is None and known is not None:
            changes += self._remove(known)
        elif instead.counts is not None and instead.counts is not known:
            changes += self._put(instead.counts, document)
        problem = self._resource.unreadable(error, key, instead.so)[:LONGEST_PROBLEM]
        self._note(key, metadata, problem, instead.scheduler_name, last)
        return changes

    def _note(
        self, key: str, metadata: ObjectMeta, problem: str, scheduler_name: str, last: UnreadableObject | None
    ) -> None:
        """Count the object, and tell what is new about it."""
        same = last is not None and last.uid == metadata.uid
        found = self.unreadable[key] = UnreadableObject(
            self._resource.kind,
            problem,
            metadata.namespace,
            metadata.name,
            metadata.uid,
            metadata.resource_version,
            scheduler_name,
            told=last is not None and same and last.told,
        )
        if last is None or last.problem != problem:
            self._on_problem(problem)
        if not same:
            self._on_unreadable(found)

    def _remove(self, found: Object, *, readable: bool = True) -> Iterator[Change]:
        """`readable`: False if nothing but the metadata could be read."""
        key = found.key
        if self.unreadable:
            self.unreadable.pop(key, None)
        known = self.objects.get(key)
        if known is not None and known.uid == found.uid:
            del self.objects[key]
            self.documents.pop(key, None)
            yield Gone(found if readable else known)


def _metadata_of(document: msgspec.Raw) -> Object:
    """The metadata of a bookmark, or of a document that cannot be read otherwise, as far as that is possible."""
    try:
        return _any_object.decode(document)
    except Exception:
        return read_in_part(Object, bytes(document))


def _without_last_applied(found: Object) -> Object:
    """(Pods of one template share their annotations, so these are not changed in place.)"""
    kept = {name: value for name, value in found.metadata.annotations.items() if name != LAST_APPLIED}
    return msgspec.structs.replace(found, metadata=msgspec.structs.replace(found.metadata, annotations=kept))
