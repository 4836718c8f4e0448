"""All controllers. The order is their priority: controllers that others wait for come first."""

from __future__ import annotations

from stowplan.embedded.controllers.controller_manager import Controller
from stowplan.embedded.controllers.cron_jobs import CronJobController
from stowplan.embedded.controllers.daemon_sets import DaemonSetController
from stowplan.embedded.controllers.deployments import DeploymentController
from stowplan.embedded.controllers.device_drivers import DeviceDrivers, DevicePreparation
from stowplan.embedded.controllers.disruption_budgets import DisruptionController
from stowplan.embedded.controllers.event_expiry import EventExpiry
from stowplan.embedded.controllers.garbage_collection import GarbageCollector
from stowplan.embedded.controllers.jobs import JobController
from stowplan.embedded.controllers.kubelets import SimulatedKubelets
from stowplan.embedded.controllers.namespaces import NamespaceController
from stowplan.embedded.controllers.nodes import NodeController
from stowplan.embedded.controllers.replica_sets import ReplicaSetController
from stowplan.embedded.controllers.resource_claims import PodClaimController, ResourceClaimController
from stowplan.embedded.controllers.resource_quotas import QuotaController
from stowplan.embedded.controllers.stateful_sets import StatefulSetController
from stowplan.embedded.controllers.taint_evictions import TaintEvictions
from stowplan.embedded.controllers.volumes import ClaimController, VolumeController
from stowplan.embedded.quotas.ledger import QuotaLedger
from stowplan.embedded.store import DocumentStore


def all_controllers(
    store: DocumentStore, kubelets: SimulatedKubelets | None = None, ledger: QuotaLedger | None = None
) -> list[Controller]:
    """The controllers of a cluster; `kubelets` replaces the default kubelets, `ledger` is the one of the API."""
    return [
        NamespaceController(store),
        NodeController(store),
        ClaimController(store),
        VolumeController(store),
        PodClaimController(store),
        ResourceClaimController(store),
        DeviceDrivers(store),
        DevicePreparation(store),
        TaintEvictions(store),
        kubelets or SimulatedKubelets(store),
        QuotaController(store, ledger or QuotaLedger(store)),
        GarbageCollector(store),
        *workload_controllers(store),
        DisruptionController(store),
        EventExpiry(store),
    ]


def workload_controllers(store: DocumentStore) -> list[Controller]:
    """The controllers that make pods."""
    return [
        DeploymentController(store),
        ReplicaSetController(store, "replicasets.apps", "ReplicaSet", "replicaset-controller"),
        ReplicaSetController(store, "replicationcontrollers", "ReplicationController", "replication-controller"),
        StatefulSetController(store),
        DaemonSetController(store),
        JobController(store),
        CronJobController(store),
    ]
