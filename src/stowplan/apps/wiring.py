"""Putting the rooms together: a configuration file becomes profiles with the built-in and third-party plugins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import yaml

from stowplan.framework import config
from stowplan.framework.config import Configuration, ProfileSpec
from stowplan.framework.profile import Profile, build_all
from stowplan.framework.registry import Registry, check_arguments
from stowplan.objects.errors import ConfigError
from stowplan.plugins import BUILT_IN


def registry(folder: Path | None = None) -> Registry:
    """All plugins there are; plugins given by path are looked for from `folder` on."""
    return Registry(BUILT_IN, folder=folder, discover=True)


def read_configuration(file: Path) -> tuple[Configuration, dict[str, Profile]]:
    """A configuration file and its profiles, by scheduler name."""
    return read_by(registry(file.parent), file, read_text(file))


def read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(file)) from None
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8 text", file=str(file)) from None


def read_by(plugins: Registry, file: Path, text: str) -> tuple[Configuration, dict[str, Profile]]:
    """What a file says, with these plugins; whatever is wrong, the error names the file."""
    try:
        return _configured(text, plugins, str(file))
    except ConfigError as error:
        raise error.located(str(file)) from None


def configured(
    document: str | bytes | Mapping[str, Any], *, folder: Path | None = None, file: str = ""
) -> tuple[Configuration, dict[str, Profile]]:
    return _configured(document, registry(folder), file)


def _configured(
    document: str | bytes | Mapping[str, Any], plugins: Registry, file: str
) -> tuple[Configuration, dict[str, Profile]]:
    configuration = config.load(document, implements=plugins.implements, known=plugins.names(), file=file)
    profiles = tuple(_with_files(spec, plugins) for spec in configuration.profiles)
    configuration = msgspec.structs.replace(configuration, profiles=profiles)
    built = build_all(configuration, plugins)
    notes = (*configuration.notes, *_notes(built.values()))
    return msgspec.structs.replace(configuration, notes=notes), built


def _notes(profiles: Iterable[Profile]) -> Iterator[str]:
    """What plugins have to say about their arguments."""
    for i, profile in enumerate(profiles):
        for bound in profile.all:
            for note in getattr(bound.plugin, "config_notes", ()):
                yield f"profiles[{i}].pluginConfig[name={bound.name}].args: {note}"


def _with_files(spec: ProfileSpec, plugins: Registry) -> ProfileSpec:
    """Some plugins have arguments in a file of their own, found from the configuration's folder on; those here win."""
    args = {name: dict(found) for name, found in spec.plugin_args.items()}
    for name in {enabled.name for bounds in spec.points.values() for enabled in bounds}:
        plugin = plugins.find(name)
        named_by, usual = getattr(plugin, "args_file", ("", ""))
        if plugin is None or not named_by:
            continue
        own = args.setdefault(name, {})
        file = own.pop(named_by, None)
        if file is not None and not (isinstance(file, str) and file):
            path = f"pluginConfig[name={name}].args.{named_by}"
            raise ConfigError(f"found {file!r}, expected the path of a file", path=path)
        found = _file_args(plugin, plugins.folder / (file or usual), must_be=file is not None)
        args[name] = found | own
    return msgspec.structs.replace(spec, plugin_args=args)


def _file_args(plugin: type, file: Path, *, must_be: bool) -> dict[str, Any]:
    if not must_be and not _is_there(file):
        return {}
    text = read_text(file)
    try:
        found = yaml.safe_load(text) or {}
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that there is not
        raise ConfigError(f"not YAML: {' '.join(str(error).split())}", file=str(file)) from None
    if not isinstance(found, dict) or not all(isinstance(name, str) for name in found):
        raise ConfigError("found no mapping of arguments", file=str(file), remedy="give each as `name: value`")
    try:
        check_arguments(plugin, found, "")
    except ConfigError as error:
        raise error.located(str(file)) from None
    return found


def _is_there(file: Path) -> bool:
    try:
        return file.exists()
    except OSError:  # a folder that is not ours to look into
        return False


def defaults() -> tuple[Configuration, dict[str, Profile]]:
    """As without any configuration file."""
    plugins = registry()
    configuration = config.default(plugins.implements)
    return configuration, build_all(configuration, plugins)
