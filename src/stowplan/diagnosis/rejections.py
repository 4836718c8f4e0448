"""Every plugin's answer about every node. A decision stops at a node's first rejection; a diagnosis needs them all.

Pre-filters are asked all, too: those that reject the pod as a whole, and those that limit it to some nodes. A plugin
that rejected the pod as a whole is not asked about nodes. What holds beside pods that are nominated to a node (they
count as if they were there) is a rejection by the plugin that then rejects the node. A plugin that fails is noted, and
the others are asked all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import SKIP, Only, RejectPod, Verdict
from stowplan.framework.filtering import NodeFilters
from stowplan.framework.interfaces import FilterPlugin, PreFilterPlugin
from stowplan.framework.plugin_calls import call, call_filter, call_optional, checked_rows, wrong
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.errors import PluginError
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
    failed    by name: plugins that raised, or gave a wrong answer
    """

    nodes: Nodes
    gated: dict[str, RejectPod] = field(default_factory=dict)
    refused: dict[str, RejectPod] = field(default_factory=dict)
    only: dict[str, frozenset[str]] = field(default_factory=dict)
    filters: dict[str, PluginRejection] = field(default_factory=dict)
    beside: dict[int, Verdict] = field(default_factory=dict)
    failed: dict[str, PluginError] = field(default_factory=dict)

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
        if self.gated or self.refused or self.failed:
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
        with _noting(found.failed):
            refusal = call_optional(gate, gate.plugin.pre_enqueue, RejectPod, pod, cluster)
            if refusal is not None:
                found.gated[gate.name] = refusal
    for enabled in profile.pre_filters:
        with _noting(found.failed):
            _pre_filter(enabled, pod, cluster, found, skipped)
    for each in profile.filters:
        if each.name not in skipped and each.name not in found.failed:
            with _noting(found.failed):
                _filter(each, pod, found)
    if len(state.nominated_pods):
        with _noting(found.failed):
            _beside_nominated(found, NodeFilters(pod, state, profile, cluster.notes, skipped | found.failed.keys()))
    return found


@contextmanager
def _noting(failed: dict[str, PluginError]) -> Iterator[None]:
    try:
        yield
    except PluginError as error:
        failed.setdefault(error.plugin, error)


def _pre_filter(
    enabled: EnabledPlugin[PreFilterPlugin], pod: Pod, cluster: Cluster, found: Rejections, skipped: set[str]
) -> None:
    answer = call(enabled, enabled.plugin.pre_filter, pod, cluster)
    if answer is SKIP:
        skipped.add(enabled.name)
    elif isinstance(answer, RejectPod):
        found.refused[enabled.name] = answer
        skipped.add(enabled.name)
    elif isinstance(answer, Only):
        found.only[enabled.name] = answer.names
    elif answer is not None:
        raise wrong(enabled, enabled.plugin.pre_filter, answer, "None, SKIP, Only or RejectPod was due")


def _filter(enabled: EnabledPlugin[FilterPlugin], pod: Pod, found: Rejections) -> None:
    nodes = found.nodes
    hit = PluginRejection(np.zeros(len(nodes), np.bool_))
    for reject in call_filter(enabled, pod, nodes):
        rows = checked_rows(enabled, reject, len(nodes))
        if rows.any():
            hit.rows |= rows
            hit.reasons.append((reject.reason, rows))
    if hit.reasons:
        found.filters[enabled.name] = hit


def _beside_nominated(found: Rejections, filters: NodeFilters) -> None:
    for at, verdict in filters.beside_nominated(found.nodes):
        if not any(each.rows[at] for each in found.filters.values()):
            found.beside[at] = verdict
