"""How many nodes are how full, over time. A node counts by its fullest resource: that is what stops the next pod."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from stowplan.simulation.report import legends
from stowplan.simulation.report.axes import amount_axis, time_axis
from stowplan.simulation.report.plots import Plot, PlotLayer
from stowplan.simulation.report.report_run import FULL, NO_NODE, FillHistory, ReportRun


class FillBand(NamedTuple):
    name: str
    low: int  # percent, both included
    high: int
    colour: str


BANDS = (
    FillBand("full", FULL, FULL, "h5"),
    FillBand("75% to 99%", 75, FULL - 1, "h4"),
    FillBand("50% to 74%", 50, 74, "h3"),
    FillBand("25% to 49%", 25, 49, "h2"),
    FillBand("1% to 24%", 1, 24, "h1"),
    FillBand("empty", 0, 0, "h0"),
)


def rows_of(fill: FillHistory, resource: str) -> npt.NDArray[np.uint8]:
    """Return a row for each moment, with the percentage of each node."""
    return np.frombuffer(fill.parts[resource], np.uint8).reshape(len(fill.moments), len(fill.nodes))


def fullest(fill: FillHistory) -> npt.NDArray[np.uint8]:
    """Return the same of each node's fullest resource."""
    highest = np.full((len(fill.moments), len(fill.nodes)), -1, np.int16)
    for resource in fill.parts:
        rows = rows_of(fill, resource).astype(np.int16)
        np.maximum(highest, np.where(rows == NO_NODE, -1, rows), out=highest)
    return np.where(highest < 0, NO_NODE, highest).astype(np.uint8)


def nodes_by_band(fill: FillHistory) -> list[list[int]]:
    """Return for each band the number of its nodes at each moment."""
    counts = np.stack([np.bincount(row, minlength=NO_NODE + 1) for row in fullest(fill)])
    return [counts[:, band.low : band.high + 1].sum(axis=1).tolist() for band in BANDS]


def band_plot(run: ReportRun, title: str, length: float, most_nodes: int) -> str:
    """Return the plot of a run. `length` and `most_nodes`: where the axes end, the same for all runs."""
    across, up = time_axis(length), amount_axis("nodes", [most_nodes])
    bands = list(zip(BANDS, nodes_by_band(run.fill), strict=True))
    layers = [PlotLayer(nodes, band.colour) for band, nodes in bands]
    said = f"{title}: how many nodes are full, 75% to 99% and so on, empty, over {across.title}"
    plot = Plot(title, said, across, up).of_layers(run.fill.moments, layers)
    return f'<div class="beside">{plot}{_table(bands)}</div>'


def _table(bands: Sequence[tuple[FillBand, Sequence[int]]]) -> str:
    """Return the table that is also the legend."""
    rows = "".join(
        f'<tr><th scope="row">{legends.key(band.colour)} {escape(band.name)}</th><td>{max(nodes):,}</td>'
        f"<td>{sum(nodes) / len(nodes):,.1f}</td><td>{nodes[-1]:,}</td></tr>"
        for band, nodes in reversed(bands)  # as the areas lie on each other
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("nodes", "at most", "on average", "at the end"))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
