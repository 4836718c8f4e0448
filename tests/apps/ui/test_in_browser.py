"""The pages in a real Chromium: of the embedded cluster as it changes, and of a dump. No request leaves the machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from playwright.sync_api import Browser, expect

from tests.apps.ui import busy_cluster, hostile
from tests.apps.ui.browser_page import LIVE, WatchedPage, opened
from tests.apps.ui.pages_process import PAGES, EmbeddedServer, ServedPages, served, up
from tests.apps.ui.screenshots import simulated

WITHIN = 30_000.0  # milliseconds in which something must appear
AXE = Path(AXE_FILE_PATH).read_text(encoding="utf-8")
SERIOUS = ("serious", "critical")
PIXELS = "document.querySelector('#heat canvas').toDataURL()"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, browser: Browser) -> Iterator[tuple[ServedPages, EmbeddedServer]]:
    with up(tmp_path_factory.mktemp("up"), "--nodes", "6") as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def dump(folder: Path, browser: Browser) -> Iterator[ServedPages]:
    file = busy_cluster.write(folder / "dump.json")
    config = busy_cluster.write_configuration(folder / "config.yaml")
    with served("--from", file, "--simulation", simulated(folder), "--config", config) as found:
        yield found


def explained(server: EmbeddedServer, *arguments: str) -> Any:
    command = [sys.executable, "-m", "stowplan.apps.cli", "explain", *arguments, "-o", "json"]
    done = subprocess.run(
        [*command, "--kubeconfig", str(server.kubeconfig)], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


# -- the embedded cluster, live


def test_a_pod_appears_without_a_reload(browser: Browser, cluster: tuple[ServedPages, EmbeddedServer]) -> None:
    pages, server = cluster
    with opened(browser, pages) as found:
        page = found.go("/", live=True)
        page.evaluate("window.kept = 1")
        figures = page.locator("#figures")
        expect(figures).to_contain_text("6")
        server.create_pod("appears", cpu="2")
        expect(page.locator("#figures div", has_text="Pods on nodes").locator("dd")).to_have_text(
            re.compile(r"^\s*1\s*$"), timeout=WITHIN
        )
        server.create_pod("waits", cpu="900")
        expect(page.locator("#waiting")).to_contain_text("default/waits", timeout=WITHIN)
        expect(page.locator("#drawing figcaption")).to_contain_text("6 nodes", timeout=WITHIN)
        assert page.evaluate("window.kept") == 1, "the page was not loaded again"
        server.delete_pod("waits")
        expect(page.locator("#waiting")).to_contain_text("No pod waits", timeout=WITHIN)
        server.delete_pod("appears")


def test_pending_and_pod_say_what_explain_says(browser: Browser, cluster: tuple[ServedPages, EmbeddedServer]) -> None:
    pages, server = cluster
    server.create_pod("too-large", cpu="64")
    try:
        with opened(browser, pages) as found:
            page = found.go("/pending", live=True)
            expect(page.locator("#groups")).to_contain_text("default/too-large", timeout=WITHIN)
            expected = explained(server, "-A")
            shown = pages.json("/pending")
            assert [strip(each) for each in shown["items"]] == [strip(each) for each in expected["items"]]
            item = expected["items"][0]
            command = item["remedies"][0]["commands"][0]
            assert page.locator("#groups code").first.inner_text() == command
            page = found.go("/pods/default/too-large", live=True)
            expect(page.locator("#history")).to_contain_text("Insufficient cpu", timeout=WITHIN)
            expect(page.locator("#history")).to_contain_text("In its queue: unschedulable")
            assert found.text("#why table tbody th") == str(item["causes"][0]["count"])
    finally:
        server.delete_pod("too-large")


def strip(item: dict[str, Any]) -> dict[str, Any]:
    """Leave out what depends on the moment: since when, and the queue, which the command does not see."""
    return {name: each for name, each in item.items() if name not in ("waiting", "sentence")}


def test_decisions_come_as_they_are_made_and_can_be_filtered(
    browser: Browser, cluster: tuple[ServedPages, EmbeddedServer]
) -> None:
    pages, server = cluster
    names = [f"decided-{at}" for at in range(3)]
    with opened(browser, pages) as found:
        page = found.go("/decisions", live=True)
        for name in names:
            server.create_pod(name, cpu="100m")
        for name in names:
            expect(page.locator("#entries")).to_contain_text(f"default/{name}", timeout=WITHIN)
        page.get_by_label("Text").fill("decided-1")
        page.get_by_role("button", name="Filter").click()
        page.wait_for_url("**text=decided-1**")
        expect(page.locator("#entries tr")).to_have_count(1)
        expect(page.locator("#entries")).to_contain_text("default/decided-1")
        page.locator(LIVE).wait_for(state="attached")
        server.create_pod("other", cpu="100m")
        server.create_pod("decided-12", cpu="100m")
        expect(page.locator("#entries tr")).to_have_count(2, timeout=WITHIN)
        bound = pages.json("/decisions?event=bound")["items"]
        assert {each["pod"] for each in bound} >= {f"default/{name}" for name in names}
        assert all(each["attempts"] >= 1 for each in bound if each["pod"].startswith("default/decided"))
    for name in (*names, "other", "decided-12"):
        server.delete_pod(name)


def test_a_page_that_loses_the_server_says_so(browser: Browser, tmp_path: Path) -> None:
    with up(tmp_path, "--nodes", "1") as (pages, _):
        context = browser.new_context()
        page = WatchedPage(context.new_page(), pages).go("/", live=True)
    expect(page.locator("#state")).to_have_text("connection lost", timeout=WITHIN)
    context.close()


# -- a dump, and simulations


@pytest.mark.parametrize("name", PAGES)
def test_each_page_opens_and_nothing_overflows(browser: Browser, dump: ServedPages, name: str) -> None:
    with opened(browser, dump) as found:
        page = found.go(PAGES[name])
        assert page.locator("h1").count() == 1
        assert found.overflow() == []
        page.set_viewport_size({"width": 390, "height": 800})
        assert found.overflow() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_serious_violation(browser: Browser, dump: ServedPages, name: str, scheme: Any) -> None:
    with opened(browser, dump, color_scheme=scheme, bypass_csp=True) as found:
        page = found.go(PAGES[name])
        page.evaluate(AXE)
        problems = page.evaluate("axe.run().then(found => found.violations)")
        told = [
            (each["id"], each["nodes"][0]["html"][:200], each["nodes"][0].get("failureSummary"))
            for each in problems if each["impact"] in SERIOUS
        ]  # fmt: skip
        assert told == []


@pytest.mark.parametrize("name", ["overview", "pending", "pod", "node", "decisions", "placement"])
def test_axe_finds_no_serious_violation_on_a_narrow_screen(browser: Browser, dump: ServedPages, name: str) -> None:
    with opened(browser, dump, viewport={"width": 390, "height": 800}, bypass_csp=True) as found:
        page = found.go(PAGES[name])
        page.evaluate(AXE)
        problems = page.evaluate("axe.run().then(found => found.violations)")
        assert [(each["id"], each["nodes"][0]["html"][:200]) for each in problems if each["impact"] in SERIOUS] == []


def test_axe_would_notice(browser: Browser, dump: ServedPages) -> None:
    """The test of the test: a picture without a name, and a text that nobody can read."""
    with opened(browser, dump, bypass_csp=True) as found:
        page = found.go("/")
        page.evaluate("""() => { const made = document.createElement('div');
          made.innerHTML = '<input type="text"><p style="color: #eee; background: #fff">hard to read</p>';
          document.querySelector('main').append(made); }""")
        page.evaluate(AXE)
        problems = page.evaluate("axe.run().then(found => found.violations.map(each => each.id))")
        assert {"label", "color-contrast"} <= set(problems)


@pytest.mark.parametrize("name", [each for each in PAGES if each != "simulations"])
def test_each_page_can_be_read_without_javascript(browser: Browser, dump: ServedPages, name: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{dump.root}{PAGES[name]}{'&' if '?' in PAGES[name] else '?'}token={dump.token}")
    assert len(page.locator("main").inner_text()) > 100
    assert page.locator(".copy:visible, canvas:visible").count() == 0
    if name == "overview":
        assert page.locator("#drawing svg.still path").count() >= 3
        page.get_by_label("Colour by").select_option("memory")
        page.get_by_role("button", name="Show").click()
        assert "by=memory" in page.url
    context.close()


def test_the_map_is_used_with_keys_and_opens_a_node(browser: Browser, dump: ServedPages) -> None:
    with opened(browser, dump) as found:
        page = found.go("/")
        canvas = page.locator("#drawing canvas")
        canvas.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        expect(page.locator("#drawing figcaption")).to_contain_text("node-01: ")
        values = dump.json("/")["map"]
        assert values["names"][1] == "node-01"
        page.keyboard.press("Enter")
        page.wait_for_url("**/nodes/node-01")
        found.go("/?by=cpu")
        page.locator("#by").select_option("zone")
        page.wait_for_url("**by=zone**")
        expect(page.locator("#map .legend")).to_contain_text("zone-a")


def test_the_slider_of_simulations_moves_the_maps(browser: Browser, dump: ServedPages) -> None:
    with opened(browser, dump) as found:
        page = found.go("/simulations")
        assert page.locator("#heat canvas").count() == 2
        page.locator("#moment").focus()
        page.keyboard.press("Home")
        first, picture = found.text("#readout"), page.evaluate(PIXELS)
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        assert found.text("#readout") != first and page.evaluate(PIXELS) != picture
        summary = dump.json("/simulations")["runs"][0]["summary"]
        expect(page.locator("#figures")).to_contain_text(f"{summary['pods']['arrived']:,}")


def test_it_is_printed_light_and_without_what_paper_cannot_do(browser: Browser, dump: ServedPages) -> None:
    with opened(browser, dump, color_scheme="dark") as found:
        page = found.go("/pending")
        page.emulate_media(media="print")
        assert page.locator("nav:visible, header form:visible, .copy:visible, footer:visible").count() == 0
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert page.locator("h1:visible").count() == 1
        assert found.overflow() == []


def test_a_command_is_copied(browser: Browser, dump: ServedPages) -> None:
    with opened(browser, dump, permissions=["clipboard-read", "clipboard-write"]) as found:
        page = found.go("/pods/shop/typo")
        command = page.locator(".command code").first.inner_text()
        page.locator(".command button").first.click()
        expect(page.locator(".command button").first).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == command


def test_the_browser_refuses_what_the_policy_forbids(browser: Browser, dump: ServedPages) -> None:
    """If markup of somebody else got in, it could neither run nor send."""
    context = browser.new_context()
    watched = WatchedPage(context.new_page(), dump)
    page = watched.go("/")
    page.evaluate("""() => { const made = document.createElement('div');
      made.innerHTML = '<img src="http://127.0.0.1:9/x" onerror="window.ran = 1"><p style="color: red">x</p>';
      document.body.append(made); const script = document.createElement('script');
      script.textContent = 'window.ran = 1'; document.body.append(script); }""")
    page.evaluate("new Promise(done => setTimeout(done, 200))")
    assert page.evaluate("window.ran") is None
    assert sum("Content Security Policy" in each for each in watched.problems) >= 3
    context.close()


# -- hostile names


def test_hostile_texts_stay_texts_in_their_boxes(browser: Browser, folder: Path) -> None:
    file = hostile.write(folder / "hostile.json", texts=300)
    with served("--from", file) as pages, opened(browser, pages) as found:
        hostile.visit(found, file, most=15)


@pytest.mark.full
def test_ten_thousand_hostile_texts_stay_texts_in_their_boxes(browser: Browser, folder: Path) -> None:
    file = hostile.write(folder / "hostile-all.json", texts=10_000)
    with served("--from", file) as pages, opened(browser, pages) as found:
        hostile.visit(found, file, most=10_000)
