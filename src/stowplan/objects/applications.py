"""The application, role and group of a pod, from any of the label families that are in use.

    application   spark-app-id, scheduling.kubenexus.io/app-id; else spark-app-selector, which Spark sets itself
    role          spark-role, scheduling.kubenexus.io/role: driver or executor
    group         pod-group.scheduling.kubenexus.io/name with /min-available, the same of pod-group.scheduling.sigs.
                  k8s.io, or the name of a PodGroup: the label scheduling.x-k8s.io/pod-group, or in the pod's own spec

A group's name and its minimum may come from two families of labels. Labels that contradict each other are a problem,
which the pod's condition reports. The pod itself is not changed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from stowplan.objects.pods import Pod, once_per_pod

KUBENEXUS, SIGS = "pod-group.scheduling.kubenexus.io", "pod-group.scheduling.sigs.k8s.io"
NAMES, MINIMA = (
    tuple(f"{each}/name" for each in (KUBENEXUS, SIGS)),
    tuple(f"{each}/min-available" for each in (KUBENEXUS, SIGS)),
)
POD_GROUP = "scheduling.x-k8s.io/pod-group"
APPLICATIONS, SPARKS_OWN = ("spark-app-id", "scheduling.kubenexus.io/app-id"), "spark-app-selector"
ROLES = ("spark-role", "scheduling.kubenexus.io/role")
_LABELS = frozenset((*APPLICATIONS, SPARKS_OWN, *ROLES, *NAMES, *MINIMA, POD_GROUP))
DRIVER, EXECUTOR = "driver", "executor"
NUMBER = re.compile(r"[+-]?[0-9]{1,9}")
BY_LABELS, BY_SIGS, BY_KUBERNETES = (
    "labels",
    "scheduling.x-k8s.io",
    "scheduling.k8s.io",
)  # what defines a group


class Identity(msgspec.Struct, frozen=True):
    """What a pod's labels say. `source` is what defines the group, "" without a group; only labels give `minimum`."""

    application: str = ""
    role: str = ""
    group: str = ""
    source: str = ""
    minimum: int = 0
    problem: str = ""


NO_IDENTITY = Identity()


def identity(pod: Pod) -> Identity:
    """Return what a pod's labels say of it."""
    if _LABELS.isdisjoint(pod.metadata.labels) and pod.spec.scheduling_group is None:
        return NO_IDENTITY  # most pods
    return _identity(pod)


@once_per_pod
def _identity(pod: Pod) -> Identity:
    labels = pod.labels
    own = "" if pod.spec.scheduling_group is None else pod.spec.scheduling_group.pod_group_name or ""
    problems: list[str] = []
    application = _agreed(labels, APPLICATIONS, problems) or labels.get(SPARKS_OWN, "")
    role = _agreed(labels, ROLES, problems)
    if role and role not in (DRIVER, EXECUTOR):
        role = ""  # other software uses these labels, too
    group, source, minimum = _group(labels, own, problems)
    if not (application or role or group or problems):
        return NO_IDENTITY
    return Identity(application, role, group, source, minimum, "; ".join(problems))


def is_driver(pod: Pod) -> bool:
    """True for the driver of a Spark application."""
    return identity(pod).role == DRIVER


def _group(labels: Mapping[str, str], own: str, problems: list[str]) -> tuple[str, str, int]:
    if own:
        return own, BY_KUBERNETES, 0
    by_object, by_labels = labels.get(POD_GROUP, ""), _agreed(labels, NAMES, problems)
    if by_object and by_labels and by_object != by_labels:
        problems.append(f"labels {POD_GROUP} and {_first(labels, NAMES)} name different groups")
    if by_object:
        return by_object, BY_SIGS, 0
    wanted = _agreed(labels, MINIMA, problems)
    if not by_labels or not wanted:
        return "", "", 0
    minimum = _number(wanted, problems)
    return (by_labels, BY_LABELS, minimum) if minimum != 1 else ("", "", 0)  # a group of one pod is no group


def _number(text: str, problems: list[str]) -> int:
    if not NUMBER.fullmatch(text):
        problems.append(f'failed to parse min-available value "{text}"')
        return 0
    minimum = int(text)
    if minimum < 1:
        problems.append(f"min-available must be at least 1, got {minimum}")
    return minimum


def _agreed(labels: Mapping[str, str], keys: Sequence[str], problems: list[str]) -> str:
    """Return the value of the first of these labels that the pod has; different values are a problem."""
    values = {labels[key]: key for key in reversed(keys) if labels.get(key)}
    if len(values) > 1:
        problems.append(f"labels {' and '.join(sorted(values.values()))} contradict each other")
    return labels.get(_first(labels, keys), "")


def _first(labels: Mapping[str, str], keys: Sequence[str]) -> str:
    return next((key for key in keys if labels.get(key)), "")
