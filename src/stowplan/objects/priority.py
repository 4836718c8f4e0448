"""Priority classes: the priority of a pod that has none.

The admission of an API server sets the priority of every pod. Pods from files, simulations and tests may have none.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PriorityClass

# The two classes that every cluster has.
SYSTEM = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


def with_priority(pod: Pod, classes: Mapping[str, PriorityClass]) -> Pod:
    """Return the pod with the priority of its class or of the default class; the same pod if there is neither."""
    found = _class_of(pod, classes)
    if found is None:
        return pod
    policy = pod.spec.preemption_policy or found.preemption_policy
    spec = msgspec.structs.replace(pod.spec, priority=found.value, preemption_policy=policy)
    return msgspec.structs.replace(pod, spec=spec)


def _class_of(pod: Pod, classes: Mapping[str, PriorityClass]) -> PriorityClass | None:
    name = pod.spec.priority_class_name
    if name in SYSTEM:
        return PriorityClass(value=SYSTEM[name])
    if name:
        return classes.get(name)
    defaults = (each for each in classes.values() if each.global_default)
    return min(defaults, key=lambda each: each.value, default=None)
