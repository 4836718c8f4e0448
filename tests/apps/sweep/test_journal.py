"""The journal: what is done is not done again, and only for the same inputs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stowplan.apps.sweep import journal, sweep
from stowplan.apps.sweep.sweep_inputs import SweepInputs
from stowplan.apps.sweep.sweep_run import RunAnswer, RunReply, SweepRun
from stowplan.objects.errors import ConfigError, StowplanError

RUNS = [SweepRun((name, "seed 0"), "module:function", {}) for name in "abcd"]


@dataclass
class Noting:
    """A runner that does nothing, in reverse, and notes what it was asked for; it may stop before the last ones."""

    stop_after: int = 100
    asked: list[str] = field(default_factory=list)

    def replies(self, runs: Iterable[SweepRun], inputs: SweepInputs) -> Iterator[tuple[SweepRun, RunReply]]:
        for number, run in enumerate(reversed(list(runs))):
            if number == self.stop_after:
                raise KeyboardInterrupt
            self.asked.append(run.key[0])
            yield run, RunReply(RunAnswer({"name": run.key[0], "part": 0.1 + 0.2}, 1.5))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sweep.jsonl"


def inputs(**changed: object) -> SweepInputs:
    given = {"folder": "/a", "files": {"trace.csv": "12"}, "settings": {"until": 5}, "versions": {"numpy": "2"}}
    return msgspec.convert(given | changed, SweepInputs)


def swept(file: Path, runner: Noting, runs: Sequence[SweepRun] = tuple(RUNS), **changed: Any) -> list[RunAnswer]:
    return sweep.swept(runs, inputs(**changed), runner, file)


def interrupted(file: Path, after: int) -> None:
    with pytest.raises(sweep.StoppedSweepError, match=f"{after} of 4 runs are in .*the same command goes on"):
        swept(file, Noting(after))


def test_answers_are_in_the_order_of_the_runs(file: Path) -> None:
    assert [each.value["name"] for each in swept(file, Noting())] == list("abcd")


@pytest.mark.parametrize("after", range(5))
def test_an_interrupted_sweep_does_what_is_left_and_gives_the_same(file: Path, after: int, tmp_path: Path) -> None:
    whole = swept(tmp_path / "whole.jsonl", Noting())
    if after < 4:
        interrupted(file, after)
    else:
        swept(file, Noting())
    again = Noting()
    assert swept(file, again) == whole
    assert again.asked == list("dcba")[after:]


@pytest.mark.parametrize(
    "torn", [b"", b"{", b'{"key":["c"', b'{"key":["c","seed 0"],"answer":{"value":1,"seconds":1}}', b"\0\0"]
)
def test_a_torn_last_line_is_cut_off(file: Path, torn: bytes) -> None:
    interrupted(file, 2)
    before = file.read_bytes()
    file.write_bytes(before + torn)
    again = Noting()
    swept(file, again)
    assert again.asked == ["b", "a"] and file.read_bytes().startswith(before) and file.read_bytes().count(b"\n") == 5


@pytest.mark.parametrize("length", [0, 1, 10, 30])
def test_a_torn_first_line_begins_again(file: Path, length: int) -> None:
    interrupted(file, 2)
    file.write_bytes(file.read_bytes()[:length])
    again = Noting()
    swept(file, again)
    assert again.asked == list("dcba")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"files": {"trace.csv": "13"}}, "trace.csv"),
        ({"files": {"trace.csv": "12", "plugin.py": "1"}}, "plugin.py"),
        ({"settings": {"until": 6}}, "until"),
        ({"versions": {"numpy": "3"}}, "the version of numpy"),
    ],
)
def test_a_journal_of_other_inputs_is_refused_and_stays_as_it_is(
    file: Path, changed: dict[str, Any], told: str
) -> None:
    interrupted(file, 2)
    before = file.read_bytes()
    with pytest.raises(ConfigError, match=f"is the journal of another sweep, with a difference in {told}; remove it"):
        swept(file, Noting(), **changed)
    assert file.read_bytes() == before


def test_another_folder_is_no_other_input(file: Path) -> None:
    interrupted(file, 2)
    again = Noting()
    swept(file, again, folder="/b")
    assert again.asked == ["b", "a"]


def test_nobody_is_asked_if_everything_is_done(file: Path) -> None:
    whole = swept(file, Noting())
    assert swept(file, Noting(stop_after=0)) == whole


def test_more_runs_go_on_from_the_same_journal(file: Path) -> None:
    swept(file, Noting(), RUNS[:2])
    again = Noting()
    assert len(swept(file, again)) == 4 and again.asked == ["d", "c"]


@pytest.mark.parametrize("text", ["hello", "hello\n", '{"kind":"Pod"}\n', "\n", "\0"])
def test_another_file_is_refused_and_stays_as_it_is(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match="is no journal of a sweep; name a file that does not exist yet"):
        swept(file, Noting())
    assert file.read_text() == text


@pytest.mark.parametrize(("line", "place"), [(0, "line 1"), (1, "line 2")])
def test_a_line_that_makes_no_sense_is_named(file: Path, line: int, place: str) -> None:
    interrupted(file, 2)
    found = file.read_bytes().splitlines(keepends=True)
    found[line] = found[line][:25] + b"\n"
    file.write_bytes(b"".join(found))
    with pytest.raises(ConfigError, match=f"sweep.jsonl: {place}: cannot be read"):
        swept(file, Noting())


def test_two_sweeps_do_not_write_one_journal(file: Path) -> None:
    with journal.journal(file, inputs()), pytest.raises(ConfigError, match="is in use by another sweep"):
        swept(file, Noting())


def test_a_journal_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none/sweep\.jsonl: cannot be written: No such file"):
        swept(tmp_path / "none" / "sweep.jsonl", Noting())


def test_a_line_is_on_the_disk_before_the_run_counts(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda _: synced.append(file.read_bytes().count(b"\n")))
    swept(file, Noting())
    assert synced == [1, 2, 3, 4, 5]


class Refusing(Noting):
    def replies(self, runs: Iterable[SweepRun], inputs: SweepInputs) -> Iterator[tuple[SweepRun, RunReply]]:
        for run in runs:
            yield run, RunReply(problem="trace.csv: line 2: no") if run.key[0] == "c" else RunReply(RunAnswer(1, 1.0))


def test_the_first_error_ends_the_sweep_and_what_was_done_stays(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"^c, seed 0: trace\.csv: line 2: no$"):
        swept(file, Refusing())
    again = Noting()
    swept(file, again)
    assert again.asked == ["d", "c"]


class Broken(Noting):
    def replies(self, runs: Iterable[SweepRun], inputs: SweepInputs) -> Iterator[tuple[SweepRun, RunReply]]:
        yield next(iter(runs)), RunReply(traceback="Traceback …\n  File …\nValueError: odd\n")


def test_an_error_of_the_program_names_the_run(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(StowplanError, match=r"^a, seed 0: ValueError: odd$"):
        swept(file, Broken())
    assert "Traceback" in capsys.readouterr().err


def test_a_sweep_needs_no_module_of_dask() -> None:
    code = "import sys; import stowplan.apps.simulate.sweep_command; sys.exit('distributed' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
