"""`stowplan plugin new NAME`: a folder with a plugin that works, its test, its configuration and how to run each.

`templates/KIND` has the files: `plugin.py.txt` becomes the module, `test_plugin.py.txt` its test.
"""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from string import Template

import click

from stowplan.framework.config.document import snake
from stowplan.objects.errors import ConfigError

NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_][A-Za-z0-9]+)*")
COMMAND = re.compile(r"(?P<command>    \S.*?) +(?P<comment># .*)")
TEMPLATE = ".txt"  # after the name of each template
RUNS = {  # what to try last
    "node": "stowplan up --config {folder}/config.yaml",
    "cluster": "stowplan place explain web --config {folder}/config.yaml --from {folder}/hub.yaml",
}


@dataclass(frozen=True)
class PluginName:
    """The names of a plugin: `rack-spread` is the module rack_spread and the class RackSpread."""

    module: str
    class_name: str


def run(name: str, directory: Path, kind: str) -> int:
    """Write the folder, and say what to do with it."""
    names = plugin_name(name)
    folder = directory / names.module
    written = write(folder, names, kind)
    click.echo(f"Written to {folder}: {', '.join(sorted(written))}. Try:")
    click.echo("")
    for line in (
        f"stowplan config check {folder / 'config.yaml'}",
        f"pytest {folder}",
        f"stowplan plugin check {folder / names.module}.py:{names.class_name}",
        f"stowplan plugin bench {folder / names.module}.py:{names.class_name}",
        RUNS[kind].format(folder=folder),
    ):
        click.echo(f"    {line}")
    return 0


def plugin_name(name: str) -> PluginName:
    """Return the names that are made of this one."""
    example = "such as rack-spread or RackSpread"
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot be the name of a plugin",
            remedy=f"use letters, digits, hyphens and underscores, {example}",
        )
    module = snake(name.replace("-", "_"))
    class_name = "".join(word[:1].upper() + word[1:] for word in re.split("[-_]", name))
    if keyword.iskeyword(module) or keyword.issoftkeyword(module):
        raise ConfigError(f"{name!r} is a word of Python itself", remedy=f"choose another name, {example}")
    if module.startswith("test_"):
        raise ConfigError(f"{name!r} is the name of a test", remedy=f"choose another name, {example}")
    if module in sys.stdlib_module_names or _importable(module):
        raise ConfigError(f"{name!r} would hide the module {module}", remedy=f"choose another name, {example}")
    return PluginName(module, class_name)


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def aligned(text: str) -> str:
    """Return a text whose commands have their comments in one column, whatever the length of the plugin's name."""
    lines = text.split("\n")
    commands = {at: COMMAND.fullmatch(line) for at, line in enumerate(lines)}
    found = {at: (match["command"], match["comment"]) for at, match in commands.items() if match}
    width = max((len(command) for command, _ in found.values()), default=0)
    rows = {at: f"{command:<{width}}  {comment}" for at, (command, comment) in found.items()}
    return "\n".join(rows.get(at, line) for at, line in enumerate(lines))


def write(folder: Path, names: PluginName, kind: str) -> list[str]:
    """Write the files into a new folder. Return their names."""
    templates = resources.files("stowplan.apps.plugin_kit").joinpath("templates", kind)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ConfigError(
            f"{folder} exists already", remedy="choose another name, or another --directory; nothing is overwritten"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(folder)) from None
    texts = {
        each.name.removesuffix(TEMPLATE).replace("plugin", names.module): each.read_text(encoding="utf-8")
        for each in templates.iterdir()
        if each.name.endswith(TEMPLATE)
    }
    for file, text in texts.items():
        written = Template(text).substitute(vars(names))
        (folder / file).write_text(aligned(written) if file.endswith(".md") else written, encoding="utf-8")
    return list(texts)
