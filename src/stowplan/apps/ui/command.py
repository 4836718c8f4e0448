"""`stowplan ui`: serve the pages on the loopback until Ctrl-C, and open a browser."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from stowplan.apps import large_reads, plugin_kinds, profile_loader
from stowplan.apps.explain import checks
from stowplan.apps.explain.sources import ALWAYS, FileSource
from stowplan.apps.logging import Log
from stowplan.apps.place.configuration import load_policy
from stowplan.apps.program import on_stop_signal
from stowplan.apps.ui import service, simulated_runs
from stowplan.apps.ui.access import BrowserAccess, new_token
from stowplan.apps.ui.cluster import ClusterModel, Policies
from stowplan.apps.ui.scheduler_feed import SchedulerFeed
from stowplan.apps.ui.service import UiService
from stowplan.apps.ui.site import Site
from stowplan.framework.feature_gates import DEFAULT_GATES, FeatureGates
from stowplan.kube import credentials, event_loop
from stowplan.objects.errors import ConfigError
from stowplan.serving import descriptors

SHORTEST_TOKEN = 16


@dataclass(frozen=True)
class UiOptions:
    """The command line."""

    kubeconfig: str = ""
    context: str = ""
    files: tuple[Path, ...] = ()
    simulations: tuple[Path, ...] = ()
    of: str = ""
    config: Path | None = None
    plugin_path: tuple[Path, ...] = ()
    feature_gates: FeatureGates = DEFAULT_GATES
    port: int = 0
    token: str = ""
    browser: bool = True
    v: int = 0

    @property
    def of_cluster(self) -> bool:
        """Whether a live cluster is looked at: unless there are files, or simulations alone."""
        named = bool(self.context or self.kubeconfig or self.of)
        return not self.files and (named or not self.simulations)


def run(options: UiOptions) -> int:
    """Serve the pages until a signal. Return the exit code."""
    _check(options)
    descriptors.raise_limit()
    runs = simulated_runs.read(options.simulations)
    policies = None if not (options.of_cluster or options.files) else policies_of(options)

    async def until_signal() -> int:
        stop = asyncio.Event()
        on_stop_signal(stop.set)
        return await main(options, policies, runs, stop)

    with asyncio.Runner(loop_factory=event_loop.new) as runner:
        return runner.run(until_signal())


async def main(
    options: UiOptions,
    policies: Policies | None,
    runs: simulated_runs.SimulatedRuns,
    stop: asyncio.Event,
    told: Callable[[str], None] | None = None,
) -> int:
    """Serve until `stop` is set. `told` gets the address, once it is served."""
    log, access = Log(options.v), BrowserAccess(options.token or new_token())
    model = None if policies is None else await _model(options, policies)
    site, scheduler = Site(model, runs, access), None
    if options.of and model is not None:
        scheduler = SchedulerFeed(options.of, options.kubeconfig, options.context, model.feed)
        site.feed_notes = lambda: [] if scheduler is None else scheduler.notes
    try:
        with service.serving(site, access, options.port, log) as address:
            _tell(options, model, runs, address)
            if told is not None:
                told(address)
            if model is not None and model.is_live and policies is not None:
                return await _follow(options, model, policies, log, stop, scheduler)
            await stop.wait()
            return 0
    finally:
        if model is not None:
            model.close()


def _check(options: UiOptions) -> None:
    if options.files and (options.context or options.kubeconfig or options.of):
        raise ConfigError("found --from and a live cluster", remedy="look at one of them, or start two")
    if options.token and (len(options.token) < SHORTEST_TOKEN or not options.token.isascii()):
        raise ConfigError(
            f"--token has {len(options.token)} characters", remedy=f"give {SHORTEST_TOKEN} ASCII characters or more"
        )
    if options.token and not all(each.isalnum() or each in "-_" for each in options.token):
        raise ConfigError("--token has other characters than letters, digits, - and _", remedy="leave the others out")


def policies_of(options: UiOptions) -> Policies:
    """Return what pods and placements are judged by."""
    configuration, profiles = profile_loader.for_questions(options.config, options.plugin_path, options.feature_gates)
    flags = (
        *(("--kubeconfig", options.kubeconfig) if options.kubeconfig else ()),
        *(("--context", options.context) if options.context else ()),
    )
    return Policies(configuration, profiles, load_policy(None).policy, flags)


async def _model(options: UiOptions, policies: Policies) -> ClusterModel:
    if not options.files:
        name = options.context or credentials.load(options.kubeconfig or None, options.context or None).server
        return service.live_model(f"cluster {name}", policies, options.kubeconfig, options.context)
    source = FileSource(options.files, lambda problem: click.echo(f"warning: {problem}", err=True))
    brought = plugin_kinds.brought(policies.profiles.values())
    with large_reads.without_collection():
        objects = source.objects(ALWAYS, brought)
    checks.has_cluster(objects, options.files)
    names, now = ", ".join(each.name for each in options.files), source.now()
    as_of = datetime.fromtimestamp(now, UTC).strftime(", as of %Y-%m-%d %H:%M UTC") if now else ""
    model = ClusterModel(names + as_of, policies, lambda: source)
    model.begin(objects)
    model.later(service.remember_events)
    return model


async def _follow(
    options: UiOptions,
    model: ClusterModel,
    policies: Policies,
    log: Log,
    stop: asyncio.Event,
    scheduler: SchedulerFeed | None,
) -> int:
    program = UiService(model, policies, options.kubeconfig, options.context, log, scheduler)
    stopping = asyncio.ensure_future(_stop_with(stop, program))
    try:
        return await program.main()
    finally:
        stopping.cancel()


async def _stop_with(stop: asyncio.Event, program: UiService) -> None:
    await stop.wait()
    program.stop()


def _tell(options: UiOptions, model: ClusterModel | None, runs: simulated_runs.SimulatedRuns, address: str) -> None:
    what = runs.name if model is None else model.name
    click.echo(f"Showing {what}. It can only be read, and only from this machine:\n\n    {address}\n\nCtrl-C ends it.")
    if options.browser and _has_screen():
        webbrowser.open(address)


def _has_screen() -> bool:
    """True if a browser could open a window: one on a terminal would take that over."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
