"""The command line of `stowplan run`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stowplan.apps.leader_election import ElectionSettings
from stowplan.apps.profile_loader import OWN_NAME
from stowplan.apps.run.kube_scheduler import LEASE_NAME
from stowplan.framework.config.configuration import DEFAULT_SCHEDULER_NAME, Configuration
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

    def election(self, configuration: Configuration) -> ElectionSettings | None:
        """Return the lease to hold, if any. It is kube-scheduler's own if a flag asks for that, or (`rights_decide`)
        if rights allow it.
        """
        given = configuration.leader_election
        if not (given.leader_elect if self.leader_elect is None else self.leader_elect):
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

    def rights_decide(self, configuration: Configuration) -> bool:
        """True if this scheduler takes kube-scheduler's lease as soon as it may: it schedules for default-scheduler."""
        names = (profile.scheduler_name for profile in configuration.profiles)
        return self._is_open(configuration) and DEFAULT_SCHEDULER_NAME in names

    def _is_open(self, configuration: Configuration) -> bool:
        """True if neither a flag nor the file says which lease it is. (The file's default is kube-scheduler's.)"""
        return not self.lease_name and not self.replace and configuration.leader_election.resource_name == LEASE_NAME
