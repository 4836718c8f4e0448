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
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", file=str(file)) from None
    except UnicodeDecodeError:
        raise ConfigError("is not UTF-8 text", file=str(file)) from None
    try:
        return configured(text, folder=file.parent, file=str(file))
    except ConfigError as error:
        raise error.located(str(file)) from None


def configured(
    document: str | bytes | Mapping[str, Any], *, folder: Path | None = None, file: str = ""
) -> tuple[Configuration, dict[str, Profile]]:
    plugins = registry(folder)
    configuration = config.load(document, implements=plugins.implements, known=plugins.names(), file=file)
    return configuration, build_all(configuration, plugins)


def defaults() -> tuple[Configuration, dict[str, Profile]]:
    """As without any configuration file."""
    plugins = registry()
    configuration = config.default(plugins.implements)
    return configuration, build_all(configuration, plugins)
