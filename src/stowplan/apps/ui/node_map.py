"""The nodes as a map: a square for each, whose colour says how full it is, or which zone or taint it has.

Nodes are in the order of their names, number by number. `values` has a byte for each: a percentage, `NOTHING` where a
node has none of a resource, or the place of its zone or taint in the legend. On the server the map is one path of SVG
per colour; in the browser a canvas that gets what changed.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stowplan.apps.ui.markup import Markup, element
from stowplan.columns.nodes.table import LiveNames
from stowplan.columns.state import ClusterState
from stowplan.objects.taints import Taint
from stowplan.simulation.report.heat_map import by_number
from stowplan.simulation.report.report_recorder import parts_of
from stowplan.simulation.report.report_run import FULL, NO_NODE

NOTHING = NO_NODE
ZONE, TAINT, FULLEST = "zone", "taint", "fullest"
ZONE_LABELS = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
MOST_COLOURS = 8  # of zones and taints; all others share the last one
OTHERS = "others"
LEVELS = ((0, "empty"), (1, "up to 25%"), (26, "up to 50%"), (51, "up to 75%"), (76, "up to 99%"), (100, "full"))
OWN_TAINTS = "node.kubernetes.io/"

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class NodeMap:
    """`keys`: the legend, a name and a style for each colour. `choices`: what else the map can show."""

    by: str
    names: tuple[str, ...]
    values: bytes
    keys: tuple[tuple[str, str], ...]
    choices: tuple[str, ...]

    @property
    def is_fill(self) -> bool:
        return self.by not in (ZONE, TAINT)

    def style_of(self, value: int) -> str:
        """The style of a square: h0 to h5 by how full it is, f1 to f8 by zone or taint, none."""
        if value == NOTHING:
            return "none"
        return f"h{level(value)}" if self.is_fill else f"k{value}"

    def says(self, at: int) -> str:
        """What is said of a node."""
        value = self.values[at]
        if value == NOTHING:
            return f"none of {self.by}" if self.is_fill else f"no {self.by}"
        return f"{value}%" if self.is_fill else self.keys[value][0]

    @property
    def summary(self) -> str:
        """The map in a sentence, for those who do not see it."""
        known = [value for value in self.values if value != NOTHING]
        if self.is_fill:
            mean = round(sum(known) / len(known)) if known else 0
            full, empty = known.count(FULL), known.count(0)
            return f"{len(known):,} nodes: {mean}% requested on average, {full:,} full, {empty:,} empty"
        counts = Counter(self.says(at) for at in range(len(self.values)))
        return ", ".join(f"{name}: {number:,}" for name, number in counts.most_common())

    def as_json(self) -> dict[str, Any]:
        return {
            "by": self.by,
            "choices": self.choices,
            "names": self.names,
            "values": base64.b64encode(self.values).decode(),
            "nothing": NOTHING,
            "fill": self.is_fill,
            "keys": [{"name": name, "style": style} for name, style in self.keys],
        }


class NodeMaps:
    """Makes maps of a state. The order of the nodes is kept until a node comes or goes."""

    def __init__(self) -> None:
        self._live: LiveNames | None = None
        self._names: tuple[str, ...] = ()
        self._order = np.zeros(0, np.int64)

    def of(self, state: ClusterState, by: str = FULLEST) -> NodeMap:
        """Return the map by a resource, by zone or by taint; by the fullest resource if there is no such."""
        self._sort(state)
        parts = parts_of(state)
        choices = (FULLEST, *sorted(parts, key=_resource_order), ZONE, TAINT)
        if by not in choices:
            by = FULLEST
        if by in (ZONE, TAINT):
            texts = _zones(state) if by == ZONE else _taints(state)
            codes, names = _coded([texts[at] for at in self._order])
            keys = tuple((name, f"k{at}") for at, name in enumerate(names))
            missing = ((f"no {by}", "none"),) if NOTHING in codes else ()
            return NodeMap(by, self._names, codes, (*keys, *missing), choices)
        values = fullest(list(parts.values()), len(self._names)) if by == FULLEST else parts[by]
        keys = tuple((name, f"h{at}") for at, (_, name) in enumerate(LEVELS))
        return NodeMap(by, self._names, values[self._order].tobytes(), keys, choices)

    def _sort(self, state: ClusterState) -> None:
        live = state.table.live_names()
        if live is self._live:
            return
        names = list(live)
        order = sorted(range(len(names)), key=lambda at: by_number(names[at]))
        self._live, self._order = live, np.array(order, np.int64)
        self._names = tuple(names[at] for at in order)


def fullest(parts: Sequence[Bytes], number: int) -> Bytes:
    """Return the percentage of each node's fullest resource."""
    found: Bytes = np.zeros(number, np.uint8)
    for each in parts:
        np.maximum(found, np.where(each == NOTHING, 0, each).astype(np.uint8), out=found)
    return found


def level(percent: int) -> int:
    return max(at for at, (least, _) in enumerate(LEVELS) if percent >= least)


def _resource_order(name: str) -> tuple[int, str]:
    return (("cpu", "memory").index(name) if name in ("cpu", "memory") else 2), name


def _zones(state: ClusterState) -> list[str]:
    nodes = (state.table.nodes[row] for row in state.table.live_rows().tolist())
    found = (
        next((node.labels[key] for key in ZONE_LABELS if key in node.labels), "") if node else "" for node in nodes
    )
    return list(found)


def _taints(state: ClusterState) -> list[str]:
    nodes = (state.table.nodes[row] for row in state.table.live_rows().tolist())
    return [_told(node.spec.taints) if node else "" for node in nodes]


def _told(taints: Sequence[Taint]) -> str:
    return ", ".join(sorted(f"{each.key.removeprefix(OWN_TAINTS)}:{each.effect}" for each in taints))


def _coded(texts: Sequence[str]) -> tuple[bytes, list[str]]:
    """Return a byte for each text, and the texts that the bytes mean: those of most nodes, then all others."""
    known = [name for name, _ in Counter(filter(None, texts)).most_common()]
    names = sorted(known) if len(known) <= MOST_COLOURS else [*sorted(known[: MOST_COLOURS - 1]), OTHERS]
    code = {name: at for at, name in enumerate(names)}
    last = code.get(OTHERS, 0)
    return bytes(code.get(text, last) if text else NOTHING for text in texts), names


# -- as SVG


def svg(found: NodeMap, columns: int = 100) -> Markup:
    """Return the map as it is drawn on the server: a path for each colour."""
    number = len(found.names)
    columns = min(columns, max(round((number * 3) ** 0.5), 10)) if number < columns * 10 else columns
    rows = -(-number // columns) if number else 1
    paths: dict[str, list[str]] = {}
    for at, value in enumerate(found.values):
        paths.setdefault(found.style_of(value), []).append(f"M{at % columns * 10} {at // columns * 10}h9v9h-9z")
    drawn = [element("path", d="".join(each), class_=style) for style, each in sorted(paths.items())]
    return element(
        "svg", *drawn, class_="still", viewBox=f"0 0 {columns * 10} {rows * 10}", role="img", aria_label=found.summary,
    )  # fmt: skip


def legend(found: NodeMap) -> Markup:
    items = [
        element("li", element("svg", element("rect", width=12, height=12, class_=style), class_="key",
                              viewBox="0 0 12 12", aria_hidden="true"), " ", name)
        for name, style in found.keys
    ]  # fmt: skip
    return element("ul", *items, class_="legend")
