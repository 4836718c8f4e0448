"""What a diagnosis says of a pod, in a form that tests can write down."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stowplan.columns.state import ClusterState
from stowplan.diagnosis.causes import cause_groups, pod_causes
from stowplan.diagnosis.diagnosis import NamedCause
from stowplan.diagnosis.rejections import rejections
from stowplan.framework.causes import Cause
from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_profile


def node_causes(pod: Pod, state: ClusterState, profile: Profile | None = None) -> dict[str, list[str]]:
    """By the names of nodes, joined: "code: text" of each cause."""
    profile = profile or a_profile()
    profile.attach(state)
    found = cause_groups(pod, rejections(pod, state, profile), state, profile)
    return {" ".join(group.nodes): _shown(group.causes) for group in found}


def whole_pod(pod: Pod, state: ClusterState, profile: Profile | None = None) -> list[str]:
    """ "code: text" of each cause for which the pod as a whole is rejected."""
    profile = profile or a_profile()
    profile.attach(state)
    return _shown(pod_causes(pod, rejections(pod, state, profile), state, profile))


def the_cause(pod: Pod, state: ClusterState, profile: Profile | None = None) -> Cause:
    """The only cause that any node has."""
    profile = profile or a_profile()
    profile.attach(state)
    groups = cause_groups(pod, rejections(pod, state, profile), state, profile)
    (found,) = {named.cause for group in groups for named in group.causes}
    return found


def _shown(causes: Iterable[NamedCause]) -> list[str]:
    return [f"{named.cause.code}: {named.cause.text}" for named in causes]


def term(key: str, **labels: str) -> dict[str, Any]:
    """A required term of affinity between pods."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
