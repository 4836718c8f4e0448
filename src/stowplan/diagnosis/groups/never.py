"""Never: no node is large enough for members that the group needs, or all nodes together are too small for it.

This is about size alone, as for single pods (`diagnosis/never`): labels, taints and what runs on a node can change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from stowplan.columns.arrays import Ints
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.diagnosis import never
from stowplan.engine.unit import Unit
from stowplan.framework.cause_texts import few
from stowplan.framework.plugin_calls import call_list
from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod


def group_never(unit: Unit, members: Iterable[Pod], state: ClusterState, profile: Profile) -> str:
    """Return why the group could not run even if the nodes were empty; an empty text if it could, or might.

    unit      its waiting members, and how many of them must get a node
    members   all its pods: the room of those on nodes is theirs
    """
    if not state.table.live_count:
        return "the cluster has no node"
    waiting, missing = list(unit.pods.values()), max(unit.needed - len(unit.pods), 0)
    small, reasons = _sorted_out(waiting, state, profile)
    if reasons and len(small) + missing < unit.needed:
        texts = [f"{reason} ({few(names)})" for reason, names in reasons.items()]
        return f"{'; '.join(texts)}. {len(small) + missing} of its other members are left, and {unit.needed} must run"
    placed = [pod for pod in members if pod.uid in state.pods]
    if missing or not small:
        return ""
    needed, most = unit.needed + len(placed), _most([*small, *placed], state, profile)
    if most >= needed:
        return ""
    return f"the cluster is too small: empty nodes have room for at most {most} of its members, and {needed} must run"


def _sorted_out(pods: Sequence[Pod], state: ClusterState, profile: Profile) -> tuple[list[Pod], dict[str, list[str]]]:
    """Return the pods that a node could host, and the keys of the others by the reason."""
    answers: dict[bytes, str] = {}
    small: list[Pod] = []
    reasons: dict[str, list[str]] = {}
    for pod in pods:
        if pod.shape.key not in answers:
            answers[pod.shape.key] = never.never(pod, state, profile)
        reason = answers[pod.shape.key]
        if reason:
            reasons.setdefault(reason, []).append(pod.key)
        else:
            small.append(pod)
    return small, reasons


def _most(pods: Sequence[Pod], state: ClusterState, profile: Profile) -> int:
    """Return a number of these pods that empty nodes cannot exceed. They may have room for fewer."""
    needs = [_needs(pod, profile) for pod in pods]
    nodes = Cluster(state).nodes
    return min(len(pods), _by_nodes(needs, nodes), *_by_resources(needs, nodes))


def _needs(pod: Pod, profile: Profile) -> dict[str, int]:
    found: dict[str, int] = {}
    for enabled in profile.needs_free_filters:
        for resource, amount in call_list(enabled, enabled.plugin.needs_free, tuple, pod):
            found[resource] = max(amount, found.get(resource, 0))
    return found


def _by_nodes(needs: Sequence[Mapping[str, int]], nodes: Nodes) -> int:
    """Return how many pods as small as the smallest the nodes have room for, one node after the other."""
    room: Ints = np.full(len(nodes), len(needs), np.int64)
    for resource in set().union(*needs):
        least = min(each.get(resource, 0) for each in needs)
        if least > 0:
            room = np.minimum(room, nodes.allocatable[resource] // least)
    return int(np.maximum(room, 0).sum())


def _by_resources(needs: Sequence[Mapping[str, int]], nodes: Nodes) -> Iterable[int]:
    """Yield for each resource how many of the pods all nodes together have enough of, the smallest first."""
    for resource in set().union(*needs):
        taken = np.cumsum(sorted(each.get(resource, 0) for each in needs))
        yield int(np.searchsorted(taken, int(nodes.allocatable[resource].sum()), side="right"))
