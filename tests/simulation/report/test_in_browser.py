"""The page in a real Chromium: it asks for nothing, nothing fails, and one can use and read it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stowplan.apps.cli import main
from stowplan.simulation.report import page
from stowplan.simulation.report.report_run import NO_NODE, FillHistory, ReportRun
from tests.simulation.report import chromium
from tests.simulation.report.chromium import BrowserTab, Chromium
from tests.simulation.report.report_runs import HOSTILE, a_report_run, hostile_run
from tests.simulation.runs import a_cluster_text

PIXEL = """(place => {{
  const canvas = document.querySelectorAll('#heat canvas')[{run}];
  const x = ({node} + .5) * {side} * 2, y = {side};  // two pixels of the canvas for each of the page
  return [...canvas.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3);
}})()"""
PICTURE = "document.querySelector('#heat canvas').toDataURL()"
READOUT = "document.getElementById('readout').textContent"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    path = chromium.program()
    if path is None:
        problem = "no Chromium and no Chrome is there: `make browser` installs one"
        (pytest.fail if os.environ.get("STOWPLAN_BROWSER") == "required" else pytest.skip)(problem)
    with Chromium(path, tmp_path_factory.mktemp("chromium")) as found:
        yield found


def opened(browser: Chromium, folder: Path, *runs: ReportRun, **given: Any) -> BrowserTab:
    """The page of these runs, without a server. Whatever it is, it must ask for nothing, and nothing may fail."""
    file = folder / "report.html"
    file.write_text(page.html(runs), encoding="utf-8")
    return checked(browser, file, **given)


def checked(browser: Chromium, file: Path, **given: Any) -> BrowserTab:
    tab = browser.open(file.as_uri(), **given)
    assert tab.requests == [file.as_uri()] and tab.problems == []
    return tab


def test_a_request_and_an_error_would_be_noticed(browser: Chromium, tmp_path: Path) -> None:
    """The test of the tests: a page with both."""
    file = tmp_path / "page.html"
    file.write_text(
        "<body><img src='missing.png'><script>document.documentElement.dataset.drawn = 1; console.error('no');</script>"
    )
    tab = browser.open(file.as_uri())
    assert tab.requests == [file.as_uri(), f"{tmp_path.as_uri()}/missing.png"]
    assert len(tab.problems) == 2


def test_the_report_of_a_command_has_curves_a_slider_and_tables(browser: Chromium, tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_bytes(a_cluster_text(count=3))
    (tmp_path / "trace.csv").write_text("arrival,duration,cpu,count\n0,1h,1,20\n30m,2h,2,9\n")
    files = [str(tmp_path / name) for name in ("cluster.yaml", "trace.csv", "report.html")]
    said = CliRunner().invoke(main, ["simulate", *files[:2], "--report", files[2]])
    assert said.exit_code == 0, said.output
    tab = checked(browser, Path(files[2]))
    plots = "[...document.querySelectorAll('figure.plot svg')]"
    assert tab.value(f"{plots}.length") == 8  # 6 curves, causes, bands
    assert tab.value(f"{plots}.every(each => each.getBoundingClientRect().width > 300 && each.ariaLabel)")
    assert tab.value(f"{plots}.every(each => each.querySelectorAll('text.title').length == 2)")
    assert tab.value("[...document.querySelectorAll('path.line, path.area')].every(each => each.getTotalLength() > 9)")
    assert tab.value("document.querySelectorAll('#figures tbody tr').length") > 15
    assert tab.value("document.querySelector('#causes table').textContent").count("Insufficient cpu") == 1
    slider = "document.getElementById('moment')"
    assert tab.value(f"{slider}.getBoundingClientRect().width") > 100 and tab.value(f"+{slider}.max") > 50
    assert tab.value(f"{slider}.labels[0].textContent") == "Moment"


def test_the_slider_moves_by_keys_and_the_map_with_it(browser: Chromium, tmp_path: Path) -> None:
    tab = opened(browser, tmp_path, a_report_run(moments=20))
    tab.value("document.getElementById('moment').focus()")
    tab.press("Home", 36)
    first, picture = tab.value(READOUT), tab.value(PICTURE)
    assert first == "After 0 days, by the fullest resource"
    tab.press("ArrowRight", 39)
    assert tab.value(READOUT) == "After 0.37 days, by the fullest resource" and tab.value(PICTURE) != picture
    assert tab.value("document.getElementById('moment').getAttribute('aria-valuetext')") == "0.37 days"
    tab.press("End", 35)
    assert tab.value(READOUT) == "After 7 days, by the fullest resource"
    assert "nodes: " in tab.value("document.querySelector('#heat canvas').getAttribute('aria-label')")


def test_a_resource_can_be_chosen(browser: Chromium, tmp_path: Path) -> None:
    tab = opened(browser, tmp_path, a_report_run())
    picture = tab.value(PICTURE)
    tab.value("""(() => {
      const chosen = document.getElementById('resource');
      chosen.value = '1';
      chosen.dispatchEvent(new Event('change'));
    })()""")
    assert tab.value(READOUT).endswith(", by memory") and tab.value(PICTURE) != picture


def a_filled_run() -> ReportRun:
    """At its one moment one node is empty, one full, one is not there, and one is half full."""
    parts = {"cpu": bytes([0, 100, NO_NODE, 50]), "memory": bytes([0, 7, NO_NODE, 9])}
    return a_report_run(fill=FillHistory([0.0], ["a", "b", "c", "d"], parts))


@pytest.mark.parametrize(
    ("scheme", "empty", "full", "half", "paper"),
    [
        ("light", [244, 247, 250], [8, 48, 95], [79, 151, 201], "rgb(255, 255, 255)"),
        ("dark", [27, 34, 44], [216, 241, 255], [51, 137, 189], "rgb(18, 23, 30)"),
    ],
)
def test_squares_have_the_colours_of_the_legend(
    browser: Chromium, tmp_path: Path, scheme: str, empty: list[int], full: list[int], half: list[int], paper: str
) -> None:
    tab = opened(browser, tmp_path, a_filled_run(), scheme=scheme)
    assert tab.value(BACKGROUND) == paper
    colours = [tab.value(PIXEL.format(run=0, node=node, side=40)) for node in (0, 1, 3)]
    assert colours == [empty, full, half]
    said = "3 nodes: 50% requested on average, 1 full, 1 empty"
    assert tab.value("document.querySelector('#heat .said').textContent") == said


def test_a_node_says_how_full_it_is(browser: Chromium, tmp_path: Path) -> None:
    tab = opened(browser, tmp_path, a_filled_run())
    box = tab.value("(({x, y}) => [x, y])(document.querySelector('#heat canvas').getBoundingClientRect())")
    for node, expected in ((1, "b: 100%"), (2, "c: not there, or without this resource"), (3, "d: 50%")):
        tab.value(f"""document.querySelector('#heat canvas').dispatchEvent(new PointerEvent('pointermove',
          {{clientX: {box[0] + node * 40 + 20}, clientY: {box[1] + 20}}}))""")
        assert tab.value("document.querySelector('#heat .said').textContent") == expected


def test_runs_are_side_by_side_and_one_slider_moves_all(browser: Chromium, tmp_path: Path) -> None:
    tab = opened(
        browser, tmp_path, a_report_run("default"), a_report_run("packed, with a long name"), a_report_run("c")
    )
    assert tab.value("document.querySelectorAll('#heat canvas').length") == 3
    assert tab.value("document.querySelectorAll('input[type=range]').length") == 1
    assert tab.value("document.querySelectorAll('#curves figure:first-child path.line').length") == 6  # and their keys
    assert "packed, with a long name" in tab.value("document.querySelector('#figures thead').textContent")


def test_it_is_printed_light_and_at_the_chosen_moment(browser: Chromium, tmp_path: Path) -> None:
    tab = opened(browser, tmp_path, a_filled_run(), scheme="dark")
    pixel = PIXEL.format(run=0, node=1, side=40)
    tab.value(f"addEventListener('beforeprint', () => {{ window.printed = {pixel}; }})")
    assert tab.pdf().startswith(b"%PDF-")
    assert tab.value("window.printed") == [8, 48, 95]  # full, in light
    assert tab.value(pixel) == [216, 241, 255] and tab.value("document.documentElement.className") == ""
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.value(BACKGROUND) == "rgb(255, 255, 255)"
    assert tab.value("getComputedStyle(document.querySelector('.controls')).display") == "none"
    assert tab.value("document.getElementById('readout').checkVisibility()")


@pytest.mark.parametrize("width", [320, 400, 760, 1200])
def test_nothing_sticks_out_of_a_window(browser: Chromium, tmp_path: Path, width: int) -> None:
    tab = opened(browser, tmp_path, a_report_run("one"), hostile_run(), width=width)
    assert tab.value("document.documentElement.scrollWidth") == width


def test_texts_of_clusters_run_nowhere(browser: Chromium, tmp_path: Path) -> None:
    tab = opened(browser, tmp_path, hostile_run(), a_report_run("b"))
    assert tab.value("document.querySelectorAll('img, iframe, object, [onerror]').length") == 0
    assert tab.value("document.body.textContent").count(HOSTILE) > 15
    box = tab.value("(({x, y}) => [x, y])(document.querySelector('#heat canvas').getBoundingClientRect())")
    tab.value(f"""document.querySelector('#heat canvas').dispatchEvent(new PointerEvent('pointermove',
      {{clientX: {box[0] + 9}, clientY: {box[1] + 9}}}))""")
    assert tab.value("document.querySelector('#heat .said').textContent").startswith(HOSTILE)


def test_a_page_runs_no_other_script(browser: Chromium, tmp_path: Path) -> None:
    """Even if an element got in, the policy of the page would stop it."""
    file = tmp_path / "report.html"
    text = page.html([a_report_run()])
    file.write_text(
        text.replace("</body>", "<script>window.bad = 1</script><img src='x.png' onerror='bad = 2'></body>")
    )
    tab = browser.open(file.as_uri())
    assert tab.value("window.bad") is None and len(tab.problems) >= 2
    assert all("Content Security Policy" in each for each in tab.problems)


def test_5000_nodes_are_drawn(browser: Chromium, tmp_path: Path) -> None:
    tab = opened(browser, tmp_path, a_report_run(nodes=5000, moments=161))
    assert tab.value("document.querySelector('#heat canvas').getBoundingClientRect().height") < 450
    assert tab.value("document.querySelector('#heat .said').textContent").startswith("4,500 nodes: ")


def test_without_javascript_all_but_the_map_is_there(browser: Chromium, tmp_path: Path) -> None:
    tab = opened(browser, tmp_path, a_report_run(), script=False)
    root = tab.call("DOM.getDocument")["root"]["nodeId"]

    def found(selector: str) -> int:
        return len(tab.call("DOM.querySelectorAll", nodeId=root, selector=selector)["nodeIds"])

    assert found("figure.plot svg") >= 8 and found("#figures tr") > 15
    assert found("noscript p") == 1 and found(".controls[hidden]") == 1
