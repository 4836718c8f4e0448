"""What SPPriority knows of where an owner's pods have been: the JSON in its annotation, and what nodes score by it.

    {"latest": "b", "node_count": {"a": 1, "b": 2}, "pending": {"<uid of a pod>": "a"}}

`node_count` is how many pods were bound to each node, `latest` the node of the last of them. `pending` are pods that
were given a node and are not counted yet. A pod goes into `pending` before it is bound and from there into the counts,
each in one write that the server takes only on top of what it was made from: so it is counted once, whoever crashes.
A server takes annotations of 256 KiB in all, so both have a bound: `among`, `noted`.
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
    """The fields that are ours; `last` is how the original's code spells `latest`."""

    latest: str | None = None
    last: str | None = None
    node_count: dict[str, Annotated[int, Meta(ge=0)]] | None = None
    pending: dict[str, str] | None = None
    since_halving: Annotated[int, Meta(ge=0)] | None = None


_at_once = msgspec.json.Decoder(_Written)


class LastScores:
    """The scores computed last, and the nodes they are for (`Nodes.token`)."""

    __slots__ = ("nodes", "scores")

    def __init__(self) -> None:
        self.nodes: object = None
        self.scores: Bytes | None = None


class History(msgspec.Struct, frozen=True, dict=True):
    latest: str = ""
    counts: dict[str, int] = {}
    pending: dict[str, str] = {}  # nodes, by the pods' uids
    since_halving: int = 0  # pods counted since then, where there is a half-life
    more: dict[str, Any] = {}  # fields that are not ours

    @cached_property
    def last_scores(self) -> LastScores:
        """A cache for `rated`; no part of the history's value."""
        return LastScores()

    def noted(self, given: Mapping[str, str]) -> History:
        """These pods were given these nodes; of those that are new here, as many as there is room for."""
        again = {uid: at for uid, at in given.items() if uid in self.pending}
        new = ((uid, at) for uid, at in given.items() if uid not in self.pending)
        room = max(MOST_PENDING - len(self.pending), 0)
        return msgspec.structs.replace(self, pending={**self.pending, **again, **dict(islice(new, room))})

    @property
    def crowded(self) -> bool:
        """Is there room for no other pod?"""
        return len(self.pending) >= MOST_PENDING

    def counted(self, node_names: Iterable[str], half_life: int = 0) -> History:
        """Pods were bound there, one after the other. After as many as make a half-life all counts are halved."""
        latest, counts, since = self.latest, dict(self.counts), self.since_halving
        for latest in node_names:
            counts[latest] = counts.get(latest, 0) + 1
            since += bool(half_life)
            if half_life and since >= half_life:
                counts, since = {name: count // 2 for name, count in counts.items() if count > 1}, 0
        return msgspec.structs.replace(self, latest=latest, counts=counts, since_halving=since)

    def settled(self, where: Mapping[str, str], half_life: int = 0) -> History:
        """Pending pods were bound to these nodes, or (without one) never were."""
        after = self.counted(filter(None, where.values()), half_life)
        left = {uid: at for uid, at in self.pending.items() if uid not in where}
        return msgspec.structs.replace(after, pending=left)

    def among(self, nodes: Nodes, most: int) -> History:
        """Without the counts of nodes that are gone, but for the latest; and of the others not more than so many."""
        there = nodes.positions(self.counts)
        counts = {name: count for name, count in self.counts.items() if name == self.latest or name in there}
        if len(counts) > most:
            # Among equals the last to come are kept: a node is not forgotten as soon as another one had its turn.
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
        fields |= {"last": self.latest} if "last" in self.more else {}  # who wrote it will read it
        return msgspec.json.encode(fields).decode()


@lru_cache(maxsize=128)
def read(text: str | None) -> History | None:
    """What an annotation says; None if it says something that cannot be read."""
    if text is None or not text.strip():
        return History()
    try:
        ours, more = _decoded(text)
    except (msgspec.MsgspecError, RecursionError):
        return None
    latest = ours.latest or ours.last or ""
    return History(latest, ours.node_count or {}, ours.pending or {}, ours.since_halving or 0, more)


def _decoded(text: str) -> tuple[_Written, dict[str, Any]]:
    """Our fields, and those that must be kept besides. Most texts have none of these, and are read at once."""
    try:
        ours = _at_once.decode(text)
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
    """Nodes that are gone count for nothing. A pod has been on few nodes: these are gone through one by one."""
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
