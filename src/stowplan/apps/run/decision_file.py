"""`stowplan run --decision-log FILE`: one line of JSON for each decision, and for what became of it, to audit later.

    started ─► decided ─► bound            a line each; `config` is the digest of the configuration in force
                  │
                  └─────► failed, preempting, lost, or decided again

The file is bounded: at `--decision-log-size` it becomes FILE.1, in place of the one before, and a new one begins. With
`--decision-log-sample 0.1` the log is about one pod in ten: all lines about a pod, or none. Only the owner can read it.
A restart adds to the file. If it cannot be written (the disk is full), scheduling goes on, a metric counts the lines
that are lost, and writing goes on as soon as it can.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import msgspec
from prometheus_client import CollectorRegistry

from stowplan.apps.logging import Log
from stowplan.apps.metric_factory import MetricFactory
from stowplan.apps.run import decision_entries
from stowplan.apps.run.configuration import LoadedConfiguration
from stowplan.apps.run.decision_entries import Entry
from stowplan.engine.reports import Report
from stowplan.framework.decision import Decision
from stowplan.objects.errors import ConfigError

FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
REMEDY = "give --decision-log a path of a file that this program may write to"


def utc_now() -> datetime:
    return datetime.now(UTC)


class DecisionFile:
    def __init__(
        self,
        file: Path,
        most: int,
        share: float,
        registry: CollectorRegistry,
        log: Log,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """`most`: bytes of the file. `share`: of the pods, from 0 to 1."""
        self._file, self._most, self._log, self._now = file, most, log, now
        self._below = int(share * (1 << 32))
        self._config = ""
        self._damaged = False  # the last line is there in part
        self._failing = False
        self._lines = MetricFactory(registry, "stowplan_decision_log_").counter(
            "lines_total", "Lines of the decision log: written, lost.", "result"
        )
        for result in ("written", "lost"):
            self._lines.labels(result)
        try:
            self._open()
        except OSError as error:
            raise ConfigError(f"cannot be written: {error.strerror}", file=str(file), remedy=REMEDY) from None

    def _open(self) -> None:
        self._descriptor = os.open(self._file, FLAGS, 0o600)
        self._size = os.fstat(self._descriptor).st_size

    # -- what is written

    def started(self, loaded: LoadedConfiguration) -> None:
        """The program begins, or goes on with another configuration."""
        self._config = loaded.digest[:12]
        self._write({"event": "started", "stowplan": version("stowplan"), "schedulers": list(loaded.profiles)})

    def decided(self, decision: Decision) -> None:
        if self._is_about(decision.pod.key):
            self._write(decision_entries.decided(decision))

    def reported(self, report: Report) -> None:
        entry = decision_entries.reported(report)
        if entry is not None and self._is_about(entry["pod"]):
            self._write(entry)

    def _is_about(self, pod: str) -> bool:
        return zlib.crc32(pod.encode(errors="replace")) < self._below

    # -- the file

    def _write(self, entry: Entry) -> None:
        moment = self._now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        try:
            line = msgspec.json.encode({"time": moment, **entry, "config": self._config}) + b"\n"
            self._append(line)
        except (OSError, UnicodeEncodeError) as error:
            self._lines.labels("lost").inc()
            if not self._failing:
                self._log.warning("The decision log cannot be written", file=str(self._file), error=str(error))
            self._failing = True
            return
        self._lines.labels("written").inc()
        if self._failing:
            self._log.info("The decision log can be written again", file=str(self._file))
        self._failing = False

    def _append(self, line: bytes) -> None:
        if self._size and self._size + len(line) > self._most:
            self._rotate()
        if self._damaged:
            line = b"\n" + line
        written = os.write(self._descriptor, line)
        self._size += written
        self._damaged = written < len(line)
        if self._damaged:
            raise OSError("no room for the whole line")

    def _rotate(self) -> None:
        self._file.replace(self._file.with_name(f"{self._file.name}.1"))
        before = self._descriptor
        self._open()
        os.close(before)
        self._damaged = False
