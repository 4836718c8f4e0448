"""Log lines as cluster operators know them: klog's text, or JSON, one line each, to standard error.

    I1115 13:04:03.123456   4711 scheduler] "Bound" pod="default/web" node="a"

`v` is how much is said: 0 what an operator must know; what comes with 2, 3 and 4 is told in `saying`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec


class Log:
    def __init__(
        self,
        v: int = 0,
        form: str = "text",
        stream: TextIO | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.v, self._form, self._stream, self._now = v, form, stream or sys.stderr, now
        self._lock = threading.Lock()

    def info(self, message: str, *, level: int = 0, **fields: Any) -> None:
        if level <= self.v:
            self._write("I", message, level, fields)

    def warning(self, message: str, **fields: Any) -> None:
        self._write("W", message, 0, fields)

    def error(self, message: str, **fields: Any) -> None:
        self._write("E", message, 0, fields)

    def _write(self, severity: str, message: str, level: int, fields: dict[str, Any]) -> None:
        moment = self._now()
        line = self._json(severity, message, level, fields, moment) if self._form == "json" else ""
        line = line or self._text(severity, message, fields, moment)
        with self._lock:
            try:
                self._stream.write(line + "\n")
                self._stream.flush()
            except OSError:
                return  # nobody reads it any more; that is no reason to stop scheduling

    def _text(self, severity: str, message: str, fields: dict[str, Any], moment: datetime) -> str:
        pairs = "".join(f" {name}={_quoted(value)}" for name, value in fields.items())
        return f"{severity}{moment:%m%d %H:%M:%S.%f} {os.getpid():7d} stowplan] {_quoted(message)}{pairs}"

    def _json(self, severity: str, message: str, level: int, fields: dict[str, Any], moment: datetime) -> str:
        named = {"I": "info", "W": "warning", "E": "error"}[severity]
        line = {"ts": round(moment.timestamp() * 1000, 3), "level": named, "v": level, "msg": message, **fields}
        return msgspec.json.encode(line, enc_hook=str).decode()


def _quoted(value: Any) -> str:
    return msgspec.json.encode(value).decode() if isinstance(value, str) else str(value)
