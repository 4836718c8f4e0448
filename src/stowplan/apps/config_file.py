"""A configuration file that is read again when it changes: that of `stowplan run`, or of `stowplan place`.

A changed file is adopted as a whole, or refused as a whole. The right to write a ConfigMap must not become the right
to run code in the scheduler: files with plugins come from the folders that a flag names, whatever the configuration
says, and a reload may only use plugins that are imported already.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from stowplan.apps.profile_loader import read_text
from stowplan.framework.registry import Registry
from stowplan.objects.errors import ConfigError, StowplanError

CHECK_EVERY = 1.0  # seconds


class Loaded(Protocol):
    @property
    def digest(self) -> str:
        """A digest of the text that the configuration was read from."""


LoadedT = TypeVar("LoadedT", bound=Loaded)


class WatchedFile(Generic[LoadedT]):
    """`read` makes a configuration of the file's text with these plugins."""

    def __init__(self, file: Path, plugins: Registry, read: Callable[[Registry, Path, str], LoadedT]) -> None:
        self._file, self._plugins, self._read = file, plugins, read

    def load(self) -> LoadedT:
        """Read the file for the first time: plugins are imported."""
        return self._read(self._plugins, self._file, read_text(self._file))

    def load_again(self) -> LoadedT:
        """Read the file again; no plugin is imported. Raises ConfigError if the file cannot be used."""
        return self._read(self._plugins.closed(), self._file, read_text(self._file))

    def digest(self) -> str:
        """Return a digest of the file as it is now; empty if it cannot be read."""
        try:
            return digest(read_text(self._file))
        except ConfigError:
            return ""


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def follow(
    file: WatchedFile[LoadedT],
    loaded: LoadedT,
    *,
    adopt: Callable[[LoadedT], Awaitable[None]],
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
        except Exception as error:  # a plugin may raise anything when it is made or asked what it reads
            refuse(ConfigError(f"{type(error).__name__}: {error}"))
