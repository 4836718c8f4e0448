"""`stowplan shadow`: what is asked for, and by which profiles pods are judged."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import click

from stowplan.apps import import_path, profile_loader, program
from stowplan.framework.config.configuration import Configuration
from stowplan.framework.feature_gates import DEFAULT_GATES, FeatureGates
from stowplan.framework.profile import Profile
from stowplan.objects.errors import ConfigError
from stowplan.shadow.judge import ShadowSettings


@dataclass(frozen=True)
class ShadowOptions:
    """The command line."""

    config: Path | None = None
    scheduler_names: tuple[str, ...] = ()
    percentage: int = 0
    window: float = 2.0
    grace: float = 15.0
    seconds: float | None = None
    pods: int | None = None
    everything: bool = False
    output: str = "table"
    out: Path | None = None
    fail_on_difference: bool = False
    port: int = 0
    plugin_path: tuple[Path, ...] = ()
    feature_gates: FeatureGates = DEFAULT_GATES
    kubeconfig: str = ""
    context: str = ""
    v: int = 0

    @property
    def settings(self) -> ShadowSettings:
        patience = max(5 * self.window, ShadowSettings.patience)
        return ShadowSettings(self.window, patience, self.grace, self.percentage)


def run(options: ShadowOptions) -> int:
    """Judge decisions until that is enough. Return the exit code."""
    from stowplan.apps.shadow.service import ShadowService

    import_path.leave_out_current_folder()
    configuration, profiles = _configured(options)
    judged = profiles_by_name(profiles, options.scheduler_names)
    for note in (*configuration.notes, *_not_asked(configuration)):
        click.echo(f"note: {note}", err=True)
    with contextlib.ExitStack() as files:
        out = None if options.out is None else files.enter_context(_opened(options.out))
        service: list[ShadowService] = []

        def made() -> ShadowService:
            service.append(ShadowService(options, judged, out))
            return service[0]

        code = program.run(made)
    return code or int(options.fail_on_difference and service[0].differences > 0)


def _configured(options: ShadowOptions) -> tuple[Configuration, dict[str, Profile]]:
    if options.config is None:
        return profile_loader.defaults(options.feature_gates)
    return profile_loader.read_configuration(options.config, options.plugin_path, options.feature_gates)


def profiles_by_name(profiles: Mapping[str, Profile], names: Sequence[str]) -> dict[str, Profile]:
    """Return how pods are judged, by the name of their scheduler. A name without a profile is judged by the only one.

    Raises ConfigError if there are several.
    """
    found = {}
    for name in names or profiles:
        if name not in profiles and len(profiles) > 1:
            remedy = f"choose from {', '.join(profiles)}, or give a configuration with one profile"
            raise ConfigError(f"found {name}, for which there is no profile", path="--scheduler-name", remedy=remedy)
        found[name] = profiles.get(name) or next(iter(profiles.values()))
    return found


def _not_asked(configuration: Configuration) -> list[str]:
    """Say that extenders are left out: they are not asked about decisions of others."""
    names = [each.url_prefix for each in configuration.extenders]
    return [f"not asked: the extenders {', '.join(names)}. They may reject nodes or change scores."] if names else []


def _opened(file: Path) -> TextIO:
    try:
        return file.open("w", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"cannot be written: {error.strerror}", path="--out", file=str(file)) from None
