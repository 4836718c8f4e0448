"""The configuration file, looked at again whenever it changes: taken whole if it is fine, refused whole if it is not.

A reload takes plugins that are there already. One that names code not imported yet is refused: who can write to a
ConfigMap must not thereby be able to run code in the scheduler.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from stowplan.apps import profile_loader
from stowplan.framework.config.configuration import Configuration
from stowplan.framework.profile import Profile
from stowplan.framework.registry import Registry
from stowplan.objects.errors import ConfigError, StowplanError

EVERY = 1.0  # seconds


@dataclass(frozen=True)
class LoadedConfiguration:
    """A configuration and its profiles, and a digest of the text it was made from."""

    configuration: Configuration
    profiles: dict[str, Profile]
    digest: str = ""


class ConfigFile:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._plugins = profile_loader.registry(file.parent)

    def load(self) -> LoadedConfiguration:
        """The first time: plugins are imported."""
        return self._read(self._plugins)

    def load_again(self) -> LoadedConfiguration:
        """What the file says now, by plugins that are there already; a ConfigError if it cannot be used."""
        return self._read(self._plugins.closed())

    def digest(self) -> str:
        """Of the file as it is, empty if it cannot be read."""
        try:
            return digest(profile_loader.read_text(self._file))
        except ConfigError:
            return ""

    def _read(self, plugins: Registry) -> LoadedConfiguration:
        text = profile_loader.read_text(self._file)
        return LoadedConfiguration(*profile_loader.read_by(plugins, self._file, text), digest(text))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def follow(
    file: ConfigFile,
    loaded: LoadedConfiguration,
    *,
    adopt: Callable[[LoadedConfiguration], Awaitable[None]],
    refuse: Callable[[StowplanError], None],
    every: float = EVERY,
) -> None:
    """Look at the file every second; a bad version is complained about once."""
    seen = loaded.digest
    while True:
        await asyncio.sleep(every)
        found = file.digest()
        if found in ("", seen):
            continue
        seen = found
        try:
            await adopt(file.load_again())
        except StowplanError as error:
            refuse(error)
