"""SPPriority's decisions and writes that the API server's version of the owner does not show yet.

Only one write of an owner's annotation is under way at a time: a second one could overtake it, and be refused. Pods
that come meanwhile are recorded together by the next write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from stowplan.objects.actions import Patch
from stowplan.objects.meta import Object

Ref: TypeAlias = tuple[str, str, str]  # kind, key and uid of an owner


class UnconfirmedWrite(NamedTuple):
    """A write under way: the annotation before and after it, and the pod and node that it is for, if it is for one."""

    before: str | None
    text: str
    uid: str
    node_name: str
    succeeded: bool = False


class UnconfirmedWrites:
    def __init__(self, annotation: str) -> None:
        self._annotation = annotation  # its key
        self._assumed: dict[Ref, dict[str, str]] = {}  # nodes of assumed pods, by uid
        self._owner_of: dict[str, Ref] = {}
        self._to_record: dict[str, bool] = {}  # by uid; True: the pod is bound already
        self._writes: dict[Ref, UnconfirmedWrite] = {}

    # -- assumed pods

    def assume(self, owner: Object, uid: str, node_name: str) -> None:
        """The pod is assumed on this node."""
        self.remove(uid)
        self._owner_of[uid] = ref(owner)
        self._assumed.setdefault(ref(owner), {})[uid] = node_name

    def record(self, uid: str, *, bound: bool = False) -> None:
        """The pod must be recorded in its owner's annotation."""
        self._to_record[uid] = bound

    def remove(self, uid: str) -> bool:
        """The pod is not assumed any more. True if it was."""
        self._to_record.pop(uid, None)
        owner = self._owner_of.pop(uid, None)
        if owner is None:
            return False
        del self._assumed[owner][uid]
        if not self._assumed[owner]:
            del self._assumed[owner]
        return True

    def counted(self, uid: str) -> None:
        """The pod is counted. It stays assumed until it is reported as bound."""
        if self._to_record.pop(uid, False):
            self.remove(uid)

    def is_bound(self, uid: str) -> bool:
        """True if the pod is bound and not recorded yet."""
        return self._to_record.get(uid, False)

    def unreserve(self, uid: str) -> None:
        """The pod does not get the node; perhaps because its write failed, or the write that it waited for."""
        owner = self._owner_of.get(uid)
        write = None if owner is None else self._writes.get(owner)
        if owner is not None and write is not None:
            failed = not write.succeeded if write.uid == uid else uid in self._to_record
            if failed:
                del self._writes[owner]
        self.remove(uid)

    def assumed(self, owner: Object) -> Mapping[str, str]:
        """Return the nodes of the owner's assumed pods, by uid."""
        return self._assumed.get(ref(owner), {})

    def to_record(self, owner: Object) -> dict[str, str]:
        """Return the pods that must be recorded, and their nodes."""
        return {uid: node for uid, node in self.assumed(owner).items() if uid in self._to_record}

    # -- writes under way

    def text(self, owner: Object) -> str | None:
        """Return the annotation as the server has it, or will have it after the write under way."""
        return self._writes[ref(owner)].text if self.under_way(owner) else owner.annotations.get(self._annotation)

    def under_way(self, owner: Object) -> bool:
        """True if there is a write that the server's version does not show yet."""
        write = self._writes.get(ref(owner))
        return write is not None and write.before == owner.annotations.get(self._annotation)

    def succeeded(self, owner: Object, uid: str) -> bool:
        """True if the write under way was for this pod and its node.

        It has succeeded then: otherwise the pod's pre-binding would have ended.
        """
        write = self._writes.get(ref(owner))
        if write is None or not self.under_way(owner):
            return False
        if (write.uid, write.node_name) != (uid, self.assumed(owner).get(uid)):
            return False
        self._writes[ref(owner)] = write._replace(succeeded=True)
        return True

    def write(self, owner: Object, text: str, uid: str = "") -> Patch:
        """Return the patch that writes the annotation, and remember it."""
        before, node_name = owner.annotations.get(self._annotation), self.assumed(owner).get(uid, "")
        self._writes[ref(owner)] = UnconfirmedWrite(before, text, uid, node_name)
        return patch(owner, self._annotation, text)

    def observe(self, owner: Object) -> None:
        """A version of the owner was seen: a write that it shows is not under way any more."""
        write = self._writes.get(ref(owner))
        if write is not None and write.text == owner.annotations.get(self._annotation):
            del self._writes[ref(owner)]

    def resync(self) -> None:
        """Forget writes that no pod waits for: they may have failed, or their version may have been missed."""
        self._writes = {owner: write for owner, write in self._writes.items() if write.uid and not write.succeeded}

    def owner_deleted(self, owner: Object) -> None:
        """The owner is gone: its pods that are bound are not recorded any more."""
        self._writes.pop(ref(owner), None)
        for uid in [uid for uid in self.assumed(owner) if self.is_bound(uid)]:
            self.remove(uid)


def patch(owner: Object, annotation: str, text: str) -> Patch:
    """Return a patch of one annotation that fails if the owner is another object, or the annotation has changed."""
    path = "/metadata/annotations"
    if owner.annotations:
        path += f"/{annotation.replace('~', '~0').replace('/', '~1')}"
    body: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": owner.uid},
        {"op": "test", "path": path, "value": owner.annotations.get(annotation)},  # null matches what does not exist
        {"op": "add", "path": path, "value": text if owner.annotations else {annotation: text}},
    ]
    return Patch(kind=type(owner).__name__, key=owner.key, body=body)


def ref(owner: Object) -> Ref:
    return type(owner).__name__, owner.key, owner.uid
