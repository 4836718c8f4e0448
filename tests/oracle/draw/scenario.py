"""A scenario while it is being drawn, and the random source it is drawn from.

A scenario starts with its namespaces; nodes, pods and the rest are added by the modules that draw them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

Obj = dict[str, Any]

NAMESPACES: dict[str, dict[str, str]] = {
    "default": {},
    "prod": {"env": "prod", "team": "a"},
    "staging": {"env": "staging", "team": "a"},
    "team-b": {"team": "b"},
    "bare": {},
}


class Draw(random.Random):
    """A random source with the shapes that scenarios are made of."""

    def chance(self, p: float) -> bool:
        return self.random() < p

    def one(self, *items: Any) -> Any:
        return self.choice(items)

    def text(self, *items: str) -> str:
        return self.choice(items)

    def some(self, items: Sequence[Any], low: int, high: int) -> list[Any]:
        n = min(self.randint(low, high), len(items))
        return self.sample(list(items), n)


class Scenario:
    """What the recorder reads in one line, and what only the drawing needs to know."""

    def __init__(self, name: str, category: str, seed: int, draw: Draw) -> None:
        self.name, self.category, self.seed, self.d = name, category, seed, draw
        self.config: Obj | None = None
        self.cluster: dict[str, list[Obj]] = {"namespaces": [], "nodes": [], "pods": []}
        self.pod: Obj = {}
        self.earlier: list[Obj] = []  # pods that were placed before
        self.events: list[Obj] = []  # what an informer reports
        self.serial = 0
        self.starts: dict[str, set[int]] = {}
        self.alike = 0.0  # how often an existing pod resembles the incoming one
        for ns, labels in NAMESPACES.items():
            if ns != "bare" and draw.chance(0.04):
                continue  # pods may live in a namespace that was not listed yet
            meta: Obj = {"name": ns, "labels": {"kubernetes.io/metadata.name": ns, **labels}}
            self.cluster["namespaces"].append({"metadata": meta, "spec": {}})

    def add(self, kind: str, obj: Obj) -> Obj:
        self.cluster.setdefault(kind, []).append(obj)
        return obj

    @property
    def nodes(self) -> list[Obj]:
        return self.cluster["nodes"]

    def node_names(self) -> list[str]:
        return [n["metadata"]["name"] for n in self.nodes]

    def line(self) -> Obj:
        line = {
            "id": self.name,
            "category": self.category,
            "seed": self.seed,
            "config": self.config,
            "cluster": self.cluster,
            "pod": self.pod,
        }
        return line | {key: rows for key, rows in (("earlier", self.earlier), ("events", self.events)) if rows}
