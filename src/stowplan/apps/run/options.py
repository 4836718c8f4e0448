"""The command line of `stowplan run`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from stowplan.apps.leader_election import ElectionSettings
from stowplan.apps.profile_loader import OWN_NAME
from stowplan.apps.run.kube_scheduler import LEASE_NAME
from stowplan.apps.serving_security import DEFAULT_SECURITY, ServingSecurity
from stowplan.framework.config import settings
from stowplan.framework.config.configuration import DEFAULT_SCHEDULER_NAME, Configuration
from stowplan.framework.config.settings import ClientConnection, LeaderElection
from stowplan.framework.feature_gates import DEFAULT_GATES, FeatureGates


@dataclass(frozen=True)
class RunOptions:
    config: Path | None = None
    plugin_path: tuple[Path, ...] = ()
    feature_gates: FeatureGates = DEFAULT_GATES
    kubeconfig: str = ""
    context: str = ""
    leader_elect: bool | None = None
    lease_name: str = ""
    lease_namespace: str = ""
    authentication_kubeconfig: str = ""
    authorization_kubeconfig: str = ""
    bind_address: str = "0.0.0.0"  # as kube-scheduler; every request is authorized
    secure_port: int = 10259
    plain_port: int = 0
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    v: int = 0
    logging_format: str = "text"
    longest_wait: float = 300.0
    replace: bool = False
    lease_duration: float | None = None  # None, here and below: as the configuration says
    renew_deadline: float | None = None
    retry_period: float | None = None
    kube_api_qps: float | None = None
    kube_api_burst: int | None = None
    profiling: bool | None = None
    record: Path | None = None
    record_size: int = 1 << 30  # bytes
    decision_log: Path | None = None
    decision_log_size: int = 100 << 20  # bytes
    decision_log_sample: float = 1.0  # of the pods
    security: ServingSecurity = DEFAULT_SECURITY

    def election(self, configuration: Configuration) -> ElectionSettings | None:
        """Return the lease to hold, if any. It is kube-scheduler's own if a flag asks for that, or (`rights_decide`)
        if rights allow it.
        """
        given = self._leader_election(configuration)
        if not given.leader_elect:
            return None
        name = OWN_NAME if self._is_open(configuration) else self.lease_name or given.resource_name
        namespace = self.lease_namespace or given.resource_namespace
        return ElectionSettings(
            name=name,
            namespace=namespace,
            lease_duration=given.lease_duration,
            renew_deadline=given.renew_deadline,
            retry_period=given.retry_period,
        )

    def _leader_election(self, configuration: Configuration) -> LeaderElection:
        """Return what the file says, with what flags say instead. Raises ConfigError for durations that cannot work."""
        names = ("leader_elect", "lease_duration", "renew_deadline", "retry_period")
        flags = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        found = msgspec.structs.replace(configuration.leader_election, **flags)
        if flags:
            settings.check_leader_election(found)
        return found

    def connection(self, configuration: Configuration) -> ClientConnection:
        """Return how to reach the API server."""
        given = configuration.client_connection
        qps = given.qps if self.kube_api_qps is None else self.kube_api_qps
        burst = given.burst if self.kube_api_burst is None else self.kube_api_burst
        return msgspec.structs.replace(given, qps=qps, burst=burst)

    def serves_profiles(self, configuration: Configuration) -> bool:
        return configuration.enable_profiling if self.profiling is None else self.profiling

    def rights_decide(self, configuration: Configuration) -> bool:
        """True if this scheduler takes kube-scheduler's lease as soon as it may: it schedules for default-scheduler."""
        names = (profile.scheduler_name for profile in configuration.profiles)
        return self._is_open(configuration) and DEFAULT_SCHEDULER_NAME in names

    def _is_open(self, configuration: Configuration) -> bool:
        """True if neither a flag nor the file says which lease it is. (The file's default is kube-scheduler's.)"""
        return not self.lease_name and not self.replace and configuration.leader_election.resource_name == LEASE_NAME
