"""Questions to one plugin about a whole cluster, or a whole fleet, without a configuration."""

from __future__ import annotations

from typing import Any

import numpy as np

from stowplan.columns.fleet.views import Clusters
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import FEASIBLE
from stowplan.framework.placement.interfaces import Misconfigured
from stowplan.framework.placement.plugin_calls import call_cluster_filter, call_cluster_score
from stowplan.framework.plugin_calls import call_filter, call_score
from stowplan.framework.profile import EnabledPlugin
from stowplan.framework.verdict_codes import VerdictCodes
from stowplan.objects.placements import Placement
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


def refused(plugin: Any, asked: Pod | Placement, where: ClusterState | Clusters) -> dict[str, tuple[str, ...]]:
    """Return the nodes (or clusters) that the plugin's filter rejects, with its reasons.

        assert refused(OnSsd(), a_pod(), a_state(nodes=["a"])) == {"a": ("node(s) had no ssd",)}
        assert refused(InEurope(), a_placement(), a_fleet(a_managed_cluster("a"))) == {"a": ("not in Europe",)}

    If the placement itself is Misconfigured, that is the reason for each cluster.
    """
    if isinstance(where, Clusters):
        assert isinstance(asked, Placement), f"clusters are chosen for a placement, not for {asked!r}"
        return _refused_clusters(plugin, asked, where)
    assert isinstance(asked, Pod), f"nodes are chosen for a pod, not for {asked!r}"
    return {name: answer[1] for name, answer in filtered(plugin, asked, where).items() if answer is not None}


def _refused_clusters(plugin: Any, placement: Placement, clusters: Clusters) -> dict[str, tuple[str, ...]]:
    found = call_cluster_filter(EnabledPlugin(type(plugin).__name__, plugin), placement, clusters)
    if isinstance(found, Misconfigured):
        return dict.fromkeys(clusters.names, (found.message,))
    reasons = [tuple(each.reason for each in found.rejects if each.rows[at]) for at in range(len(clusters))]
    return {name: reason for name, reason in zip(clusters.names, reasons, strict=True) if reason}


def scored(plugin: Any, asked: Pod | Placement, where: ClusterState | Clusters) -> dict[str, int] | None:
    """Return the plugin's score per node, or per cluster that has one; None if the plugin has no opinion.

    assert scored(OnSsd(), a_pod(), a_state(nodes=[a_node("a", labels={"disk": "ssd"}), "b"])) == {"a": 100, "b": 0}
    assert scored(Larger(), a_placement(), a_fleet(a_managed_cluster("a", cpu=8))) == {"a": 100}
    """
    enabled: EnabledPlugin[Any] = EnabledPlugin(type(plugin).__name__, plugin)
    if isinstance(where, Clusters):
        assert isinstance(asked, Placement), f"clusters are chosen for a placement, not for {asked!r}"
        found = call_cluster_score(enabled, asked, where)
        assert not isinstance(found, Misconfigured), found
        present = np.ones(len(where), np.bool_) if found.present is None else found.present
        values = zip(where.names, found.values.tolist(), present.tolist(), strict=True)
        return {name: score for name, score, there in values if there} or None
    assert isinstance(asked, Pod), f"nodes are chosen for a pod, not for {asked!r}"
    nodes = Cluster(where).nodes
    scores = call_score(enabled, asked, nodes)
    return None if scores is None else dict(zip(nodes.names, np.broadcast_to(scores, len(nodes)).tolist(), strict=True))
