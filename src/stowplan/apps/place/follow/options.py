"""The command line of `stowplan place follow`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stowplan.apps.leader_election import ElectionSettings


@dataclass(frozen=True)
class FollowOptions:
    """`follower`: the value of the label of objects that we make. Intervals are in seconds."""

    namespace: str
    placement: str
    files: tuple[Path, ...]
    follower: str
    clusters: Mapping[str, Path] = field(default_factory=dict)
    clusters_dir: Path | None = None
    kubeconfig: str = ""
    context: str = ""
    adopt: bool = False
    once: bool = False
    dry_run: bool = False
    resync: float = 30.0
    hold: float = 300.0
    election: ElectionSettings | None = None
    authentication_kubeconfig: str = ""
    authorization_kubeconfig: str = ""
    bind_address: str = "0.0.0.0"  # every request is authorized
    secure_port: int = 8444
    plain_port: int = 0
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    v: int = 0
    logging_format: str = "text"

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.placement}"

    @property
    def single(self) -> bool:
        """True for one round only."""
        return self.once or self.dry_run
