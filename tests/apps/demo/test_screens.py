"""`stowplan demo` as it is read: the same scenes at 80×24, at 120×40 and in a pipe, nothing cut, nothing repeated."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.apps.demo import screens
from tests.apps.demo.screens import lines_of, rows_of, scenes_of, words_of

SIZES = ((80, 24), (120, 40))
PROMPT = "Enter: the next scene "  # keys are typed ahead, so no line ends after it
PAGE = Path(__file__).parents[3] / "docs" / "demo.md"


@pytest.fixture(scope="module")
def pipe() -> str:
    return screens.piped()


@pytest.fixture(scope="module")
def terminals() -> dict[int, str]:
    return {columns: screens.on_a_terminal(columns, rows) for columns, rows in SIZES}


def test_a_pipe_gets_the_scenes_without_control_codes(pipe: str) -> None:
    assert "\x1b" not in pipe
    titles = list(scenes_of(lines_of(pipe)))
    assert [title[:6] for title in titles] == [f"{number} of 8" for number in range(1, 9)]
    assert not [line for line in pipe.split("\n") if line != line.rstrip()], "no spaces at the ends of lines"


def test_every_screen_has_the_same_words(pipe: str, terminals: dict[int, str]) -> None:
    """Wherever lines end: what is cut on one of them is missing in its words."""
    expected = words_of(pipe)
    assert len(expected) > 500
    for screen in terminals.values():
        assert words_of(screen) == expected
    assert "…" not in pipe and "..." not in pipe


@pytest.mark.parametrize("columns", [columns for columns, _ in SIZES])
def test_no_line_is_wider_than_the_terminal(columns: int, terminals: dict[int, str]) -> None:
    """The commands of remedies are one line each, so that they can be copied; the terminal wraps them."""
    wide = [line for line in lines_of(terminals[columns]) if len(line) > columns]
    assert all(line.startswith("     kubectl ") for line in wide), wide


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_a_scene_fits_the_screen(columns: int, rows: int, terminals: dict[int, str]) -> None:
    scenes = scenes_of(lines_of(terminals[columns]))
    taken = {title: sum(rows_of(line, columns) for line in lines) for title, lines in scenes.items()}
    assert len(taken) == 8 and max(taken.values()) <= rows, taken


def test_nothing_is_repeated(pipe: str) -> None:
    """No sentence and no row of a table; rows of small numbers may be alike."""
    lines = Counter(line for line in lines_of(pipe) if len(line.split()) > 4)
    assert {line: number for line, number in lines.items() if number > 1} == {}
    pending = [line for line in lines_of(pipe) if "nodes are available: 1 node(s) had untolerated" in line]
    assert len(pending) == 1 and pending[0].startswith("cache×2 "), "pods that are alike are one row with a count"


def test_the_last_scene_ends_with_a_pod_that_runs_and_then_says_what_to_try(pipe: str) -> None:
    lines = lines_of(pipe)
    (told,) = (line for line in lines if line.startswith("Remedy 1 is applied: "))
    assert re.search(r"is Running on worker-0\.$", told)
    (promised,) = (line for line in lines if line.startswith("  1. "))
    assert promised == "  1. change disk in nodeSelector from sdd to ssd → worker-0"
    begin = lines.index("What to try next:")
    assert [line.split()[:2] for line in lines[begin + 1 : -1]] == [
        ["stowplan", "up"],
        ["stowplan", "explain"],
        ["stowplan", "plugin"],
        ["stowplan", "demo"],
    ]


def test_its_page_shows_lines_of_the_demo(pipe: str) -> None:
    """Each block that shows a scene is in the demo, line by line."""
    text = PAGE.read_text(encoding="utf-8")
    blocks = re.findall(r"(?m)(?:^    .*\n|^\n(?=    ))+", text)
    shown = [block for block in blocks if re.search(r"\d of 8  ", block)]
    assert len(shown) >= 2
    known = {line.rstrip(" ─") for line in lines_of(pipe)}
    for line in (line.removeprefix("    ").rstrip(" ─") for block in shown for line in block.split("\n")):
        assert line in known, line


# -- pauses


def test_with_a_pause_each_scene_waits_for_enter() -> None:
    screen = screens.on_a_terminal(80, 24, "--pause", keys=b"\n" * 8)
    assert screen.count(PROMPT) == 8
    assert len(scenes_of(lines_of(screen.replace(PROMPT, "")))) == 8 and "What to try next" in screen


def test_the_end_of_input_ends_the_demo_at_a_pause() -> None:
    screen = screens.on_a_terminal(80, 24, "--pause", keys=b"\n\x04")
    (title,) = scenes_of(lines_of(screen.replace(PROMPT, "")))
    assert title.startswith("1 of 8") and "What to try next" not in screen


def test_a_pipe_never_waits(pipe: str) -> None:
    assert screens.piped("--pause") == pipe, "and the same seed gives the same text"


def test_a_reader_that_ends_early_is_no_error() -> None:
    command = f"{' '.join(screens.COMMAND)} | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, env=screens.environment(), check=False)
    assert done.stdout.startswith("Each scene") and "Traceback" not in done.stderr
