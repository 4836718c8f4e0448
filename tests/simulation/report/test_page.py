"""The page as text: what it has, how large it is, that it is the same each time, and that no name becomes HTML."""

from __future__ import annotations

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from typing import Any

import msgspec
import numpy as np
import pytest

from stowplan.simulation.report import heat_map, page
from stowplan.simulation.report.figure_table import FigureRow, difference, percent, whole
from stowplan.simulation.report.report_run import NO_NODE, CauseHistory, FillHistory, ReportRun
from tests.simulation.report.report_runs import CONFIGURATION, HOSTILE, RESOURCES, a_report_run, hostile_run

MOST = 2_000_000
PACKED = CONFIGURATION.replace("LeastAllocated", "MostAllocated")


class PageParts(HTMLParser):
    """The elements of a page with their attributes, and its texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        (self.scripts if self.elements and self.cdata_elem == "script" else self.texts).append(data)


def heat_data(text: str) -> dict[str, Any]:
    """What the script of the page reads."""
    found = re.search(r'<script type="application/json" id="heat-data">(.*?)</script>', text)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_a_page_of_5000_nodes_and_a_week_is_small() -> None:
    """Of the worst run: every percentage of every node is another one each time."""
    assert len(page.html([a_report_run(nodes=5000, moments=161, samples=10_081)]).encode()) <= MOST


def test_a_page_of_eight_runs_of_5000_nodes_is_small() -> None:
    run = a_report_run(nodes=5000, moments=30, samples=10_081)
    assert len(page.html([run] * 8).encode()) <= MOST


def test_the_same_runs_give_the_same_page() -> None:
    assert page.html([a_report_run(), a_report_run("b")]) == page.html([a_report_run(), a_report_run("b")])


def test_a_run_can_come_from_another_process() -> None:
    run = a_report_run()
    there = msgspec.msgpack.decode(msgspec.msgpack.encode(run), type=ReportRun)
    assert there == run and page.html([there]) == page.html([run])


def test_a_page_names_no_address() -> None:
    text = page.html([a_report_run(), a_report_run("packed", configuration=PACKED)])
    assert re.findall(r"https?:|url\(|@import|\ssrc=|//[a-z]", text.replace("// ", "")) == []
    assert [value for name, value in PageParts(text).attributes if name == "href"] == ["data:,"]
    assert "default-src 'none'; script-src 'sha256-" in text and "unsafe" not in text


def test_texts_of_clusters_stay_texts() -> None:
    ordinary, hostile = PageParts(page.html([a_report_run()] * 2)), PageParts(page.html([hostile_run()] * 2))
    assert set(hostile.elements) <= set(ordinary.elements)
    assert {name for name, _ in hostile.attributes} <= {name for name, _ in ordinary.attributes}
    assert hostile.elements.count("script") == ordinary.elements.count("script") == 2
    assert len([each for each in hostile.texts if HOSTILE in each]) > 20
    assert any("\N{REPLACEMENT CHARACTER}" in each for each in hostile.texts)  # U+0000 of its configuration


def test_one_run_has_its_figures_and_its_configuration() -> None:
    parts = PageParts(page.html([a_report_run()]))
    shown = ("8,900", "Pods that wait, by cause", "Free, but too scattered, cpu", "research", CONFIGURATION)
    for expected in shown:
        assert any(expected.strip() in each for each in parts.texts), expected
    assert parts.elements.count("select") == 1 and parts.elements.count("canvas") == 1


def test_runs_are_compared_with_the_first() -> None:
    other = a_report_run("packed", configuration=PACKED)
    other.figures["pods"]["placed"], other.figures["allocation"]["cpu"] = 4450, 0.6
    texts = PageParts(page.html([a_report_run("default"), other, a_report_run("again")])).texts
    assert "−50%" in texts and "+10 points" in texts and "same" in texts
    assert "-    args: {scoringStrategy: {type: LeastAllocated}}" in texts
    assert "+    args: {scoringStrategy: {type: MostAllocated}}" in texts
    assert "again has the same configuration as default." in texts


def test_curves_are_of_the_first_eight_runs_and_the_table_of_all() -> None:
    text = page.html([a_report_run(f"run {each}") for each in range(10)])
    parts = PageParts(text)
    assert "Below are the first 8 runs." in parts.texts and parts.elements.count("canvas") == 8
    (table,) = re.findall(r'<table class="figures".*?</table>', text, re.DOTALL)
    assert "run 9" in table and table.count('class="key line-key"') == 8


@pytest.mark.parametrize(
    ("value", "first", "in_points", "text"),
    [
        (110, 100, False, "+10%"), (105, 100, False, "+5.0%"), (50, 100, False, "−50%"), (100, 100.2, False, "same"),
        (5, 0, False, "was 0"), (0.5, 0.4, True, "+10 points"), (0.399, 0.4, True, "−0.1 points"),
    ],
)  # fmt: skip
def test_a_difference_is_short(value: float, first: float, in_points: bool, text: str) -> None:
    row = FigureRow("x", (), percent if in_points else whole, in_points)
    assert difference(row, value, first) == text


def test_a_run_without_nodes_and_pods_has_a_page() -> None:
    run = a_report_run(
        series=[], waits=[], fill=FillHistory([0.0], [], {}), causes=CauseHistory([0.0], {}), configuration=""
    )
    run.figures.update(seconds=0.0, allocation={}, utilisation={}, fragmentation={})
    run.figures["waiting"] = dict.fromkeys(run.figures["waiting"])
    run.figures["pods"].update(arrived=0, placed=0)
    texts = PageParts(page.html([run])).texts
    assert "No pod requested anything of a node." in texts and any("default configuration" in each for each in texts)


def test_the_heat_map_gets_what_was_recorded() -> None:
    run = a_report_run(nodes=12, moments=7)
    data = heat_data(heat_map.heat_map([run]))
    (told,) = data["runs"]
    assert told["moments"] == [round(each, 3) for each in run.fill.moments]
    names = json.loads(zlib.decompress(base64.b64decode(data["nodes"])))
    assert names == [f"node-{each}" for each in range(12)]  # node-2 before node-10
    for resource, text in zip(RESOURCES, told["parts"], strict=True):
        rows = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8).reshape(7, 12)
        assert np.cumsum(rows, axis=0, dtype=np.uint8).tobytes() == run.fill.parts[resource]


def test_runs_with_other_nodes_have_them_at_the_same_places() -> None:
    few, many = a_report_run("few", nodes=2, moments=1), a_report_run("many", nodes=4, moments=1)
    data = heat_data(heat_map.heat_map([few, many]))
    parts = [zlib.decompress(base64.b64decode(run["parts"][0])) for run in data["runs"]]
    assert parts[0][2:] == bytes([NO_NODE] * 2) and parts[1] == many.fill.parts["cpu"]


def test_moments_are_left_out_where_there_is_no_room() -> None:
    run = a_report_run(nodes=100, moments=33)
    told = heat_data(heat_map.heat_map([run], most_bytes=4_000))["runs"]
    moments = told[0]["moments"]
    assert moments[0] == 0 and moments[-1] == run.fill.moments[-1] and 2 <= len(moments) <= 9
    assert sum(map(len, told[0]["parts"])) <= 4_000
