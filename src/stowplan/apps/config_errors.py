"""All errors of a configuration file, for `stowplan config check`. A service stops at the first one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from stowplan.apps import profile_loader
from stowplan.apps.place import configuration as placement
from stowplan.framework.config import all_errors, arguments, document, placement_configuration
from stowplan.objects import bounded_yaml
from stowplan.objects.errors import ConfigError


@contextmanager
def all_told(file: Path, plugin_path: Sequence[Path] = ()) -> Iterator[None]:
    """An error inside is told together with all others of the file, one line each, and ends the command."""
    try:
        yield
    except ConfigError:
        found = find(file, plugin_path)
        if len(found) < 2:
            raise
        for each in found:
            click.echo(f"stowplan: {each}", err=True)
        click.echo(f"stowplan: {file}: {len(found)} errors", err=True)
        click.get_current_context().exit(2)


def find(file: Path, plugin_path: Sequence[Path] = ()) -> list[ConfigError]:
    """Return the errors of a KubeSchedulerConfiguration or a PlacementConfiguration, each with the file's name."""
    text = profile_loader.read_text(file)
    found: list[ConfigError] = []
    try:
        plain: Any = document.parse(text)
    except ConfigError as error:
        found.append(error.located(str(file)))
        plain = _despite_double_keys(text)
    if isinstance(plain, dict):
        read, version = _reader(plain, file, plugin_path)
        found += [each.located(str(file)) for each in all_errors.every(plain, read, {"apiVersion": version})]
    return found


def _despite_double_keys(text: str) -> Any:
    try:
        return bounded_yaml.load(text, unique_keys=False)
    except ConfigError:
        return None


def _reader(
    plain: dict[str, Any], file: Path, plugin_path: Sequence[Path]
) -> tuple[Callable[[dict[str, Any]], object], str]:
    """Return how to read such a document, and its right apiVersion. Each plugin file is imported once."""
    folders = (*plugin_path, file.parent)
    if plain.get("kind") == placement_configuration.KIND:
        policies = placement.registry(file.parent, folders)
        return _named_by(file, lambda text: placement.read_with(policies, file, text, ocm=False)), (
            placement_configuration.VERSION
        )
    plugins = profile_loader.registry(file.parent, folders)
    return _named_by(file, lambda text: profile_loader.read_with(plugins, file, text)), f"{arguments.GROUP}/v1"


def _named_by(file: Path, read: Callable[[str], object]) -> Callable[[dict[str, Any]], object]:
    """Return a reader of documents whose errors have a file only if it is another one, with arguments say."""

    def of_document(plain: dict[str, Any]) -> object:
        try:
            return read(json.dumps(plain))
        except ConfigError as error:
            if error.file != str(file):
                raise
            raise ConfigError(error.problem, path=error.path, remedy=error.remedy, key=error.key) from None

    return of_document
