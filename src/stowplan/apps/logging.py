"""A log in the formats of Kubernetes' components: klog's text or JSON, one line each, on standard error.

    I1115 13:04:03.123456   4711 stowplan] "Successfully bound pod to node" pod="default/web" node="a"

`v` is the verbosity: 0 is what an operator must know; `report_log` and `decision_lines` list what higher ones add.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

import msgspec


class Log:
    def __init__(
        self,
        v: int = 0,
        logging_format: str = "text",
        stream: TextIO | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.v, self._format, self._stream, self._now = v, logging_format, stream or sys.stderr, now
        self._lock = threading.Lock()

    def info(self, message: str, *, level: int = 0, **fields: object) -> None:
        if level <= self.v:
            self._write("I", message, level, fields)

    def warning(self, message: str, **fields: object) -> None:
        self._write("W", message, 0, fields)

    def error(self, message: str, **fields: object) -> None:
        self._write("E", message, 0, fields)

    def _write(self, severity: str, message: str, level: int, fields: dict[str, object]) -> None:
        now = self._now()
        form = self._json if self._format == "json" else self._text
        line = form(severity, message, level, fields, now)
        with self._lock:
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except OSError:
                return  # the reader is gone, which is no reason to stop scheduling

    def _text(self, severity: str, message: str, _: int, fields: dict[str, object], now: datetime) -> str:
        pairs = "".join(f" {name}={_quoted(value)}" for name, value in fields.items())
        return f"{severity}{now:%m%d %H:%M:%S.%f} {os.getpid():7d} stowplan] {_quoted(message)}{pairs}"

    def _json(self, severity: str, message: str, level: int, fields: dict[str, object], now: datetime) -> str:
        named = {"I": "info", "W": "warning", "E": "error"}[severity]
        line = {"ts": round(now.timestamp() * 1000, 3), "level": named, "v": level, "msg": message, **fields}
        try:
            return msgspec.json.encode(line, enc_hook=_text_of).decode()
        except UnicodeEncodeError:
            return msgspec.json.encode({name: _text_of(value) for name, value in line.items()}).decode()


def _quoted(value: object) -> str:
    return msgspec.json.encode(_text_of(value)).decode() if isinstance(value, str) else _text_of(value)


def _text_of(value: object) -> str:
    """Return a text without what UTF-8 cannot hold: a file's name, or what a plugin says, may have anything in it."""
    return str(value).encode(errors="replace").decode()
