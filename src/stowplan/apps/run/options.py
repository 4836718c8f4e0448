"""What a scheduler is told to do, what it made of that, and the configuration it starts with."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from stowplan.apps import profile_loader
from stowplan.apps.engine_loop import EngineLoop
from stowplan.apps.logging import Log
from stowplan.apps.run.metrics import Metrics
from stowplan.apps.run.reload import LoadedConfiguration
from stowplan.engine.reports import PluginMisbehaved
from stowplan.engine.scheduler import Scheduler
from stowplan.framework.profile import Profile
from stowplan.kube.lease_thread import LeaseThread
from stowplan.kube.reflector import Reflector

OWN_NAME = profile_loader.OWN_NAME
MOST_SAID = 1000  # texts about plugins that are remembered


@dataclass(frozen=True)
class RunOptions:
    """The command line."""

    config: Path | None = None
    kubeconfig: str = ""
    context: str = ""
    leader_elect: bool | None = None
    lease_name: str = ""
    lease_namespace: str = ""
    authentication_kubeconfig: str = ""
    authorization_kubeconfig: str = ""
    bind_address: str = "0.0.0.0"  # as kube-scheduler; the pages ask who comes
    secure_port: int = 10259
    plain_port: int = 0
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    v: int = 0
    logging_format: str = "text"
    longest_wait: float = 300.0
    replace: bool = False


@dataclass
class RunningScheduler:
    """What a program made of its options; pages and tests look at it."""

    options: RunOptions
    loaded: LoadedConfiguration
    log: Log
    metrics: Metrics = field(default_factory=Metrics)
    reflectors: dict[str, Reflector] = field(default_factory=dict)
    live: EngineLoop[Scheduler] | None = None
    lease: LeaseThread | None = None
    lost: bool = False
    stopping: bool = False
    said: set[PluginMisbehaved] = field(default_factory=set)

    def misbehaved(self, what: PluginMisbehaved) -> None:
        """Say it, once for each different text."""
        if what in self.said:
            return
        if len(self.said) >= MOST_SAID:
            self.said.clear()
        self.said.add(what)
        self.log.warning("A plugin misbehaves", plugin=what.plugin, point=what.point, problem=what.problem)

    @property
    def elects(self) -> bool:
        """Is there a lease to be had before anything is decided?"""
        told = self.options.leader_elect
        return self.loaded.configuration.leader_election.leader_elect if told is None else told

    @property
    def leading(self) -> bool:
        return not self.elects if self.lease is None else self.lease.leading

    @property
    def synced(self) -> bool:
        return bool(self.reflectors) and all(each.synced.is_set() for each in self.reflectors.values())


def instead_of_kube_scheduler() -> LoadedConfiguration:
    """The default configuration, which serves `default-scheduler`."""
    return LoadedConfiguration(*profile_loader.defaults())


def beside_kube_scheduler() -> LoadedConfiguration:
    """The same under a name of our own."""
    configuration, profiles = profile_loader.defaults()
    default = profiles["default-scheduler"]
    own = Profile(OWN_NAME, default.points, default.percentage_of_nodes_to_score)
    spec = msgspec.structs.replace(configuration.profiles[0], scheduler_name=OWN_NAME)
    return LoadedConfiguration(msgspec.structs.replace(configuration, profiles=(spec,)), {OWN_NAME: own})
