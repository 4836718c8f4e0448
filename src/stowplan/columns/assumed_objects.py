"""Objects that are assumed to differ from what the API server last said, on behalf of assumed pods.

The store shows the assumed version: a volume that is assumed to be bound to a claim is not free for the next pod. An
assumption ends

    when its last holder releases it        the store shows the server's version again
    when the server sends another version   the write that makes the assumption true was based on the version before:
                                            either this version has the write, or the server will refuse it. (A
                                            resource claim is written twice: the first write is not what was assumed)
    when the object is deleted

A holder is the uid of a pod. All holders of an object assume the same of it. What a holder took is remembered until the
holder releases it or finishes, also if the server's version has it by then: a plugin can ask if all of it came true.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar, cast

import msgspec

from stowplan.columns.object_store import ObjectStore
from stowplan.objects.meta import Object
from stowplan.objects.resource_claims import ResourceClaim

AnyObject = TypeVar("AnyObject", bound=Object)
Ref: TypeAlias = tuple[str, str]  # kind and key of an object


class AssumedObject(msgspec.Struct, frozen=True):
    """The server's version, the assumed one, its holders, and the holder that sent the write to make it true."""

    actual: Object | None
    assumed: Object
    holders: tuple[str, ...] = ()
    writer: str = ""

    @property
    def needed(self) -> bool:
        """True if there is a holder, or the server's version does not have the write of a finished holder yet."""
        return bool(self.holders or self.writer)

    def without(self, holder: str) -> AssumedObject:
        holders = tuple(each for each in self.holders if each != holder)
        return msgspec.structs.replace(self, holders=holders)


class AssumedObjects:
    def __init__(
        self,
        store: ObjectStore,
        put: Callable[[Object], None],
        discard: Callable[[Object], None],
        journaled: Callable[[Callable[[], object]], None],
    ) -> None:
        """`put` and `discard` change the store, `journaled` records how to undo a change that a trial made."""
        self._store, self._put, self._discard, self._journaled = store, put, discard, journaled
        self._objects: dict[Ref, AssumedObject] = {}
        self._taken: dict[str, tuple[Object, ...]] = {}  # by holder

    # -- questions

    def taken_by(self, holder: str) -> tuple[Object, ...]:
        """Return the objects that a holder took, as it assumes them to be."""
        return self._taken.get(holder, ())

    def actual(self, kind: type[AnyObject], key: str) -> AnyObject | None:
        """Return an object as the server last sent it."""
        held = self._objects.get((kind.__name__, key))
        return self._store.get(kind, key) if held is None else cast("AnyObject", held.actual)

    def unconfirmed(self, found: Object) -> bool:
        """True if something is assumed of this object that the server's version does not have yet."""
        return ref(found) in self._objects

    def writer(self, found: Object) -> str:
        """Return the holder that sent the write for this object, until the server's version has it; "" for none."""
        held = self._objects.get(ref(found))
        return "" if held is None else held.writer

    def holders_of(self, found: Object) -> tuple[str, ...]:
        """Return who assumes something of this object."""
        held = self._objects.get(ref(found))
        return () if held is None else held.holders

    def holders(self) -> set[str]:
        return set(self._taken).union(*(held.holders for held in self._objects.values()))

    # -- changes by holders

    def take(self, holder: str, found: Object) -> None:
        """Assume that an object is like this. If the server's version is the same, it is only remembered."""
        held = self._objects.get(ref(found))
        if held is not None and held.assumed != found:
            raise ValueError(f"{type(found).__name__} {found.key} is assumed to be different by {held.holders}")
        self._remember(holder, (*self.taken_by(holder), found))
        if held is not None:
            self._set(ref(found), msgspec.structs.replace(held, holders=(*held.holders, holder)))
            return
        actual = self._store.get(type(found), found.key)
        if actual is None:
            raise LookupError(f"there is no {type(found).__name__} {found.key}")
        if actual != found:
            self._set(ref(found), AssumedObject(actual, found, (holder,)))
            self._put(found)

    def invent(self, holder: str, found: Object) -> None:
        """Assume that there is an object which nobody has created yet; until the holder releases it or finishes."""
        if ref(found) in self._objects or self._store.get(type(found), found.key) is not None:
            raise ValueError(f"there is a {type(found).__name__} {found.key} already")
        self._remember(holder, (*self.taken_by(holder), found))
        self._set(ref(found), AssumedObject(None, found, (holder,)))
        self._put(found)

    def mark_written(self, kind: str, key: str, holder: str) -> None:
        """A holder sends the write that makes the assumption about an object true."""
        held = self._objects.get((kind, key))
        if held is not None and holder in held.holders:
            self._set((kind, key), msgspec.structs.replace(held, writer=holder))

    def release(self, holder: str) -> None:
        """End all assumptions of a holder."""
        for found in self._forget(holder):
            held = self._objects.get(ref(found))
            if held is not None and held.writer == holder:
                self._drop_holder(ref(found), msgspec.structs.replace(held, writer=""), holder)
            elif held is not None:
                self._drop_holder(ref(found), held, holder)

    def finish(self, holder: str) -> None:
        """A holder is bound: what it wrote is assumed until the server's version has it."""
        for found in self._forget(holder):
            held = self._objects.get(ref(found))
            if held is not None:
                self._drop_holder(ref(found), held, holder)

    def _drop_holder(self, at: Ref, held: AssumedObject, holder: str) -> None:
        remaining = held.without(holder)
        self._set(at, remaining if remaining.needed else None)
        if not remaining.needed and remaining.actual is not None:
            self._put(remaining.actual)
        elif not remaining.needed:
            self._discard(remaining.assumed)

    # -- changes by the server

    def observed(self, found: Object) -> Object:
        """The server sends an object: return the version that the store should show."""
        held = self._objects.get(ref(found)) if self._objects else None
        if held is None:
            return found
        if isinstance(found, ResourceClaim) and isinstance(held.assumed, ResourceClaim):
            rebased = found.with_allocation_of(held.assumed)
            if rebased is not None:
                self._set(ref(found), msgspec.structs.replace(held, actual=found, assumed=rebased))
                return rebased
        version, known = found.metadata.resource_version, held.actual
        if version and known is not None and version == known.metadata.resource_version:  # again, after a new list
            self._set(ref(found), msgspec.structs.replace(held, actual=found))
            return held.assumed
        self._set(ref(found), None)
        return found

    def deleted(self, found: Object) -> None:
        """The server deletes an object."""
        if ref(found) in self._objects:
            self._set(ref(found), None)

    # -- changes that a trial undoes exactly

    def _set(self, at: Ref, held: AssumedObject | None) -> None:
        before = self._objects.get(at)
        if held is None:
            self._objects.pop(at, None)
        else:
            self._objects[at] = held
        self._journaled(lambda: self._set(at, before))

    def _forget(self, holder: str) -> tuple[Object, ...]:
        taken = self.taken_by(holder)
        if taken:
            self._remember(holder, ())
        return taken

    def _remember(self, holder: str, taken: tuple[Object, ...]) -> None:
        before = self.taken_by(holder)
        if taken:
            self._taken[holder] = taken
        else:
            self._taken.pop(holder, None)
        self._journaled(lambda: self._remember(holder, before))


def ref(found: Object) -> Ref:
    return type(found).__name__, found.key
