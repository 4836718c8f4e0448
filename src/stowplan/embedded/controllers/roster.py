"""Who works in a cluster, in the order in which they are asked: what others wait for comes first."""

from __future__ import annotations

from stowplan.embedded.controllers.aging import Aging
from stowplan.embedded.controllers.crew import Controller
from stowplan.embedded.controllers.daemons import DaemonSets
from stowplan.embedded.controllers.disruptions import Disruptions
from stowplan.embedded.controllers.garbage import Garbage
from stowplan.embedded.controllers.jobs import Jobs
from stowplan.embedded.controllers.kubelets import Kubelets
from stowplan.embedded.controllers.namespaces import Namespaces
from stowplan.embedded.controllers.nodes import Nodes
from stowplan.embedded.controllers.replicas import Replicas
from stowplan.embedded.controllers.rollouts import Rollouts
from stowplan.embedded.controllers.stateful import StatefulSets
from stowplan.embedded.controllers.volumes import Claims, Volumes
from stowplan.embedded.store import Store


def controllers(store: Store, kubelets: Kubelets | None = None) -> list[Controller]:
    """All of them, with kubelets of one's own choice."""
    return [
        Namespaces(store),
        Nodes(store),
        Claims(store),
        Volumes(store),
        kubelets or Kubelets(store),
        Garbage(store),
        Rollouts(store),
        Replicas(store, "replicasets.apps", "ReplicaSet", "replicaset-controller"),
        Replicas(store, "replicationcontrollers", "ReplicationController", "replication-controller"),
        StatefulSets(store),
        DaemonSets(store),
        Jobs(store),
        Disruptions(store),
        Aging(store),
    ]
