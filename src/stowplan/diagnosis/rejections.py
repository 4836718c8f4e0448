"""Every plugin's answer about every node. A decision stops at a node's first rejection; a diagnosis needs them all.

Pre-filters are asked all, too: those that reject the pod as a whole, and those that limit it to some nodes. A plugin
that rejected the pod as a whole is not asked about nodes. What holds beside pods that are nominated to a node (they
count as if they were there) is a rejection by the plugin that then rejects the node.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import SKIP, Only, RejectPod, Verdict
from stowplan.framework.filtering import NodeFilters
from stowplan.framework.plugin_calls import call, call_filter, call_optional, checked_rows
from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod


@dataclass(slots=True)
class PluginRejection:
    """What one filter rejects: its nodes, and each reason with its nodes."""

    rows: Bools
    reasons: list[tuple[str, Bools]] = field(default_factory=list)


@dataclass(slots=True)
class Rejections:
    """All answers about one pod.

    nodes     all nodes; masks are in their order
    gated     by pre-enqueue plugins, by name
    refused   by pre-filters, by name: the pod as a whole
    only      by pre-filters, by name: the nodes that they limit the pod to
    filters   by name, in the profile's order; plugins that reject no node are not here
    beside    by node position: who rejects it only because of pods that are nominated there
    """

    nodes: Nodes
    gated: dict[str, RejectPod] = field(default_factory=dict)
    refused: dict[str, RejectPod] = field(default_factory=dict)
    only: dict[str, frozenset[str]] = field(default_factory=dict)
    filters: dict[str, PluginRejection] = field(default_factory=dict)
    beside: dict[int, Verdict] = field(default_factory=dict)

    def outside(self) -> Bools:
        """The nodes that the pre-filters leave out."""
        left_out = np.zeros(len(self.nodes), np.bool_)
        for names in self.only.values():
            named = np.zeros(len(self.nodes), np.bool_)
            named[list(self.nodes.positions(names).values())] = True
            left_out |= ~named
        return left_out

    def feasible(self) -> Bools:
        """The nodes that nothing rejects."""
        rejected = self.outside()
        if self.gated or self.refused:
            rejected[:] = True
        for each in self.filters.values():
            rejected |= each.rows
        if self.beside:
            rejected[list(self.beside)] = True
        return ~rejected


def rejections(pod: Pod, state: ClusterState, profile: Profile) -> Rejections:
    """Ask every pre-enqueue plugin, every pre-filter and every filter about the pod in the cluster as it is now."""
    cluster = Cluster(state)
    found, skipped = Rejections(cluster.nodes), set[str]()
    for gate in profile.pre_enqueue:
        refusal = call_optional(gate, gate.plugin.pre_enqueue, RejectPod, pod, cluster)
        if refusal is not None:
            found.gated[gate.name] = refusal
    for enabled in profile.pre_filters:
        answer = call(enabled, enabled.plugin.pre_filter, pod, cluster)
        if answer is SKIP:
            skipped.add(enabled.name)
        elif isinstance(answer, RejectPod):
            found.refused[enabled.name] = answer
            skipped.add(enabled.name)
        elif isinstance(answer, Only):
            found.only[enabled.name] = answer.names
    for each in profile.filters:
        if each.name in skipped:
            continue
        hit = PluginRejection(np.zeros(len(cluster.nodes), np.bool_))
        for reject in call_filter(each, pod, cluster.nodes):
            rows = checked_rows(each, reject, len(cluster.nodes))
            if rows.any():
                hit.rows |= rows
                hit.reasons.append((reject.reason, rows))
        if hit.reasons:
            found.filters[each.name] = hit
    if len(state.nominated_pods):
        _beside_nominated(found, NodeFilters(pod, state, profile, cluster.notes, skipped))
    return found


def _beside_nominated(found: Rejections, filters: NodeFilters) -> None:
    for at, verdict in filters.beside_nominated(found.nodes):
        if not any(each.rows[at] for each in found.filters.values()):
            found.beside[at] = verdict
