"""For tests of FlavourClusterWide: workers, gold pods on them, and the policy made from a configuration's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.plugin_calls import call_score
from stowplan.framework.profile import EnabledPlugin
from stowplan.framework.registry import Registry
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.plugins import BUILT_IN
from stowplan.plugins.nodes.flavour_cluster_wide import FlavourClusterWide
from stowplan.testing.builders import a_node, a_pod

WORKER, CONTROL_PLANE, MASTER = (f"node-role.kubernetes.io/{role}" for role in ("worker", "control-plane", "master"))
GOLD = {"flavour": "gold"}


def worker(name: str, **more: Any) -> Node:
    return a_node(name, labels={WORKER: "", **more.pop("labels", {})}, **more)


def workers(*names: str) -> list[Node]:
    return [worker(name) for name in names]


def golds(**counts: int) -> list[Pod]:
    """So many gold pods on these nodes, each in a namespace of its own."""
    return [
        a_pod(f"{node}-{number}", namespace=f"team-{number}", node=node, labels=GOLD)
        for node, count in counts.items()
        for number in range(count)
    ]


def made(**args: Any) -> FlavourClusterWide:
    """From arguments as a configuration spells them."""
    plugin = Registry(BUILT_IN).make("FlavourClusterWide", args)
    assert isinstance(plugin, FlavourClusterWide)
    return plugin


def scored_among(plugin: FlavourClusterWide, state: ClusterState, feasible: str) -> dict[str, int]:
    """What the nodes named get when no others are feasible."""
    every = Cluster(state).nodes
    nodes = every.where(np.array([name in feasible for name in every.names]))
    scores = call_score(EnabledPlugin("FlavourClusterWide", plugin), a_pod(labels=GOLD), nodes)
    return dict(zip(nodes.names, np.broadcast_to(np.asarray(scores), len(nodes)).tolist(), strict=True))
