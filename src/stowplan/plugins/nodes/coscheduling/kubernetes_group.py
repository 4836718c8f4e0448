"""What Kubernetes' own PodGroup says about a group, besides how many of its pods must run together.

    priority         its own, which the API server works out of priorityClassName; it preempts by that
    disruptionMode   Pod: its pods are preempted one by one; PodGroup (1.37: all): only all together

The API server has both fields with the feature gate WorkloadAwarePreemption only. Without them a group has the priority
of its pods, and is preempted as a whole if too few of them would be left.
"""

from __future__ import annotations

from typing import Any

from stowplan.framework.causes import Cause
from stowplan.objects.actions import ObjectRef
from stowplan.objects.pod_groups import PodGroup

API_VERSION = "scheduling.k8s.io/v1alpha2"


def missing(key: str, api_group: str) -> Cause:
    """The PodGroup that a pod names does not exist."""
    return Cause(
        "group-missing", f"PodGroup {key} of {api_group} does not exist", {"group": key, "apiGroup": api_group}
    )


def definition(group: PodGroup) -> dict[str, Any]:
    """The fields of a `Group` that come from its PodGroup."""
    return {
        "created": group.metadata.creation_timestamp,
        "priority": group.spec.priority,
        "disruption": group.disruption,
        "own_object": ObjectRef(group.namespace, group.name, group.uid, "PodGroup", API_VERSION),
    }
