"""The dashboards of deploy/monitoring as data: their panels, and the queries as Grafana would send them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.monitoring.prometheus import MONITORING, RANGE

FOLDER = MONITORING / "dashboards"
VARIABLES = {"$job": ".*stowplan.*", "$__rate_interval": RANGE}


@dataclass(frozen=True)
class Panel:
    dashboard: str
    title: str
    queries: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"{self.dashboard}: {self.title}"


def documents() -> dict[str, dict[str, Any]]:
    """The files by their stem."""
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in sorted(FOLDER.glob("*.json"))}


def panels(*names: str) -> Iterator[Panel]:
    """The panels of these dashboards, of all without a name."""
    for name, document in documents().items():
        if not names or name in names:
            for panel in document["panels"]:
                queries = tuple(_filled(target["expr"]) for target in panel["targets"])
                yield Panel(name, panel["title"], queries)


def _filled(expression: str) -> str:
    for variable, value in VARIABLES.items():
        expression = expression.replace(variable, value)
    return expression
