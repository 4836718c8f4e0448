"""The journal of a sweep: a line for each run that is done, so that an interrupted sweep goes on where it stopped.

    {"kind":"SweepJournal","inputs":{…}}                                what all runs depend on
    {"key":["packed","3"],"answer":{"value":{…},"seconds":1.5}}

Each line is on the disk before the next run is counted as done. A last line that was torn, by a power cut for example,
is cut off. A journal of other inputs is refused, and so is one that another sweep writes at this time.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

import msgspec

from stowplan.apps.sweep.sweep_inputs import SweepInputs
from stowplan.apps.sweep.sweep_run import RunAnswer
from stowplan.objects.errors import ConfigError

BEGIN = b'{"kind":"SweepJournal"'
ANOTHER = "remove it to begin again, or name another file"


class JournalHeader(msgspec.Struct, frozen=True):
    """The first line."""

    kind: str
    inputs: SweepInputs


class JournalLine(msgspec.Struct, frozen=True):
    """A run that is done."""

    key: tuple[str, ...]
    answer: RunAnswer


class SweepJournal:
    """An open journal. `answers`: those that it had already, by the keys of their runs."""

    def __init__(self, target: FileIO, answers: dict[tuple[str, ...], RunAnswer]) -> None:
        self._target, self.answers = target, answers

    def add(self, key: tuple[str, ...], answer: RunAnswer) -> None:
        """Write down that a run is done."""
        _write(self._target, msgspec.json.encode(JournalLine(key, answer)))


@contextmanager
def journal(path: Path, inputs: SweepInputs) -> Iterator[SweepJournal]:
    """Open a journal, or begin it. Raises ConfigError for a file that is none, or that is one of another sweep."""
    try:
        target = path.open("a+b", buffering=0)
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(path)) from None
    with target:
        try:
            fcntl.flock(target, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError("is in use by another sweep", file=str(path), remedy="wait for it") from None
        yield _opened(target, path, inputs)


def _opened(target: FileIO, path: Path, inputs: SweepInputs) -> SweepJournal:
    target.seek(0)
    data = target.read()
    head, newline, _ = data.partition(b"\n")
    if not (head.startswith(BEGIN) or (BEGIN.startswith(head) and not newline)):
        raise ConfigError("is no journal of a sweep", file=str(path), remedy="name a file that does not exist yet")
    whole = data[: data.rfind(b"\n") + 1]
    target.truncate(len(whole))
    if not newline:
        _write(target, msgspec.json.encode(JournalHeader("SweepJournal", inputs)))
        return SweepJournal(target, {})
    try:
        differs = msgspec.json.decode(head, type=JournalHeader).inputs.difference(inputs)
    except msgspec.DecodeError as error:
        raise ConfigError(f"cannot be read: {error}", file=str(path), path="line 1", remedy=ANOTHER) from None
    if differs:
        raise ConfigError(
            f"is the journal of another sweep, with a difference in {differs}", file=str(path), remedy=ANOTHER
        )
    return SweepJournal(target, dict(_answers(whole[len(head) + 1 :], path)))


def _answers(data: bytes, path: Path) -> Iterator[tuple[tuple[str, ...], RunAnswer]]:
    for number, line in enumerate(data.splitlines(), 2):
        try:
            found = msgspec.json.decode(line, type=JournalLine)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"cannot be read: {error}", file=str(path), path=f"line {number}", remedy=ANOTHER
            ) from None
        yield found.key, found.answer


def _write(target: FileIO, line: bytes) -> None:
    left = memoryview(line + b"\n")
    while left:
        left = left[target.write(left) :]
    os.fsync(target.fileno())
