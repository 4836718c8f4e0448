"""Never: no node of the cluster could host the pod, even if it were empty: all are too small, or lack a feature."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.diagnosis.diagnosis import CauseGroup
from stowplan.diagnosis.remedies.lower_request import amount_text
from stowplan.framework.plugin_calls import call_list
from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod


def never(pod: Pod, state: ClusterState, profile: Profile, groups: Sequence[CauseGroup] = ()) -> str:
    """Return why no node could ever host the pod as it is; an empty text if one could.

    Labels, taints and what runs on a node can change; what a node can hold does not, nor what its kubelet can do.
    `groups`: why nodes reject the pod.
    """
    nodes = Cluster(state).nodes
    if not len(nodes):
        return ""
    if sum(len(group.nodes) for group in groups) == len(nodes):
        lacking = [_features(group) for group in groups]
        if everywhere := sorted(set.intersection(*lacking)):
            return f"no node declares the feature {everywhere[0]}, which the pod needs"
    for enabled in profile.needs_free_filters:
        needed: dict[str, int] = dict(call_list(enabled, enabled.plugin.needs_free, tuple, pod))
        small = {name: nodes.allocatable[name] < amount for name, amount in needed.items()}
        too_small: Bools = np.logical_or.reduce(list(small.values())) if small else np.zeros(len(nodes), np.bool_)
        if not too_small.all():
            continue
        everywhere = [name for name, rows in small.items() if rows.all()]
        if everywhere == ["pods"]:
            return "no node may have any pod: the largest number of pods that a node allows is 0"
        if everywhere:
            parts = [
                f"it needs {amount_text(name, needed[name])} of {name}, the largest has "
                f"{amount_text(name, int(nodes.allocatable[name].max()))}"
                for name in everywhere
            ]
            return f"no node is big enough: {' and '.join(parts)}"
        parts = [f"{amount_text(name, needed[name])} of {name}" for name, rows in small.items() if rows.any()]
        return f"no node is big enough: it needs {' and '.join(parts)} on one node"
    return ""


def _features(group: CauseGroup) -> set[str]:
    """Return the features that the kubelets of these nodes do not have."""
    named = (each.cause.details.get("feature") for each in group.causes if each.cause.code == "feature")
    return {str(feature) for feature in named if feature}
