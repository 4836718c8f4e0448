"""Objects taken for other than the API server last said they are, on behalf of pods on their way to a node.

Whoever looks into the store sees the assumed version: a volume given to a claim is gone for the next pod. It ends

    when its last holder gives it back      the server's version is seen again
    when the server sends another version   the write that was to make it true was based on the version before, so
                                            either that write is in this version, or the server will refuse it
    when the object is deleted

All holders of an object assume the same of it. What a holder took is remembered until it gives it back or is settled,
even where the server's version has it by now: so a plugin can ask whether all of it came true.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar, cast

import msgspec

from stowplan.columns.object_store import ObjectStore
from stowplan.objects.meta import Object

AnyObject = TypeVar("AnyObject", bound=Object)
Ref: TypeAlias = tuple[str, str]  # kind and key of an object


class AssumedObject(msgspec.Struct, frozen=True):
    """What the server said, who assumes otherwise, and which of them sent a write that makes it true."""

    real: Object
    assumed: Object
    holders: tuple[str, ...] = ()
    writer: str = ""

    @property
    def stands(self) -> bool:
        """Is somebody still interested, or a write by one that is settled on its way into our view?"""
        return bool(self.holders or self.writer)

    def without(self, holder: str) -> AssumedObject:
        holders = tuple(each for each in self.holders if each != holder)
        return msgspec.structs.replace(self, holders=holders)


class AssumedObjects:
    def __init__(
        self, store: ObjectStore, put: Callable[[Object], None], journaled: Callable[[Callable[[], object]], None]
    ) -> None:
        """`put` shows an object in the store, `journaled` notes how to undo what a what-if did."""
        self._store, self._put, self._journaled = store, put, journaled
        self._objects: dict[Ref, AssumedObject] = {}
        self._taken: dict[str, tuple[Object, ...]] = {}  # by holder

    # -- questions

    def by(self, holder: str) -> tuple[Object, ...]:
        """What this one took, as it assumes it to be."""
        return self._taken.get(holder, ())

    def real(self, kind: type[AnyObject], key: str) -> AnyObject | None:
        """An object as the server last said."""
        held = self._objects.get((kind.__name__, key))
        return self._store.get(kind, key) if held is None else cast("AnyObject", held.real)

    def pending(self, found: Object) -> bool:
        """Is something assumed of this object that the server does not say yet?"""
        return ref(found) in self._objects

    def writer(self, found: Object) -> str:
        """Who sent the write that makes an assumption true, until the server's version has it; empty for nobody."""
        held = self._objects.get(ref(found))
        return "" if held is None else held.writer

    def holders(self) -> set[str]:
        return set(self._taken).union(*(held.holders for held in self._objects.values()))

    # -- taking and giving back

    def take(self, holder: str, found: Object) -> None:
        """Assume that an object is like this. What the server says already is only remembered."""
        held = self._objects.get(ref(found))
        if held is not None and held.assumed != found:
            raise ValueError(f"{type(found).__name__} {found.key} is assumed to be otherwise by {held.holders}")
        self._remember(holder, (*self.by(holder), found))
        if held is not None:
            self._set(ref(found), msgspec.structs.replace(held, holders=(*held.holders, holder)))
            return
        real = self._store.get(type(found), found.key)
        if real is None:
            raise LookupError(f"there is no {type(found).__name__} {found.key}")
        if real != found:
            self._set(ref(found), AssumedObject(real, found, (holder,)))
            self._put(found)

    def written(self, kind: str, key: str, holder: str) -> None:
        """A holder sends the write that makes an object what it is assumed to be."""
        held = self._objects.get((kind, key))
        if held is not None and holder in held.holders:
            self._set((kind, key), msgspec.structs.replace(held, writer=holder))

    def give_back(self, holder: str) -> None:
        """This holder assumes nothing any more."""
        for found in self._forget(holder):
            held = self._objects.get(ref(found))
            if held is not None and held.writer == holder:
                self._leave(ref(found), msgspec.structs.replace(held, writer=""), holder)
            elif held is not None:
                self._leave(ref(found), held, holder)

    def settle(self, holder: str) -> None:
        """This holder has what it wanted: what it wrote is assumed until the server's version has it."""
        for found in self._forget(holder):
            held = self._objects.get(ref(found))
            if held is not None:
                self._leave(ref(found), held, holder)

    def _leave(self, at: Ref, held: AssumedObject, holder: str) -> None:
        left = held.without(holder)
        self._set(at, left if left.stands else None)
        if not left.stands:
            self._put(left.real)

    # -- what the server says

    def hear(self, found: Object) -> Object:
        """The server sends an object: this is what is to be seen of it."""
        held = self._objects.get(ref(found)) if self._objects else None
        if held is None:
            return found
        version = found.metadata.resource_version
        if version and version == held.real.metadata.resource_version:  # the same once more, after a new list
            self._set(ref(found), msgspec.structs.replace(held, real=found))
            return held.assumed
        self._set(ref(found), None)
        return found

    def drop(self, found: Object) -> None:
        """The object is gone."""
        if ref(found) in self._objects:
            self._set(ref(found), None)

    # -- the books, undone exactly

    def _set(self, at: Ref, held: AssumedObject | None) -> None:
        before = self._objects.get(at)
        if held is None:
            self._objects.pop(at, None)
        else:
            self._objects[at] = held
        self._journaled(lambda: self._set(at, before))

    def _forget(self, holder: str) -> tuple[Object, ...]:
        taken = self.by(holder)
        if taken:
            self._remember(holder, ())
        return taken

    def _remember(self, holder: str, taken: tuple[Object, ...]) -> None:
        before = self.by(holder)
        if taken:
            self._taken[holder] = taken
        else:
            self._taken.pop(holder, None)
        self._journaled(lambda: self._remember(holder, before))


def ref(found: Object) -> Ref:
    return type(found).__name__, found.key
