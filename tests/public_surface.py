"""What users may rely on, as lines of text: `python -m tests.public_surface > tests/public_surface.txt` records it.

    stowplan.plugin.Reject(rows, reason, resolvable=…)     a public name, with its parameters
    stowplan run --config                                  a command, an argument, a flag

A test compares the recorded lines with those of today. docs/stability.md says what a change of them needs.
"""

from __future__ import annotations

import enum
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from stowplan.apps.cli import main
from stowplan.apps.place.commands import place

PUBLIC = ("stowplan.plugin", "stowplan.testing", "stowplan.scores", "stowplan.simulation")
RECORD = Path(__file__).with_name("public_surface.txt")


def lines() -> list[str]:
    return sorted({*_names(), *_flags(main, "stowplan"), *_flags(place, "stowplan place")})


def _names() -> Iterator[str]:
    for module in PUBLIC:
        found = importlib.import_module(module)
        for name in found.__all__:
            yield f"{module}.{name}{_parameters(getattr(found, name))}"


def _parameters(value: object) -> str:
    if not callable(value) or isinstance(value, enum.Enum) or not str(value.__module__).startswith("stowplan"):
        return ""
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return ""  # made by nobody; and its signature is Python's own
    if isinstance(value, type) and issubclass(value, msgspec.Struct):
        return f"({', '.join(value.__struct_fields__)})"
    found = inspect.signature(value).parameters.values()
    return f"({', '.join(_parameter(each) for each in found)})"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = 1 * (parameter.kind is parameter.VAR_POSITIONAL) + 2 * (parameter.kind is parameter.VAR_KEYWORD)
    return f"{'*' * stars}{parameter.name}{'' if parameter.default is parameter.empty else '=…'}"


def _flags(command: click.Command, path: str) -> Iterator[str]:
    yield path
    for parameter in command.params:
        spelled = parameter.opts if isinstance(parameter, click.Option) else [parameter.human_readable_name]
        yield from (f"{path} {each}" for each in (*spelled, *parameter.secondary_opts))
    if isinstance(command, click.Group):
        with click.Context(command) as context:
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                yield from _flags(below, f"{path} {name}")


if __name__ == "__main__":
    click.echo("\n".join(lines()))
