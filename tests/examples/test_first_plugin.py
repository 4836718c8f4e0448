"""The first example works as its page describes."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from stowplan.apps import profile_loader
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.plugin_checks import check_plugin
from stowplan.objects.changes import Put
from stowplan.testing.builders import a_node, a_pod

CONFIG = Path(__file__).parents[2] / "examples" / "01-first-plugin" / "config.yaml"


def test_each_node_gets_one_pod_of_each_flavour() -> None:
    _, profiles = profile_loader.read_configuration(CONFIG)
    state = ClusterState()
    for name in ("a", "b", "c"):
        state.apply(Put(a_node(name=name)))
    for number in range(9):
        flavour = ("gold", "silver", "bronze")[number % 3]
        pod = a_pod(name=f"p{number}", namespace=f"team-{number % 2}", labels={"flavour": flavour})
        decision = schedule_one(pod, state, profiles["flavoured"])
        assert decision.node is not None, decision.full_message
        state.add_pod(pod, decision.node)
    landed = Counter((node.name, pod.labels["flavour"]) for node in Cluster(state).nodes for pod in node.pods)
    assert set(landed.values()) == {1} and len(landed) == 9


def test_it_passes_check_plugin() -> None:
    _, profiles = profile_loader.read_configuration(CONFIG)
    plugin = profiles["flavoured"].plugin("flavour.py:Flavour")
    assert check_plugin(plugin) == []
