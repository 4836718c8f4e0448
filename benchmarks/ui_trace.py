"""What a browser's own trace says of the updates of a page: Chromium, driven by Playwright.

The time of an update is that of all tasks of the page's main thread from its arrival to that of the next one: script,
style, layout, paint, the collection of garbage. What the compositor and the GPU's process do beside it is not counted.
"""

from __future__ import annotations

import bisect
import itertools
import json
import os
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright
from tests.simulation.report import chromium

CATEGORIES = ["devtools.timeline", "disabled-by-default-devtools.timeline", "toplevel", "blink.user_timing"]
TASK, CALL, SCRIPT = "RunTask", "FunctionCall", "/static/live.js"
GAP = 150_000  # microseconds: the events of one update arrive together


@dataclass
class Updates:
    """The time of each update: script, style, layout and paint."""

    milliseconds: list[float] = field(default_factory=list)


def recorded(address: str, player: threading.Thread) -> Updates:
    """Open the page, start the player, and record until it has played."""
    path = chromium.program()
    if path is None:
        raise SystemExit("no Chromium and no Chrome is there: `make browser` installs one")
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver, tempfile.TemporaryDirectory() as folder:
        browser = driver.chromium.launch(executable_path=path, args=["--disable-dev-shm-usage", *root])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(address)
        page.locator("html[data-live=yes]").wait_for(state="attached")
        page.evaluate("new Promise(done => setTimeout(done, 2000))")
        trace = Path(folder) / "trace.json"
        browser.start_tracing(page=page, path=str(trace), categories=CATEGORIES)
        applied = page.evaluate("+document.documentElement.dataset.applied")
        player.start()
        while player.is_alive():
            page.evaluate("new Promise(done => setTimeout(done, 500))")
        page.evaluate("new Promise(done => setTimeout(done, 1500))")
        applied = page.evaluate("+document.documentElement.dataset.applied") - applied
        browser.stop_tracing()
        browser.close()
        found = updates_of(json.loads(trace.read_text(encoding="utf-8")))
    assert applied > 0 and len(found.milliseconds) > 0, "no update arrived"
    return found


def updates_of(trace: dict[str, Any]) -> Updates:
    """Sum all tasks of the page's main thread from one update to the next, whatever they are for.

    An update begins with the task that calls our script, after a pause.
    """
    events = trace["traceEvents"]
    mains = {
        (each["pid"], each["tid"]) for each in events
        if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
    }  # fmt: skip
    ours = [each for each in events if each.get("ph") == "X" and (each["pid"], each["tid"]) in mains]
    calls = sorted(each["ts"] for each in ours if each["name"] == CALL and _script(each).endswith(SCRIPT))
    begins = [at for at, before in zip(calls, [float("-inf"), *calls], strict=False) if at - before > GAP]
    tasks = sorted((each["ts"], each["dur"]) for each in ours if each["name"] == TASK)
    starts = [at for at, _ in tasks]
    begins = [starts[bisect.bisect_right(starts, at) - 1] for at in begins]  # of the task that the call is in
    found = Updates()
    for begin, end in itertools.pairwise(begins):
        found.milliseconds.append(sum(long for at, long in tasks if begin <= at < end) / 1000)
    return found


def _script(event: dict[str, Any]) -> str:
    return str(event.get("args", {}).get("data", {}).get("url", ""))
