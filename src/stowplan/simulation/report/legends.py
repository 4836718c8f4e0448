"""Squares of a colour beside its name. Colours are classes of the style."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def key(colour: str) -> str:
    """Return a square of a colour."""
    drawn = f'<rect class="{colour}" width="12" height="12"/>'
    return f'<svg class="key" viewBox="0 0 12 12" aria-hidden="true">{drawn}</svg>'


def legend(names: Iterable[tuple[str, str]]) -> str:
    """Return a list of names, each beside its colour."""
    return f'<ul class="legend">{"".join(f"<li>{key(colour)} {escape(name)}</li>" for name, colour in names)}</ul>'
