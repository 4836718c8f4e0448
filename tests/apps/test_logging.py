"""Log lines: klog's text and JSON."""

from __future__ import annotations

import io
import json
import re
from datetime import UTC, datetime

import pytest

from stowplan.apps.logging import Log

NOON = datetime(2026, 11, 15, 12, 0, 0, 123456, tzinfo=UTC)


def written(form: str, v: int = 0, **fields: object) -> str:
    stream = io.StringIO()
    log = Log(v, form, stream, now=lambda: NOON)
    log.info("Bound", level=2, **fields)
    log.error('it said "no"', **fields)
    return stream.getvalue()


def test_text_is_what_klog_writes() -> None:
    first, second = written("text", 2, pod="default/web", attempts=3).splitlines()
    assert re.fullmatch(r'I1115 12:00:00.123456 +\d+ stowplan\] "Bound" pod="default/web" attempts=3', first)
    assert re.fullmatch(r'E1115 12:00:00.123456 +\d+ stowplan\] "it said \\"no\\"" .*', second)


def test_json_has_one_object_per_line() -> None:
    first, second = map(json.loads, written("json", 2, pod="default/web").splitlines())
    assert first == {"ts": NOON.timestamp() * 1000, "level": "info", "v": 2, "msg": "Bound", "pod": "default/web"}
    assert second["level"] == "error"


def test_lines_above_the_verbosity_are_not_written() -> None:
    assert len(written("text", 1).splitlines()) == 1


def test_a_closed_stream_is_ignored() -> None:
    class Broken(io.StringIO):
        def write(self, _text: str) -> int:
            raise BrokenPipeError

    Log(stream=Broken()).info("hello")


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_text_that_utf_8_cannot_hold_is_written_all_the_same(form: str) -> None:
    stream = io.StringIO()
    Log(logging_format=form, stream=stream).error("no such file", file="caf\udce9.yaml")
    assert '"caf?.yaml"' in stream.getvalue()
