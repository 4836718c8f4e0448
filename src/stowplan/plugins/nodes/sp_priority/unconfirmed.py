"""What SPPriority decided and sent, as long as the API server's version of the owner does not show it.

Of one owner's annotation one write is under way at a time: a second one could overtake it, and be refused. Pods that
come meanwhile wait (`wanted`), and go into the next write together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from stowplan.objects.actions import Patch
from stowplan.objects.meta import Object

Ref: TypeAlias = tuple[str, str, str]  # kind, key and uid of an owner


class UnconfirmedWrite(NamedTuple):
    """A write under way: what it is made from, what it writes, for which pod and node if for one, and whether it
    succeeded.
    """

    base: str | None
    text: str
    uid: str
    node_name: str
    sure: bool = False


class UnconfirmedWrites:
    def __init__(self, name: str) -> None:
        self._name = name  # of the annotation
        self._given: dict[Ref, dict[str, str]] = {}  # nodes of pods on their way, by uid
        self._owner_of: dict[str, Ref] = {}
        self._wanted: dict[str, bool] = {}  # by uid; whether the pod is bound already
        self._sent: dict[Ref, UnconfirmedWrite] = {}

    # -- pods on their way

    def give(self, owner: Object, uid: str, node_name: str) -> None:
        self.leave(uid)
        self._owner_of[uid] = ref(owner)
        self._given.setdefault(ref(owner), {})[uid] = node_name

    def want(self, uid: str, *, bound: bool = False) -> None:
        """The pod is to be noted."""
        self._wanted[uid] = bound

    def leave(self, uid: str) -> bool:
        """The pod is not on its way any more; whether it was."""
        self._wanted.pop(uid, None)
        owner = self._owner_of.pop(uid, None)
        if owner is None:
            return False
        del self._given[owner][uid]
        if not self._given[owner]:
            del self._given[owner]
        return True

    def settle(self, uid: str) -> None:
        """The pod is counted; one on its way stays until it is said to be bound."""
        if self._wanted.pop(uid, False):
            self.leave(uid)

    def is_bound(self, uid: str) -> bool:
        """Is the pod bound, and yet to be noted?"""
        return self._wanted.get(uid, False)

    def give_up(self, uid: str) -> None:
        """The pod does not get the node, perhaps because what was sent for it failed, or what it waited for did."""
        owner = self._owner_of.get(uid)
        sent = None if owner is None else self._sent.get(owner)
        if owner is not None and sent is not None and (not sent.sure if sent.uid == uid else uid in self._wanted):
            del self._sent[owner]
        self.leave(uid)

    def given(self, owner: Object) -> Mapping[str, str]:
        return self._given.get(ref(owner), {})

    def wanted(self, owner: Object) -> dict[str, str]:
        """The pods that are to be noted, and their nodes."""
        return {uid: node for uid, node in self.given(owner).items() if uid in self._wanted}

    # -- writes under way

    def text(self, owner: Object) -> str | None:
        """The annotation as the server has it, or will have it in a moment."""
        return self._sent[ref(owner)].text if self.busy(owner) else owner.annotations.get(self._name)

    def busy(self, owner: Object) -> bool:
        """Is a write under way of which the server's version does not show anything yet?"""
        sent = self._sent.get(ref(owner))
        return sent is not None and sent.base == owner.annotations.get(self._name)

    def succeeded(self, owner: Object, uid: str) -> bool:
        """Is it this pod's own, on its way to this node? It was answered, then: the pod would not have come so far."""
        sent = self._sent.get(ref(owner))
        if sent is None or not self.busy(owner) or (sent.uid, sent.node_name) != (uid, self.given(owner).get(uid)):
            return False
        self._sent[ref(owner)] = sent._replace(sure=True)
        return True

    def send(self, owner: Object, text: str, uid: str = "") -> Patch:
        self._sent[ref(owner)] = UnconfirmedWrite(
            owner.annotations.get(self._name), text, uid, self.given(owner).get(uid, "")
        )
        return patch(owner, self._name, text)

    def seen(self, owner: Object) -> None:
        """A version that was there, if only for a moment: a write that it shows is not under way any more."""
        sent = self._sent.get(ref(owner))
        if sent is not None and sent.text == owner.annotations.get(self._name):
            del self._sent[ref(owner)]

    def lost(self) -> None:
        """Writes may have failed, and versions may have gone unseen; only pods that wait for an answer can tell."""
        self._sent = {owner: sent for owner, sent in self._sent.items() if sent.uid and not sent.sure}

    def forget(self, owner: Object) -> None:
        """The owner is gone, and with it what was to be noted there of pods that are bound."""
        self._sent.pop(ref(owner), None)
        for uid in [uid for uid in self.given(owner) if self.is_bound(uid)]:
            self.leave(uid)


def patch(owner: Object, name: str, text: str) -> Patch:
    """This one annotation of this very owner, and only if it is still as we see it."""
    at = "/metadata/annotations"
    if owner.annotations:
        at += f"/{name.replace('~', '~0').replace('/', '~1')}"
    body: list[dict[str, Any]] = [
        {"op": "test", "path": "/metadata/uid", "value": owner.uid},
        {"op": "test", "path": at, "value": owner.annotations.get(name)},  # to a server null is what is not there
        {"op": "add", "path": at, "value": text if owner.annotations else {name: text}},
    ]
    return Patch(kind=type(owner).__name__, key=owner.key, body=body)


def ref(owner: Object) -> Ref:
    return type(owner).__name__, owner.key, owner.uid
