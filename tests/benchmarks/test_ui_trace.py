"""How the time of an update is read from a browser's trace."""

from __future__ import annotations

from typing import Any

from benchmarks.ui_trace import updates_of

MAIN = {"pid": 1, "tid": 7}


def task(at: int, long: int, **where: int) -> dict[str, Any]:
    return {"name": "RunTask", "ph": "X", "ts": at, "dur": long, **MAIN, **where}


def call(at: int, url: str = "http://127.0.0.1:1/static/live.js") -> dict[str, Any]:
    return {"name": "FunctionCall", "ph": "X", "ts": at, "dur": 10, **MAIN, "args": {"data": {"url": url}}}


def test_all_tasks_from_one_update_to_the_next_are_its_time() -> None:
    named = {"name": "thread_name", **MAIN, "args": {"name": "CrRendererMain"}}
    events = [
        named,
        task(0, 900),  # before the first update
        task(1_000_000, 2_000), call(1_000_100), call(1_001_000),
        task(1_010_000, 5_000), task(1_020_000, 3_000, tid=8),  # another thread
        task(2_000_000, 7_000), call(2_000_100), call(2_500_000, "http://127.0.0.1:1/static/other.js"),
        task(3_000_000, 1_000), call(3_000_100),
    ]  # fmt: skip
    assert updates_of({"traceEvents": events}).milliseconds == [7.0, 7.0]
