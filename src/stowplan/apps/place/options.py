"""What `stowplan place` is told to do, and what it made of that; pages and tests look at it."""

from __future__ import annotations

from dataclasses import dataclass, field

from stowplan.apps.engine_loop import EngineLoop
from stowplan.apps.leader_election import ElectionSettings
from stowplan.apps.logging import Log
from stowplan.apps.place.metrics import PlacementMetrics
from stowplan.kube.lease_thread import LeaseThread
from stowplan.kube.reflector import Reflector
from stowplan.objects.actions import Action
from stowplan.placement.availability import Availability
from stowplan.placement.scheduler import RESCHEDULE, PlacementScheduler

KINDS = (
    "ManagedCluster",
    "ManagedClusterSet",
    "ManagedClusterSetBinding",
    "AddOnPlacementScore",
    "Placement",
    "PlacementDecision",
)
OWN_LEASE = "stowplan-placement"


class PlacementEngine(PlacementScheduler):
    """Nothing it does is mere upkeep: every write is part of a decision."""

    def is_upkeep(self, action: Action) -> bool:  # noqa: ARG002
        return False


@dataclass(frozen=True)
class PlaceOptions:
    """The command line."""

    kubeconfig: str = ""
    context: str = ""
    leader_elect: bool = True
    election: ElectionSettings = field(default_factory=lambda: ElectionSettings(name=OWN_LEASE))
    authentication_kubeconfig: str = ""
    authorization_kubeconfig: str = ""
    bind_address: str = "0.0.0.0"  # the pages ask who comes
    secure_port: int = 8443
    plain_port: int = 0
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    v: int = 0
    logging_format: str = "text"
    reschedule: float = RESCHEDULE
    ocm: bool = False
    taint_unavailable: bool = False


@dataclass
class RunningPlacement:
    options: PlaceOptions
    log: Log
    metrics: PlacementMetrics = field(default_factory=PlacementMetrics)
    reflectors: dict[str, Reflector] = field(default_factory=dict)
    live: EngineLoop[PlacementEngine] | None = None
    tainting: EngineLoop[Availability] | None = None
    lease: LeaseThread | None = None
    lost: bool = False
    stopping: bool = False

    @property
    def leading(self) -> bool:
        return not self.options.leader_elect if self.lease is None else self.lease.leading

    @property
    def synced(self) -> bool:
        return bool(self.reflectors) and all(each.synced.is_set() for each in self.reflectors.values())

    @property
    def missing(self) -> list[str]:
        """The kinds that the hub has no definition of. While there are any nothing is decided: a hub whose clusters
        are out of sight is no reason to give them up.
        """
        return [kind for kind in KINDS if kind not in self.reflectors or not self.reflectors[kind].served]

    @property
    def informed(self) -> bool:
        return self.synced and not self.missing
