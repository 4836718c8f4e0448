"""What a pod's group lacks as a whole: members that do not exist yet, and room that must be free in the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.diagnosis.diagnosis import NamedCause
from stowplan.framework.cause_texts import amount_text, few, listed
from stowplan.framework.causes import Cause, Detail
from stowplan.framework.group import UNKNOWN, Group
from stowplan.framework.interfaces import GroupPlugin
from stowplan.framework.plugin_calls import call, call_optional
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.objects.pods import Pod


def group_causes(pod: Pod, state: ClusterState, profile: Profile) -> tuple[NamedCause, ...]:
    """What keeps the pod's whole group from an attempt; nothing if the pod is in no group."""
    cluster = Cluster(state)
    for enabled in profile.group_plugins:
        group = call_optional(enabled, enabled.plugin.group_of, Group, pod, cluster)
        if group is not None:
            return tuple(NamedCause(enabled.name, cause) for cause in _causes(pod, group, enabled, cluster, profile))
    return ()


def _causes(
    pod: Pod, group: Group, enabled: EnabledPlugin[GroupPlugin], cluster: Cluster, profile: Profile
) -> Iterator[Cause]:
    if group.minimum >= UNKNOWN:
        return  # its PodGroup does not exist, which gates the pod
    members = _members(pod, group, enabled, cluster)
    held = sum(int(call(each, each.plugin.slots_of, pod, cluster)) for each in profile.slot_plugins)
    existing = len(members) + group.slots + held
    if existing < group.minimum:
        text = f"pod group {group.name}: {existing} of {group.minimum} pods exist"
        advice = f" ({group.advice})" if group.advice else ""
        names = sorted(member.key for member in members)
        details: dict[str, Detail] = {
            "group": group.name,
            "existing": existing,
            "needed": group.minimum,
            "pods": listed(names),
        }
        yield Cause("group-members", f"{text}{advice}: {few(names)}", details)
    for resource, wanted in group.resources.items():
        own = (placed.shape.request for member in members if (placed := cluster.pod(member.uid)) is not None)
        free = cluster.state.table.free_in_all(resource) + sum(request.get(resource, 0) for request in own)
        if free < wanted:
            texts = amount_text(resource, wanted), amount_text(resource, free)
            text = (
                f"pod group {group.name} needs {texts[0]} {resource} free in the cluster, {texts[1]} is (minResources)"
            )
            details = {"group": group.name, "resource": resource, "wanted": texts[0], "free": texts[1]}
            yield Cause("group-resources", text, details)


def _members(pod: Pod, group: Group, enabled: EnabledPlugin[GroupPlugin], cluster: Cluster) -> list[Pod]:
    """The pods of the group that exist and stay."""
    state = cluster.state
    known = state.known_pods or {uid: placed.pod for uid, placed in state.pods.items()}
    found = {pod.uid: pod}
    for uid, other in known.items():
        if other.namespace == pod.namespace and uid != pod.uid and not other.terminating and not other.finished:
            theirs = call_optional(enabled, enabled.plugin.group_of, Group, other, cluster)
            if theirs is not None and theirs.name == group.name:
                found[uid] = other
    return list(found.values())
