"""Simulations: runs side by side, over time, with a slider that moves the map. The parts are those of the report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from stowplan.apps.ui.markup import Markup, element, fragment, prepared, readable
from stowplan.apps.ui.simulated_runs import SimulatedRuns
from stowplan.apps.ui.view import Json, View, empty
from stowplan.simulation import durations
from stowplan.simulation.report import page as report
from stowplan.simulation.report.curves import length_of
from stowplan.simulation.report.plots import COLOURS
from stowplan.simulation.report.report_run import ReportRun

NONE = "No simulation is shown: start with --simulation FOLDER, which `stowplan simulate --out FOLDER` wrote."


def read(found: SimulatedRuns, query: Mapping[str, str]) -> dict[str, Any]:
    """`query`: `runs` names the runs to show, with commas between; without it all."""
    wanted = [each for each in query.get("runs", "").split(",") if each]
    runs = [each for each in found.runs if not wanted or each.name in wanted] or found.runs
    return {
        "names": [each.name for each in found.runs],
        "runs": [{"name": each.name, "facts": each.facts, "summary": each.figures} for each in runs],
        "shown": ShownRuns(runs),
    }


@dataclass(frozen=True)
class ShownRuns:
    """The runs themselves, for the page. The JSON has their figures already."""

    runs: list[ReportRun]

    def as_json(self) -> list[str]:
        return [each.name for each in self.runs]


def show(data: Json) -> View:
    runs = data["shown"].runs
    if not runs:
        return View("Simulations", {"none": empty(NONE)})
    nodes = max(run.figures["nodes"]["most"] for run in runs)
    text = f"{durations.shown(length_of(runs))} of a cluster with up to {nodes:,} nodes, in virtual time."
    body = prepared(readable("\n".join(report.parts(runs))))
    parts = {
        "choice": _choice(data) if len(data["names"]) > 1 else Markup(""),
        "summary": fragment(element("p", text), _facts(data)),
        "report": element("div", body, class_="report"),
    }
    shown = {name: each for name, each in parts.items() if each}
    return View("Simulations", shown, styles=("/static/report.css",), scripts=("/static/report.js",))


def _choice(data: Json) -> Markup:
    links = [
        element("li", element("a", each, href=f"/simulations?runs={quote(each, safe='')}")) for each in data["names"]
    ]
    most = f" The first {COLOURS} are drawn." if len(data["names"]) > COLOURS else ""
    return fragment(element("p", f"{len(data['names'])} runs, side by side.{most} One alone:"), element("ul", *links))


def _facts(data: Json) -> Markup | None:
    if len(data["runs"]) != 1 or not data["runs"][0]["facts"]:
        return None
    told = ", ".join(f"{name}: {value}" for name, value in data["runs"][0]["facts"].items())
    return element("p", told, class_="note")
