"""The concrete things behind rejections, by name. Nodes with the same causes are one group.

Each plugin is asked about the nodes that it rejected (`causes`), or about the pod (`pod_causes`). Nodes that a
pre-filter left out by name, and those without room beside nominated pods, have a cause as well. So has a plugin that
fails; where it fails at naming causes, its reasons are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.nodes.views import Nodes
from stowplan.columns.state import ClusterState
from stowplan.diagnosis import failing_plugins
from stowplan.diagnosis.diagnosis import CauseGroup, NamedCause
from stowplan.diagnosis.rejections import Rejections
from stowplan.framework import cause_calls
from stowplan.framework.cause_texts import few, listed
from stowplan.framework.causes import REJECTED, Cause, Detail, NodeCause
from stowplan.framework.config.settings import Extender
from stowplan.framework.extenders import in_order, is_interested
from stowplan.framework.filtering import NodeFilters
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod

LIMITED, BESIDE, EXTENDER = "limited-to-nodes", "beside-nominated", "extender"
RESOURCE_CLAIM = "resource-claim"


def cause_groups(pod: Pod, rejections: Rejections, state: ClusterState, profile: Profile) -> tuple[CauseGroup, ...]:
    """Why nodes reject the pod: every rejected node with all its causes, the group with the most nodes first."""
    groups = NodeGroups(len(rejections.nodes))
    with state.trial():  # what is counted for causes only is not counted any further
        for rows, plugin, cause in _node_causes(pod, rejections, state, profile):
            groups.add(rows, NamedCause(plugin, cause))
    return groups.named(rejections.nodes.names)


def pod_causes(pod: Pod, rejections: Rejections, state: ClusterState, profile: Profile) -> tuple[NamedCause, ...]:
    """Why the pod as a whole is rejected."""
    del state  # the view has it; the parameters are those of `cause_groups`
    cluster, found = rejections.nodes.cluster, dict[Cause, NamedCause]()
    for refusals, point in ((rejections.gated, profile.pre_enqueue), (rejections.refused, profile.pre_filters)):
        enabled = {each.name: each for each in point}
        for name, refusal in refusals.items():
            try:
                causes = cause_calls.pod_causes(enabled[name], pod, cluster, refusal.reasons)
            except PluginError as error:
                failing = failing_plugins.cause(error).cause
                causes = [*(Cause(REJECTED, reason) for reason in refusal.reasons), failing]
            for cause in causes:
                found.setdefault(cause, NamedCause(name, cause))  # a missing claim is named once
    return (*map(failing_plugins.cause, rejections.failed.values()), *found.values())


def not_tried(causes: Sequence[NamedCause]) -> str:
    """Return why no change could be tried for a pod with these causes; an empty text if changes can be tried."""
    if any(each.cause.code == RESOURCE_CLAIM for each in causes):
        return "the pod waits for its resource claims or their classes, so that no change could be tried"
    return ""


def extenders_not_asked(pod: Pod, extenders: Sequence[Extender]) -> tuple[NamedCause, ...]:
    """The HTTP extenders that may reject nodes for this pod: a diagnosis does not ask them."""
    asked = [each for _, each in in_order(extenders) if each.filter_verb and is_interested(each, pod)]
    return tuple(
        NamedCause("", Cause(EXTENDER, f"extender {each.url_prefix} was not asked", {"url": each.url_prefix}))
        for each in asked
    )


def _node_causes(
    pod: Pod, rejections: Rejections, state: ClusterState, profile: Profile
) -> Iterator[tuple[Bools, str, Cause]]:
    """Yield every cause with its nodes, among all nodes, and the plugin that named it."""
    enabled: dict[str, EnabledPlugin[Any]] = {each.name: each for each in profile.filters}
    size = len(rejections.nodes)
    for name, names in rejections.only.items():
        outside = np.ones(size, np.bool_)
        outside[list(rejections.nodes.positions(names).values())] = False
        if name in rejections.filters:  # its own causes say more
            outside &= ~rejections.filters[name].rows
        if outside.any():
            yield outside, name, _limited(name, names, rejections)
    for name, rejected in rejections.filters.items():
        rows = rejected.rows
        reasons = [(reason, where[rows]) for reason, where in rejected.reasons]
        for each in _causes_of(enabled[name], pod, rejections.nodes.where(rows), reasons):
            among_all = np.zeros(size, np.bool_)
            among_all[rows] = each.rows
            yield among_all, name, each.cause
    if rejections.beside:
        filters = NodeFilters(pod, state, profile, {})  # it is only asked who is nominated
        for at, verdict in rejections.beside.items():
            only_here = np.zeros(size, np.bool_)
            only_here[at] = True
            rivals = sorted(other.key for other in filters.rivals(rejections.nodes[at].name))
            reasons_given = ", ".join(verdict.reasons)
            text = f"room is kept for {few(rivals)}, nominated to the node: {reasons_given}"
            details: dict[str, Detail] = {"pods": listed(rivals), "count": len(rivals), "reasons": verdict.reasons}
            yield only_here, verdict.plugin, Cause(BESIDE, text, details)


def _causes_of(
    enabled: EnabledPlugin[Any], pod: Pod, nodes: Nodes, reasons: Sequence[tuple[str, Bools]]
) -> list[NodeCause]:
    """The causes for which a plugin rejected these nodes. If it fails to name them: its reasons, and the failure."""
    try:
        return cause_calls.node_causes(enabled, pod, nodes, reasons)
    except PluginError as error:
        everywhere = np.ones(len(nodes), np.bool_)
        named = [NodeCause(rows, Cause(REJECTED, text)) for text, rows in reasons]
        return [*named, NodeCause(everywhere, failing_plugins.cause(error).cause)]


def _limited(plugin: str, names: frozenset[str], rejections: Rejections) -> Cause:
    wanted, here = sorted(names), rejections.nodes.positions(names)
    missing = [name for name in wanted if name not in here]
    text = f"the pod is limited to {few(wanted) or 'no node'} by {plugin}"
    if missing:
        text += f" ({few(missing)} {'do' if len(missing) > 1 else 'does'} not exist)"
    return Cause(LIMITED, text, {"nodes": listed(wanted), "count": len(wanted), "missing": listed(missing)})


def _with(cause: NamedCause, causes: tuple[NamedCause, ...]) -> tuple[NamedCause, ...]:
    """These causes and one more, unless another plugin has named the same."""
    return causes if any(each.cause == cause.cause for each in causes) else (*causes, cause)


class NodeGroups:
    """Nodes with the same causes, as a partition that each cause refines: it costs what the causes are about."""

    def __init__(self, size: int) -> None:
        self._group_of: Ints = np.zeros(size, np.int64)
        self._causes_of: list[tuple[NamedCause, ...]] = [()]

    def add(self, rows: Bools, cause: NamedCause) -> None:
        here = np.flatnonzero(rows)
        before, inverse = np.unique(self._group_of[here], return_inverse=True)
        held = [self._causes_of[group] for group in before.tolist()]
        self._group_of[here] = len(self._causes_of) + inverse
        self._causes_of += [_with(cause, causes) for causes in held]

    def named(self, names: list[str]) -> tuple[CauseGroup, ...]:
        """The groups with their nodes, the one with the most nodes first. Nodes without a cause are in none."""
        if not names:
            return ()
        number: dict[frozenset[NamedCause], int] = {}
        merged = [number.setdefault(frozenset(causes), len(number)) for causes in self._causes_of]
        causes_of = {number[frozenset(causes)]: causes for causes in self._causes_of}
        group_of = np.array(merged, np.int64)[self._group_of]
        order = np.argsort(group_of, kind="stable")
        groups, starts = np.unique(group_of[order], return_index=True)
        found = [
            (places, causes_of[group])
            for group, places in zip(groups.tolist(), np.split(order, starts[1:]), strict=True)
            if causes_of[group]
        ]
        found.sort(key=lambda each: (-len(each[0]), int(each[0][0])))
        return tuple(CauseGroup(tuple(names[at] for at in places.tolist()), causes) for places, causes in found)
