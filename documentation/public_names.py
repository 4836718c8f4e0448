"""The reference of a public module: what it says of itself, and each name of its `__all__`.

These are directives of mkdocstrings. It leaves out names that a module has from another one, and the public modules
have most of theirs from elsewhere.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator

MODULES = ("plugin", "testing", "scores", "simulation")


def references() -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield what stands for each module on its page."""
    for name in MODULES:
        yield name, lambda name=name: reference(f"stowplan.{name}")  # type: ignore[misc]


def reference(module: str) -> str:
    about = f"::: {module}\n    options:\n      members: false\n      show_root_heading: false"
    return "\n\n".join([about, *(_name(module, name) for name in sorted(importlib.import_module(module).__all__))])


def _name(module: str, name: str) -> str:
    value = getattr(importlib.import_module(module), name)
    if isinstance(value, int):  # mkdocstrings does not see the two names of `BEST, WORST = 100, -100`
        return f"## `{name}`\n\nThe number {value}."
    return f"::: {module}.{name}\n    options:\n      show_root_heading: true"
