"""What a browser's own trace says of the updates of a page: Chromium, driven by Playwright.

An update is a task of the page's main thread in which something of it ran: an event of the stream, or a frame. Its time
is that of the tasks from the arrival of one update until its frame is painted: script, style, layout, paint.
"""

from __future__ import annotations

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
# Events of the trace that are work of the page, and are not within another one of these.
WORK = (
    "EventDispatch", "FireAnimationFrame", "FunctionCall", "EvaluateScript", "RunMicrotasks", "UpdateLayoutTree",
    "Layout", "PrePaint", "Paint", "Layerize", "Commit", "ParseHTML", "RecalculateStyles", "TimerFire", "HitTest",
    "UpdateLayer", "CompositeLayers", "MinorGC", "MajorGC", "V8.GCScavenger", "BlinkGC.AtomicPhase",
)  # fmt: skip


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
    """Sum the work of the renderer's main thread between two updates: each begins with an event of the stream."""
    events = trace["traceEvents"]
    mains = {
        (each["pid"], each["tid"]) for each in events
        if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
    }  # fmt: skip
    work = sorted(
        (each for each in events if each.get("ph") == "X" and each["name"] in WORK
         and (each["pid"], each["tid"]) in mains and _is_of_page(each)),
        key=lambda each: (each["ts"], -each.get("dur", 0)),
    )  # fmt: skip
    found, until, sums = Updates(), 0.0, 0.0
    begun = None
    for each in work:
        if each["ts"] < until:
            continue  # it is within the one before
        until = each["ts"] + each.get("dur", 0)
        is_news = each["name"] == "EventDispatch" and each.get("args", {}).get("data", {}).get("type") in NEWS
        if is_news and (begun is None or each["ts"] - begun > GAP):
            if begun is not None:
                found.milliseconds.append(sums / 1000)
            begun, sums = each["ts"], 0.0
        if begun is not None:
            sums += each.get("dur", 0)
    if begun is not None:
        found.milliseconds.append(sums / 1000)
    return found


NEWS = ("map", "part", "rows", "version")
GAP = 100_000  # microseconds: the events of one update arrive together


def _is_of_page(event: dict[str, Any]) -> bool:
    return bool(event.get("dur"))
