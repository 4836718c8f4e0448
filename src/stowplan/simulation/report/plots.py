"""Plots as SVG: lines, and areas on top of each other. Their colours are classes of the page's style.

Each plot is 480 units wide, so that it can be read on a telephone. A line has its name at its end; areas have a legend
that is a table or a list beside the plot.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from stowplan.simulation.report.axes import PlotAxis, Point, thinned

WIDTH, HEIGHT = 480, 252
LEFT, TOP, BOTTOM = 50, 30, 42
NARROW, WIDE = 16, 124  # margins at the right
APART = 15  # between the names of two lines
MOST_NAME = 12  # characters of a name at the end of a line
COLOURS = 8  # that the style has


class PlotLine(NamedTuple):
    name: str
    points: Sequence[Point]
    colour: int  # 1 to COLOURS


class PlotLayer(NamedTuple):
    """`colour`: a class of the style."""

    values: Sequence[float]
    colour: str


class Plot(NamedTuple):
    """`said`: what the plot shows, for those who do not see it."""

    title: str
    said: str
    across: PlotAxis
    up: PlotAxis
    margin: int = NARROW  # at the right; `WIDE` has room for the names of lines

    @property
    def right(self) -> int:
        return WIDTH - self.margin

    def x(self, value: float) -> float:
        return LEFT + self.across.part(value) * (self.right - LEFT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - self.up.part(value) * (HEIGHT - TOP - BOTTOM)

    def of_lines(self, lines: Sequence[PlotLine]) -> str:
        """Return the plot with these lines."""
        drawn = "".join(self._line(each) for each in lines)
        return self._figure(drawn + self._names([each for each in lines if each.points and each.name]))

    def of_layers(self, moments: Sequence[float], layers: Sequence[PlotLayer]) -> str:
        """Return the plot with areas, the first at the bottom."""
        below, drawn = [0.0] * len(moments), []
        for layer in layers:
            above = [each + more for each, more in zip(below, layer.values, strict=True)]
            there = [*zip(moments, above, strict=True), *reversed([*zip(moments, below, strict=True)])]
            drawn.append(f'<path class="area {layer.colour}" d="{self._path(there)}Z"/>')
            below = above
        return self._figure("".join(drawn))

    def _line(self, line: PlotLine) -> str:
        if not line.points:
            return ""
        return f'<path class="line c{line.colour}" d="{self._path(thinned(line.points))}"/>'

    def _path(self, points: Iterable[Point]) -> str:
        return "M" + "L".join(f"{self.x(at):.1f} {self.y(value):.1f}" for at, value in points)

    def _names(self, lines: Sequence[PlotLine]) -> str:
        """The names at the ends of the lines, moved apart where they would cover each other."""
        ends = sorted((self.y(line.points[-1][1]), position) for position, line in enumerate(lines))
        found: list[str] = []
        lowest: float = TOP - APART
        room = HEIGHT - BOTTOM - APART * len(ends)  # the names that follow need their places, too
        for place, (wanted, position) in enumerate(ends):
            line = lines[position]
            at = max(min(wanted, room + APART * (place + 1)), lowest + APART)
            lowest, x = at, self.x(line.points[-1][0])
            found.append(
                f'<circle class="dot c{line.colour}" cx="{x:.1f}" cy="{wanted:.1f}" r="3"/>'
                f'<path class="lead" d="M{x + 4:.1f} {wanted:.1f}L{self.right + 12} {at:.1f}"/>'
                f'<path class="line c{line.colour}" d="M{self.right + 12} {at:.1f}h16"/>'
                f'<text x="{self.right + 32}" y="{at + 4:.1f}">{escape(cut(line.name))}</text>'
            )
        return "".join(found)

    def _figure(self, drawn: str) -> str:
        return (
            f'<figure class="plot"><figcaption>{escape(self.title)}</figcaption>'
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(self.said)}">'
            f"{self._axes()}{drawn}</svg></figure>"
        )

    def _axes(self) -> str:
        bottom, right = HEIGHT - BOTTOM, self.right
        up = "".join(
            f'<path class="grid" d="M{LEFT} {self.y(value):.1f}H{right}"/>'
            f'<text class="mark" text-anchor="end" x="{LEFT - 6}" y="{self.y(value) + 4:.1f}">{escape(text)}</text>'
            for value, text in self.up.marks
        )
        across = "".join(
            f'<path class="axis" d="M{self.x(value):.1f} {bottom}v4"/>'
            f'<text class="mark" text-anchor="middle" x="{self.x(value):.1f}" y="{bottom + 17}">{escape(text)}</text>'
            for value, text in self.across.marks
        )
        titles = (
            f'<text class="title" x="4" y="12">{escape(self.up.title)}</text>'
            f'<text class="title" text-anchor="middle" x="{(LEFT + right) / 2}" y="{HEIGHT - 6}">'
            f"{escape(self.across.title)}</text>"
        )
        return f'{up}{across}<path class="axis" d="M{LEFT} {bottom}H{right}"/>{titles}'


def cut(name: str, most: int = MOST_NAME) -> str:
    """Return a name, or its beginning where it is long."""
    return name if len(name) <= most else f"{name[: most - 1]}…"
