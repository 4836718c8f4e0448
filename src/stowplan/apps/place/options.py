"""The command line of `stowplan place`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from stowplan.apps.leader_election import ElectionSettings
from stowplan.placement.scheduler import RESCHEDULE

OWN_LEASE = "stowplan-placement"


@dataclass(frozen=True)
class PlaceOptions:
    config: Path | None = None
    plugin_path: tuple[Path, ...] = ()
    kubeconfig: str = ""
    context: str = ""
    leader_elect: bool = True
    election: ElectionSettings = field(default_factory=lambda: ElectionSettings(name=OWN_LEASE))
    authentication_kubeconfig: str = ""
    authorization_kubeconfig: str = ""
    bind_address: str = "0.0.0.0"  # every request is authorized
    secure_port: int = 8443
    plain_port: int = 0
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    v: int = 0
    logging_format: str = "text"
    reschedule: float = RESCHEDULE
    ocm: bool = False
    hysteresis: int = 0
    taint_unavailable: bool = False
