"""`stowplan run --record FILE`: what comes into the scheduler, line by line, for `stowplan replay`.

Only the owner can read the file. Each line is handed to the system at once, so a program that is killed loses at most
the end of its last line. The file of an earlier run becomes FILE.1. At `--record-size` the recording ends; scheduling
goes on. So it does if the file cannot be written any more.

There is no Secret in it, and nothing of a container but its name, image, ports and amounts. Annotations are in it as
they are.
"""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any

import msgspec

from stowplan.apps.logging import Log
from stowplan.apps.run.configuration import LoadedConfiguration
from stowplan.apps.run.options import RunOptions
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.feature_gates import GATES
from stowplan.framework.profile import Profile
from stowplan.objects.errors import ConfigError
from stowplan.simulation.recording import RecordedScheduler, RecordingHeader

FULL = msgspec.json.encode({"now": 0.0, "end": "the recording has the size that --record-size allows"}) + b"\n"


class Recording:
    """A file that is written until it is full."""

    def __init__(self, file: Path, most: int, log: Log) -> None:
        self.seed, self.clock_began = secrets.randbits(64), time.time() - time.monotonic()
        self._file, self._left, self._log = file, most, log
        try:
            if file.exists():
                file.replace(file.with_name(f"{file.name}.1"))
            self._descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        except OSError as error:
            remedy = "give --record a path that this program may write to"
            raise ConfigError(f"cannot be written: {error.strerror}", file=str(file), remedy=remedy) from None

    def begin(self, options: RunOptions, loaded: LoadedConfiguration, text: str | None) -> None:
        """Write what the scheduler is made of. `text`: of its configuration file."""
        gates = tuple(
            f"{name}={str(getattr(options.feature_gates, gate.attribute)).lower()}" for name, gate in GATES.items()
        )
        header = RecordingHeader(
            stowplan=version("stowplan"),
            python=sys.version.split()[0],
            seed=self.seed,
            schedulers=tuple(loaded.profiles),
            config=text,
            config_file="" if options.config is None else str(options.config.absolute()),
            config_digest=loaded.digest,
            plugins=plugin_versions(loaded.profiles.values()),
            feature_gates=gates,
            longest_wait=float(options.longest_wait),  # a flag's is a Seconds, which msgspec does not encode
            clock_began=self.clock_began,
        )
        self.write(msgspec.json.encode(header) + b"\n")

    def scheduler(self, *arguments: Any, **options: Any) -> Scheduler:
        """Return a scheduler that is recorded."""
        return RecordedScheduler(self.write, *arguments, **options)

    def write(self, line: bytes) -> None:
        if self._left <= 0:
            return
        self._left -= len(line)
        try:
            os.write(self._descriptor, line if self._left > 0 else line + FULL)
        except OSError as error:
            self._left = 0
            self._log.warning("The recording cannot be written and ends", file=str(self._file), error=str(error))
            return
        if self._left <= 0:
            self._log.warning("The recording is full and ends", file=str(self._file))


def plugin_versions(profiles: Iterable[Profile]) -> dict[str, str]:
    """Return the module of each plugin that is not built in, and the version of its package."""
    types = {enabled.name: type(enabled.plugin) for profile in profiles for enabled in profile.all}
    foreign = {name: found for name, found in types.items() if not found.__module__.startswith("stowplan.")}
    distributions = packages_distributions() if foreign else {}
    return {name: _version(found.__module__, distributions) for name, found in sorted(foreign.items())}


def _version(module: str, distributions: Mapping[str, Sequence[str]]) -> str:
    try:
        named = distributions.get(module.partition(".")[0], ())
        return f"{module} {version(named[0])}" if named else module
    except PackageNotFoundError:
        return module
