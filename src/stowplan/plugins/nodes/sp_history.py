"""What SPPriority knows of where an owner's pods have been: the JSON in its annotation, and what nodes score by it.

    {"latest": "b", "node_count": {"a": 1, "b": 2}, "pending": {"<uid of a pod>": "a"}}

`node_count` is how many pods were bound to each node, `latest` the node of the last of them. `pending` are pods that
were given a node and are not counted yet. A pod goes into `pending` before it is bound and from there into the counts,
each in one write that the server takes only on top of what it was made from: so it is counted once, whoever crashes.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from stowplan.columns.arrays import Bytes
from stowplan.columns.views import Nodes
from stowplan.framework.scoring import MAX_SCORE


class _Written(msgspec.Struct, forbid_unknown_fields=True):
    """The fields that are ours; `last` is how the original's code spells `latest`."""

    latest: str | None = None
    last: str | None = None
    node_count: dict[str, Annotated[int, Meta(ge=0)]] | None = None
    pending: dict[str, str] | None = None
    since_halving: Annotated[int, Meta(ge=0)] | None = None


_at_once = msgspec.json.Decoder(_Written)


class History(msgspec.Struct, frozen=True, dict=True):
    latest: str = ""
    counts: dict[str, int] = {}
    pending: dict[str, str] = {}  # nodes, by the pods' uids
    since_halving: int = 0  # pods counted since then, where there is a half-life
    more: dict[str, Any] = {}  # fields that are not ours

    def noted(self, given: Mapping[str, str]) -> History:
        """These pods were given these nodes."""
        return msgspec.structs.replace(self, pending={**self.pending, **given})

    def counted(self, node_name: str, half_life: int = 0) -> History:
        """A pod was bound there. After so many pods as make a half-life all counts are halved."""
        counts = {**self.counts, node_name: self.counts.get(node_name, 0) + 1}
        since = self.since_halving + 1 if half_life else self.since_halving
        if half_life and since >= half_life:
            counts, since = {name: count // 2 for name, count in counts.items() if count > 1}, 0
        return msgspec.structs.replace(self, latest=node_name, counts=counts, since_halving=since)

    def settled(self, uid: str, node_name: str, half_life: int = 0) -> History:
        """A pending pod was bound to this node, or (without one) never was."""
        after = self.counted(node_name, half_life) if node_name else self
        return msgspec.structs.replace(after, pending={each: at for each, at in self.pending.items() if each != uid})

    def among(self, nodes: Nodes) -> History:
        """Without the counts of nodes that are gone, but for the latest."""
        there = (name for name in self.counts if name == self.latest or nodes.position(name) is not None)
        return msgspec.structs.replace(self, counts={name: self.counts[name] for name in there})

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
    kept: tuple[object, Bytes] | None = history.__dict__.get("rated")
    if kept is None or kept[0] is not nodes.token:
        kept = history.__dict__["rated"] = (nodes.token, _rated(history, nodes))
    return kept[1]


def _rated(history: History, nodes: Nodes) -> Bytes:
    """Nodes that are gone count for nothing. A pod has been on few nodes: these are gone through one by one."""
    last, counts, everybody = history.latest, history.counts, nodes.cluster.nodes
    places = nodes.places(counts)
    there = places if nodes is everybody else everybody.places(counts)
    total = sum([counts[name] for name in there if name != last])
    scores = np.full(len(nodes), MAX_SCORE, np.uint8)
    for name, place in places.items() if total else ():
        if name != last:
            scores[place] = MAX_SCORE * (total - counts[name]) // total or 1
    if (at := nodes.position(last)) is not None:
        scores[at] = 0
    scores.flags.writeable = False
    return scores
