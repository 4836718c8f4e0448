"""The heat map: a square for each node, whose colour says how full the node is at the moment that a slider chooses.

The percentages are in the page: by node the difference to the moment before, deflated, in base64. If that is too large
for the page, only every second or third moment is there, and so on. `heat_map_script` draws it.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Sequence
from html import escape

import msgspec
import numpy as np
import numpy.typing as npt

from stowplan.simulation import durations
from stowplan.simulation.report import fill_bands, legends
from stowplan.simulation.report.axes import time_unit
from stowplan.simulation.report.curves import length_of, resources_of, short
from stowplan.simulation.report.fill_bands import BANDS
from stowplan.simulation.report.report_run import NO_NODE, ReportRun

MOST_BYTES = 1_400_000  # in base64, of all runs
_DIGITS = re.compile(r"(\d+)")

Rows = npt.NDArray[np.uint8]


def heat_map(runs: Sequence[ReportRun], most_bytes: int = MOST_BYTES) -> str:
    """Return the part of the page. Runs have each node at the same place."""
    nodes = sorted({name for run in runs for name in run.fill.nodes}, key=by_number)
    resources = [name for name in resources_of(runs) if any(name in run.fill.parts for run in runs)]
    if not nodes or not resources:
        return "<p>No pod requested anything of a node.</p>"
    unit = time_unit(length_of(runs))
    data = {
        "nodes": packed(msgspec.json.encode(nodes)), "count": len(nodes), "noNode": NO_NODE,
        "unit": unit.name, "seconds": unit.seconds, "begin": _fullest_moment(runs[0]),
        "resources": [short(name) for name in resources],
        "runs": _fitting(runs, nodes, resources, most_bytes),
    }  # fmt: skip
    text = msgspec.json.encode(data).decode().replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    several = len(runs) > 1
    maps = "".join(
        f'<figure class="map">{f"<figcaption>{escape(run.name)}</figcaption>" if several else ""}'
        f'<canvas role="img" data-run="{place}"></canvas><p class="said"></p></figure>'
        for place, run in enumerate(runs)
    )
    options = "".join(f'<option value="{place}">{escape(short(name))}</option>' for place, name in enumerate(resources))
    keys = [*((band.name, band.colour) for band in reversed(BANDS)), ("no such node, or none of this resource", "none")]
    return (
        '<div id="heat"><noscript><p>The map of the nodes needs JavaScript. Everything else on this page does not.</p>'
        '</noscript><p id="too-old" hidden>This browser is too old for the map of the nodes.</p>'
        '<div class="controls" hidden><label for="resource">Show</label> <select id="resource">'
        f'<option value="-1">the fullest resource</option>{options}</select> '
        '<button type="button" id="play">Play</button> <label for="moment">Moment</label> '
        '<input type="range" id="moment" min="0" value="0" step="1"></div>'
        f'<p class="moment"><output id="readout" for="moment"></output></p>{legends.legend(keys)}'
        f'<div class="{"maps" if several else ""}">{maps}</div>'
        f"<p>A square for each node, by name, row by row from {escape(nodes[0])} to {escape(nodes[-1])}. "
        f"The run was looked at {_often(runs[0].fill.moments)}.</p></div>"
        f'<script type="application/json" id="heat-data">{text}</script>'
    )


def _often(moments: Sequence[float]) -> str:
    if len(moments) < 3:
        return "at its end" if len(moments) == 1 else "twice"
    return f"every {durations.shown(moments[1] - moments[0])}"


def by_number(name: str) -> list[tuple[int, int, str]]:
    """For an order of names in which node-2 comes before node-10."""
    parts = _DIGITS.split(name)
    return [(1, int(each), each) if place % 2 else (0, 0, each) for place, each in enumerate(parts)]


def _fullest_moment(run: ReportRun) -> float:
    """Return when most was requested: there the slider begins."""
    rows = fill_bands.fullest(run.fill)
    there = rows != NO_NODE
    sums = np.where(there, rows, 0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    return run.fill.moments[int(sums.argmax())]


def _fitting(
    runs: Sequence[ReportRun], nodes: Sequence[str], resources: Sequence[str], most_bytes: int
) -> list[dict[str, object]]:
    """Return the data of the runs, with as many moments as there is room for."""
    every, most = 1, max(len(run.fill.moments) for run in runs)
    while True:
        packs = [_parts(run, nodes, resources, every) for run in runs]
        size = sum(len(text) for each in packs for text in each)
        if every >= most or size <= most_bytes:
            return [
                {"name": run.name, "moments": [round(run.fill.moments[each], 3) for each in _chosen(run, every)],
                 "parts": parts}
                for run, parts in zip(runs, packs, strict=True)
            ]  # fmt: skip
        every = max(every + 1, int(every * size / most_bytes))


def _chosen(run: ReportRun, every: int) -> list[int]:
    """Which moments are on the page: the last always is."""
    last = len(run.fill.moments) - 1
    return sorted({*range(0, last, every), last})


def _parts(run: ReportRun, nodes: Sequence[str], resources: Sequence[str], every: int) -> list[str]:
    place = {name: position for position, name in enumerate(nodes)}
    columns = np.array([place[name] for name in run.fill.nodes], np.int64)
    chosen, found = _chosen(run, every), []
    for resource in resources:
        rows = np.full((len(chosen), len(nodes)), NO_NODE, np.uint8)
        if resource in run.fill.parts:
            rows[:, columns] = fill_bands.rows_of(run.fill, resource)[chosen]
        found.append(packed(differences(rows).tobytes()))
    return found


def differences(rows: Rows) -> Rows:
    """Return the rows, each but the first as its difference to the one before, modulo 256."""
    found = rows.copy()
    found[1:] -= rows[:-1]
    return found


def packed(text: bytes) -> str:
    """Return it deflated, in base64."""
    return base64.b64encode(zlib.compress(text, 9)).decode()
