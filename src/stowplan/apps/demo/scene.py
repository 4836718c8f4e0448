"""What a scene is, and how it is printed: a title, the story, a picture, the reason in the scheduler's own words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.console import Console
from rich.table import Table
from rich.text import Text

# Lines for a width. They are printed as they are: a terminal wraps a long command, which can still be copied.
Lines: TypeAlias = Callable[[int], Sequence[str]]


@dataclass(frozen=True)
class Scene:
    """`story`: two or three sentences. `pictures`: before and after. `why`: sentences from the real decision.

    `went_well`: what the story promises has happened.
    """

    title: str
    story: str
    pictures: Sequence[Table | Lines]
    why: Sequence[str]
    went_well: bool


def show(console: Console, scene: Scene, number: int, total: int) -> None:
    """Print a scene, with an empty line between its parts and at its end."""
    title = Text(f"{number} of {total}  {scene.title}", style="bold")
    console.rule(title, align="left", style="dim")
    console.print(scene.story)
    for picture in scene.pictures:
        console.print()
        _show_picture(console, picture)
    console.print()
    for line in scene.why:
        console.print(Text.assemble(("Why: ", "bold"), line))
    console.print()


def _show_picture(console: Console, picture: Table | Lines) -> None:
    if isinstance(picture, Table):
        console.print(picture)
        return
    for line in picture(console.width):
        console.print(line, soft_wrap=True)
