"""The configuration file, looked at again whenever it changes: taken whole if it is fine, refused whole if it is not.

A reload takes plugins that are there already. One that names code not imported yet is refused: who can write to a
ConfigMap must not thereby be able to run code in the scheduler.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from pathlib import Path

from stowplan.apps import wiring
from stowplan.framework.config import Configuration
from stowplan.framework.profile import Profile, build_all
from stowplan.framework.registry import Registry
from stowplan.objects.errors import ConfigError, StowplanError

EVERY = 1.0  # seconds


class Loaded:
    """A configuration in force, and what it was made from."""

    def __init__(self, configuration: Configuration, profiles: dict[str, Profile], digest: str = "") -> None:
        self.configuration, self.profiles, self.digest = configuration, profiles, digest


class ConfigFile:
    def __init__(self, file: Path) -> None:
        self._file = file
        self._registry: Registry | None = None

    def load(self) -> Loaded:
        """The first time: plugins are imported."""
        text = self._read()
        self._registry = wiring.registry(self._file.parent)
        return self._made(text, self._registry)

    def changed(self, since: str) -> Loaded | None:
        """What the file says now, None if that is what it said; a ConfigError if it cannot be used."""
        text = self._read()
        if digest(text) == since:
            return None
        registry = self._registry or wiring.registry(self._file.parent)
        return self._made(text, registry.closed())

    def seen(self) -> str:
        """A digest of the file as it is, empty if it cannot be read."""
        try:
            return digest(self._read())
        except ConfigError:
            return ""

    def _read(self) -> bytes:
        try:
            return self._file.read_bytes()
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", file=str(self._file)) from None

    def _made(self, text: bytes, registry: Registry) -> Loaded:
        from stowplan.framework import config

        try:
            configuration = config.load(
                text, implements=registry.implements, known=registry.names(), file=str(self._file)
            )
            return Loaded(configuration, build_all(configuration, registry), digest(text))
        except ConfigError as error:
            raise error.located(str(self._file)) from None


def digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


async def follow(
    file: ConfigFile,
    loaded: Loaded,
    *,
    adopt: Callable[[Loaded], None],
    refuse: Callable[[StowplanError], None],
    every: float = EVERY,
) -> None:
    """Look at the file every second; a bad version is complained about once."""
    in_force, complained = loaded.digest, ""
    while True:
        await asyncio.sleep(every)
        seen = file.seen()
        if not seen or seen in (in_force, complained):
            continue
        try:
            new = file.changed(in_force)
            if new is not None:
                adopt(new)
                in_force = new.digest
            complained = ""
        except StowplanError as error:
            complained = seen
            refuse(error)
