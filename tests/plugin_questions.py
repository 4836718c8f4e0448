"""Asking one plugin about a whole cluster, outside any profile."""

from __future__ import annotations

from typing import Any

import numpy as np

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.plugin_calls import call_filter, call_score
from stowplan.framework.profile import EnabledPlugin
from stowplan.framework.verdict import FEASIBLE
from stowplan.framework.verdict_codes import VerdictCodes
from stowplan.objects.pods import Pod

Said = tuple[str, tuple[str, ...]] | None


def filtered(plugin: Any, pod: Pod, state: ClusterState) -> dict[str, Said]:
    """node → None if it passes this filter, else (code, reasons)."""
    nodes, enabled, book = Cluster(state).nodes, EnabledPlugin(type(plugin).__name__, plugin), VerdictCodes()
    verdict_of = np.full(len(nodes), FEASIBLE, np.int32)
    book.enter(enabled, call_filter(enabled, pod, nodes), verdict_of, np.arange(len(nodes)))
    return {
        name: None if code == FEASIBLE else (book.verdicts[code].code, book.verdicts[code].reasons)
        for name, code in zip(nodes.names, verdict_of.tolist(), strict=True)
    }


def refused(plugin: Any, pod: Pod, state: ClusterState) -> dict[str, tuple[str, ...]]:
    """The nodes that this filter refuses, with its reasons."""
    return {name: said[1] for name, said in filtered(plugin, pod, state).items() if said is not None}


def scored(plugin: Any, pod: Pod, state: ClusterState) -> dict[str, int] | None:
    """node → score; None if the plugin has no say."""
    nodes = Cluster(state).nodes
    scores = call_score(EnabledPlugin(type(plugin).__name__, plugin), pod, nodes)
    return None if scores is None else dict(zip(nodes.names, np.broadcast_to(scores, len(nodes)).tolist(), strict=True))
