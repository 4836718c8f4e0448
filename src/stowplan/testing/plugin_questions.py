"""Questions to one plugin about a whole cluster, without a profile."""

from __future__ import annotations

from typing import Any

import numpy as np

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import FEASIBLE
from stowplan.framework.plugin_calls import call_filter, call_score
from stowplan.framework.profile import EnabledPlugin
from stowplan.framework.verdict_codes import VerdictCodes
from stowplan.objects.pods import Pod

FilterAnswer = tuple[str, tuple[str, ...]] | None


def filtered(plugin: Any, pod: Pod, state: ClusterState) -> dict[str, FilterAnswer]:
    """Return per node None if it passes the plugin's filter, else (code, reasons).

    assert filtered(OnSsd(), a_pod(), a_state(nodes=["a"])) == {"a": ("Unschedulable", ("node(s) had no ssd",))}
    """
    nodes, enabled, codes = Cluster(state).nodes, EnabledPlugin(type(plugin).__name__, plugin), VerdictCodes()
    verdict_of = np.full(len(nodes), FEASIBLE, np.int32)
    codes.enter(enabled, call_filter(enabled, pod, nodes), verdict_of, np.arange(len(nodes)))
    return {
        name: None if code == FEASIBLE else (codes.verdicts[code].code, codes.verdicts[code].reasons)
        for name, code in zip(nodes.names, verdict_of.tolist(), strict=True)
    }


def refused(plugin: Any, pod: Pod, state: ClusterState) -> dict[str, tuple[str, ...]]:
    """Return the nodes that the plugin's filter rejects, with its reasons.

    assert refused(OnSsd(), a_pod(), a_state(nodes=["a"])) == {"a": ("node(s) had no ssd",)}
    """
    return {name: answer[1] for name, answer in filtered(plugin, pod, state).items() if answer is not None}


def scored(plugin: Any, pod: Pod, state: ClusterState) -> dict[str, int] | None:
    """Return per node the plugin's score; None if the plugin does not score this pod.

    assert scored(OnSsd(), a_pod(), a_state(nodes=[a_node("a", labels={"disk": "ssd"}), "b"])) == {"a": 100, "b": 0}
    """
    nodes = Cluster(state).nodes
    scores = call_score(EnabledPlugin(type(plugin).__name__, plugin), pod, nodes)
    return None if scores is None else dict(zip(nodes.names, np.broadcast_to(scores, len(nodes)).tolist(), strict=True))
