"""A configuration file that is read again when it changes: that of `stowplan run`, or of `stowplan place`.

A changed file is adopted as a whole, or refused as a whole: whatever goes wrong while it is read or checked, the old
configuration stays in force, and the log says why, once. A file that cannot be read for a while is logged once, too.
Files from which plugins read arguments (`args_file`) are part of it: a change of one is a change of the configuration.

The right to write a ConfigMap must not become the right to run code in the scheduler: files with plugins come from the
folders that a flag names, whatever the configuration says, and a reload may only use plugins that are imported already.
Nor must it stop the scheduler: the size of the file is bounded, and it is read and checked off the event loop. That
makes the plugins, whose constructors may be anybody's code: one that takes too long is not waited for.
"""

from __future__ import annotations

import asyncio
import hashlib
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from stowplan.apps.off_loop import off_loop
from stowplan.apps.profile_loader import read_text
from stowplan.framework.registry import Registry
from stowplan.kube import file_versions
from stowplan.kube.file_versions import FileVersion
from stowplan.objects.errors import ConfigError, StowplanError

CHECK_EVERY = 1.0  # seconds
READ_WITHIN = 20.0  # seconds to read and check a file, and to make its plugins
GONE_AFTER = 2  # looks in vain until a file counts as gone: an editor may be replacing it


class Loaded(Protocol):
    @property
    def digest(self) -> str:
        """A digest of the text that the configuration was read from."""


LoadedT = TypeVar("LoadedT", bound=Loaded)


class WatchedFile(Generic[LoadedT]):
    """`read` makes a configuration of the file's text with these plugins."""

    def __init__(self, file: Path, plugins: Registry, read: Callable[[Registry, Path, str], LoadedT]) -> None:
        self._file, self._plugins, self._read = file, plugins, read
        self._others = ArgumentFiles()

    def load(self) -> LoadedT:
        """Read the file for the first time: plugins are imported."""
        return self._load(self._plugins)

    def load_again(self) -> LoadedT:
        """Read the file again; no plugin is imported. Raises ConfigError if the file cannot be used."""
        return self._load(self._plugins.closed())

    def _load(self, plugins: Registry) -> LoadedT:
        try:
            return self._read(plugins, self._file, read_text(self._file))
        finally:
            self._others.paths = tuple(plugins.argument_files)

    def version(self) -> object:
        """Return what differs after each change of the files. Raises ConfigError if there is none that can be read."""
        try:
            found = self._file.stat()
            if not stat.S_ISREG(found.st_mode):
                return "read once"  # a pipe, say
            with self._file.open("rb"):
                return file_versions.version(found), self._others.versions()
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror}", file=str(self._file)) from None

    def unless_seen(self, seen: str) -> LoadedT | None:
        """Return the configuration; None if it is the one that was seen already."""
        return None if self._digest() == seen else self.load_again()

    def _digest(self) -> str:
        """Return the digest of the files as they are; empty if one of them cannot be read."""
        text = read_text(self._file)
        try:
            return digest(text, *(read_text(each) if each.exists() else "" for each in self._others.paths))
        except (ConfigError, OSError, ValueError):
            return ""


class ArgumentFiles:
    """The files with arguments that the last reading of a configuration looked at, whether they exist or not."""

    def __init__(self) -> None:
        self.paths: tuple[Path, ...] = ()
        self._seen: dict[Path, FileVersion | None] = {}
        self._in_vain: dict[Path, int] = {}

    def versions(self) -> list[FileVersion | None]:
        """Return the version of each. One that is missing keeps its version at first: an editor may be replacing it."""
        for path, found in zip(self.paths, file_versions.versions(self.paths), strict=True):
            in_vain = self._in_vain.get(path, 0) + 1 if found is None and self._seen.get(path) is not None else 0
            self._in_vain[path] = in_vain
            if not 0 < in_vain < GONE_AFTER:
                self._seen[path] = found
        return [self._seen[path] for path in self.paths]


def digest(text: str, *more: str) -> str:
    """Return a digest of the text of a configuration, and of the files with arguments."""
    found = hashlib.sha256(text.encode())
    for each in more:
        found.update(b"\0" + hashlib.sha256(each.encode()).digest())
    return found.hexdigest()


async def follow(
    file: WatchedFile[LoadedT],
    loaded: LoadedT,
    *,
    adopt: Callable[[LoadedT], Awaitable[None]],
    refuse: Callable[[StowplanError], None],
    every: float = CHECK_EVERY,
    within: float = READ_WITHIN,
) -> None:
    """Check the file every second, and adopt or refuse each new version once."""
    in_force, seen, in_vain = loaded.digest, object(), 0
    while True:
        await asyncio.sleep(every)
        try:
            version = file.version()
        except ConfigError as error:
            in_vain += 1
            if in_vain == GONE_AFTER:
                refuse(error)
            continue
        in_vain = 0
        if version == seen:
            continue
        seen = version
        try:
            new = await _off_loop(file, in_force, within)
            if new is not None:
                await adopt(new)
                in_force = new.digest
        except StowplanError as error:
            refuse(error)
        except Exception as error:  # a plugin may raise anything when it is asked what it reads
            refuse(ConfigError(f"{type(error).__name__}: {error}"))


async def _off_loop(file: WatchedFile[LoadedT], seen: str, within: float) -> LoadedT | None:
    try:
        return await off_loop(lambda: file.unless_seen(seen), within)
    except TimeoutError:
        remedy = "the constructor of a plugin may wait for something, or never end"
        raise ConfigError(f"it could not be read and checked within {within:g} s", remedy=remedy) from None
