"""`stowplan plugin new NAME`: a folder with a plugin that works, its test, its configuration and how to run each."""

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
FILES = {  # each template, and the file that becomes of it
    "plugin.py.txt": "$module.py",
    "test_plugin.py.txt": "test_$module.py",
    "config.yaml.txt": "config.yaml",
    "README.md.txt": "README.md",
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
    write(folder, names, kind)
    click.echo(f"Written to {folder}: {', '.join(sorted(_file_names(names)))}. Try:")
    click.echo("")
    for line in (
        f"stowplan config check {folder / 'config.yaml'}",
        f"pytest {folder}",
        f"stowplan plugin check {folder / names.module}.py:{names.class_name}",
        f"stowplan plugin bench {folder / names.module}.py:{names.class_name}",
        f"stowplan up --config {folder / 'config.yaml'}",
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


def _file_names(names: PluginName) -> list[str]:
    return [Template(file).substitute(vars(names)) for file in FILES.values()]


def write(folder: Path, names: PluginName, kind: str) -> None:
    """Write the files into a new folder."""
    templates = resources.files("stowplan.apps.plugin_kit").joinpath("templates", kind)
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise ConfigError(
            f"{folder} exists already", remedy="choose another name, or another --directory; nothing is overwritten"
        ) from None
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", file=str(folder)) from None
    for template, file in FILES.items():
        text = templates.joinpath(template).read_text(encoding="utf-8")
        target = folder / Template(file).substitute(vars(names))
        target.write_text(Template(text).substitute(vars(names)), encoding="utf-8")
