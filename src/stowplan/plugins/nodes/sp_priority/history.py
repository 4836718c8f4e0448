"""The nodes of an owner's pods, as JSON in the owner's annotation, and the scores that follow from it.

    {"latest": "b", "node_count": {"a": 1, "b": 2}, "pending": {"<uid of a pod>": "a"}}

`node_count` is how many pods were bound to each node, `latest` the node of the last pod. `pending` are pods with a
decision that are not counted yet. A pod goes into `pending` before it is bound, and from there into the counts. Each of
these writes fails if the annotation was changed meanwhile, so a pod is counted once, even after a crash. The API server
limits all annotations of an object to 256 KiB, so both have a limit: `limited`, `recorded`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from itertools import islice
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from stowplan.columns.arrays import Bytes
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.scoring import MAX_SCORE

MOST_PENDING = 500


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of this plugin; `last` is the original's name of `latest`."""

    latest: str | None = None
    last: str | None = None
    node_count: dict[str, Annotated[int, Meta(ge=0)]] | None = None
    pending: dict[str, str] | None = None
    since_halving: Annotated[int, Meta(ge=0)] | None = None


_decoder = msgspec.json.Decoder(_Written)


class LastScores:
    """The scores computed last, and the nodes they are for (`Nodes.token`)."""

    __slots__ = ("nodes", "scores")

    def __init__(self) -> None:
        self.nodes: object = None
        self.scores: Bytes | None = None


class History(msgspec.Struct, frozen=True, dict=True):
    latest: str = ""
    counts: dict[str, int] = {}
    pending: dict[str, str] = {}  # nodes, by the uids of pods
    since_halving: int = 0  # pods counted since the counts were halved
    more: dict[str, Any] = {}  # fields that other programs wrote

    @cached_property
    def last_scores(self) -> LastScores:
        """A cache for `rated`; no part of the history's value."""
        return LastScores()

    def recorded(self, nodes: Mapping[str, str]) -> History:
        """Return the history with these pods and their nodes as pending; of new pods, as many as there is room for."""
        again = {uid: node for uid, node in nodes.items() if uid in self.pending}
        new = ((uid, node) for uid, node in nodes.items() if uid not in self.pending)
        room = max(MOST_PENDING - len(self.pending), 0)
        return msgspec.structs.replace(self, pending={**self.pending, **again, **dict(islice(new, room))})

    @property
    def full(self) -> bool:
        """True if there is no room for another pending pod."""
        return len(self.pending) >= MOST_PENDING

    def counted(self, node_names: Iterable[str], half_life: int = 0) -> History:
        """Return the history after pods were bound to these nodes, in this order.

        After `half_life` pods all counts are halved.
        """
        latest, counts, since = self.latest, dict(self.counts), self.since_halving
        for latest in node_names:
            counts[latest] = counts.get(latest, 0) + 1
            since += bool(half_life)
            if half_life and since >= half_life:
                counts, since = {name: count // 2 for name, count in counts.items() if count > 1}, 0
        return msgspec.structs.replace(self, latest=latest, counts=counts, since_halving=since)

    def settled(self, nodes: Mapping[str, str], half_life: int = 0) -> History:
        """Return the history after pending pods were bound to these nodes, or (no node) were not bound."""
        after = self.counted(filter(None, nodes.values()), half_life)
        left = {uid: node for uid, node in self.pending.items() if uid not in nodes}
        return msgspec.structs.replace(after, pending=left)

    def limited(self, nodes: Nodes, most: int) -> History:
        """Return the history without counts of deleted nodes, except the latest; and with at most so many counts."""
        there = nodes.positions(self.counts)
        counts = {name: count for name, count in self.counts.items() if name == self.latest or name in there}
        if len(counts) > most:
            # Among equal counts the newest are kept, so that a new node is not dropped at once.
            last_first = [*counts][::-1]
            last_first.sort(key=lambda name: (name == self.latest, counts[name]), reverse=True)
            kept = frozenset(last_first[:most])
            counts = {name: count for name, count in counts.items() if name in kept}
        return msgspec.structs.replace(self, counts=counts)

    def text(self) -> str:
        fields: dict[str, Any] = {"latest": self.latest, "node_count": self.counts}
        fields |= {"pending": self.pending} if self.pending else {}
        fields |= {"since_halving": self.since_halving} if self.since_halving else {}
        fields |= self.more
        fields |= {"last": self.latest} if "last" in self.more else {}  # the program that wrote it reads it
        return msgspec.json.encode(fields).decode()


@lru_cache(maxsize=128)
def read(text: str | None) -> History | None:
    """Return the history in an annotation; None if it cannot be read."""
    if text is None or not text.strip():
        return History()
    try:
        ours, more = _decoded(text)
    except (msgspec.MsgspecError, RecursionError):
        return None
    latest = ours.latest or ours.last or ""
    return History(latest, ours.node_count or {}, ours.pending or {}, ours.since_halving or 0, more)


def _decoded(text: str) -> tuple[_Written, dict[str, Any]]:
    """Return our fields, and others that must be kept. Most texts have only ours: the first decoder reads them."""
    try:
        ours = _decoder.decode(text)
        return ours, {} if ours.last is None else {"last": ours.last}
    except msgspec.ValidationError:
        found = msgspec.json.decode(text, type=dict[str, Any])
    known = {name: found[name] for name in _Written.__struct_fields__ if name in found}
    more = {name: value for name, value in found.items() if name == "last" or name not in known}
    return msgspec.convert(known, _Written), more


# -- scores


def rated(history: History, nodes: Nodes) -> Bytes | int:
    """Every node's score by this history. It is the same until the history changes, or the nodes do."""
    if not history.latest and not history.counts:
        return MAX_SCORE
    last = history.last_scores
    if last.scores is None or last.nodes is not nodes.token:
        last.nodes, last.scores = nodes.token, _rated(history, nodes)
    return last.scores


def _rated(history: History, nodes: Nodes) -> Bytes:
    """Return the scores. Deleted nodes are ignored. A history has few nodes, so a loop over them is fast."""
    last, counts, everybody = history.latest, history.counts, nodes.cluster.nodes
    places = nodes.positions(counts)
    there = places if nodes is everybody else everybody.positions(counts)
    total = sum([counts[name] for name in there if name != last])
    scores = np.full(len(nodes), MAX_SCORE, np.uint8)
    for name, place in places.items() if total else ():
        if name != last:
            scores[place] = MAX_SCORE * (total - counts[name]) // total or 1
    if (at := nodes.position(last)) is not None:
        scores[at] = 0
    scores.flags.writeable = False
    return scores
