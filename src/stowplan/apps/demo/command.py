"""`stowplan demo`: a story in scenes, one policy at a time, before and after.

Each scene has an embedded cluster and an engine of its own (`stage`), and shows what they did; nothing is canned. On a
terminal and in a pipe the scenes are the same, and nothing waits unless `--pause` asks for it.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from stowplan.apps.demo.scene import Scene, show
from stowplan.apps.demo.scenes import SCENES

SEED = 1
WIDEST = 100  # columns; longer lines are hard to read
OPENING = (
    "Each scene has a cluster of its own in this process: an API server, controllers, simulated kubelets, and "
    "Stowplan as the scheduler. Nothing leaves this process, and all that you see was decided just now."
)
NEXT = {
    "up": "a cluster for kubectl, until Ctrl-C",
    "explain -A": "diagnose pods of your cluster; reads only",
    "plugin new NAME": "a policy of your own, with its test",
    "demo --pause": "these scenes again, one at a time",
}


def run(*, pause: bool = False) -> int:
    """Play the demo. Return 0 if all scenes went as they are told."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without bars still shows the words
    console = Console(highlight=False, markup=False, emoji=False)
    waits = pause and sys.stdin.isatty() and sys.stdout.isatty()
    with suppress(click.Abort, KeyboardInterrupt):  # Ctrl-C and Ctrl-D at a pause
        return play(console, wait=_wait if waits else lambda: None)
    return 0


def play(
    console: Console,
    *,
    seed: int = SEED,
    scenes: Sequence[Callable[[int], Scene]] = SCENES,
    wait: Callable[[], None] = lambda: None,
) -> int:
    """Play the scenes, and say what to try next. `wait` is called between two parts."""
    console.width = min(console.width, WIDEST)
    failed = []
    with tidy(console):
        console.print(f"{OPENING}\n")
    for number, make in enumerate(scenes, 1):
        wait()
        scene = make(seed)
        with tidy(console):
            show(console, scene, number, len(scenes))
        if not scene.went_well:
            failed.append(scene.title)
    with tidy(console):
        console.print("What to try next:")
        console.print(_next())
    for title in failed:
        click.echo(f"stowplan: not as it is told: {title}", err=True)
    return 1 if failed else 0


@contextmanager
def tidy(console: Console) -> Iterator[None]:
    """Print what is printed in here without spaces at the ends of lines, unless it has control codes."""
    with console.capture() as captured:
        yield
    text = captured.get()
    lines = text.splitlines() if console.is_terminal else [line.rstrip() for line in text.splitlines()]
    click.echo("\n".join(lines), file=console.file, color=True)


def _wait() -> None:
    click.prompt("Enter: the next scene", default="", show_default=False, prompt_suffix=" ")


def _next() -> Table:
    program, table = program_name(sys.argv[0]), Table.grid(padding=(0, 3, 0, 0))
    for words, meaning in NEXT.items():
        table.add_row(f"  {program} {words}", meaning)
    return table


def program_name(started_as: str) -> str:
    """Return how to call Stowplan: by its path if it is in a folder below this one, and not on the PATH."""
    path = Path(started_as)
    below = path.name == "stowplan" and path.absolute().is_relative_to(Path.cwd())
    if not below or shutil.which("stowplan"):
        return "stowplan"
    return str(path.absolute().relative_to(Path.cwd()))
