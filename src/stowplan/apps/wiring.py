"""Putting the rooms together: a configuration file becomes profiles with the built-in and third-party plugins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stowplan.framework import config
from stowplan.framework.config import Configuration
from stowplan.framework.profile import Profile, build_all
from stowplan.framework.registry import Registry
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
    return configuration, build_all(configuration, plugins)


def defaults() -> tuple[Configuration, dict[str, Profile]]:
    """As without any configuration file."""
    plugins = registry()
    configuration = config.default(plugins.implements)
    return configuration, build_all(configuration, plugins)
