"""The configuration file of `stowplan run`, which is read again when it changes.

A changed file is adopted as a whole, or refused as a whole. The right to write a ConfigMap must not become the right
to run code in the scheduler: files with plugins come from the folders that a flag names, whatever the configuration
says, and a reload may only use plugins that are imported already.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from stowplan.apps import profile_loader
from stowplan.apps.run.configuration import LoadedConfiguration
from stowplan.framework.registry import Registry
from stowplan.objects.errors import ConfigError, StowplanError

CHECK_EVERY = 1.0  # seconds


class ConfigFile:
    def __init__(self, file: Path, plugin_path: Sequence[Path] = ()) -> None:
        """`plugin_path`: the folders that code may come from."""
        self._file = file
        self._plugins = profile_loader.registry(file.parent, tuple(plugin_path))

    def load(self) -> LoadedConfiguration:
        """Read the file for the first time: plugins are imported."""
        return self._read(self._plugins)

    def load_again(self) -> LoadedConfiguration:
        """Read the file again; no plugin is imported. Raises ConfigError if the file cannot be used."""
        return self._read(self._plugins.closed())

    def digest(self) -> str:
        """Return a digest of the file as it is now; empty if it cannot be read."""
        try:
            return digest(profile_loader.read_text(self._file))
        except ConfigError:
            return ""

    def _read(self, plugins: Registry) -> LoadedConfiguration:
        text = profile_loader.read_text(self._file)
        return LoadedConfiguration(*profile_loader.read_with(plugins, self._file, text), digest(text))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def follow(
    file: ConfigFile,
    loaded: LoadedConfiguration,
    *,
    adopt: Callable[[LoadedConfiguration], Awaitable[None]],
    refuse: Callable[[StowplanError], None],
    every: float = CHECK_EVERY,
) -> None:
    """Check the file every second, and adopt or refuse each new version once."""
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
