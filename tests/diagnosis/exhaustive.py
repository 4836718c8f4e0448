"""Every single change that could help a pending pod, tried one by one: plain, slow, and independent of the search.

A change is made in the documents of a record; the decision is made from scratch. Amounts go as far as they can (a
request down to nothing, say), since whether a change of this kind helps at all is the question.

What hides that a node is not ready, or under pressure, is no change that counts: neither a toleration of such a taint
nor its removal. The pod would not run there; what helps is to repair the node.

What is seldom the only help comes last: room that several pods have to leave, claims and volumes, more nodes, and
evictions by a higher priority.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

from stowplan.apps import profile_loader
from stowplan.apps.parity import node_records
from stowplan.columns.state import ClusterState
from stowplan.diagnosis.remedies import free_room
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.profile import Profile
from stowplan.objects import kinds
from stowplan.objects.errors import StowplanError
from stowplan.objects.pods import Pod
from tests.diagnosis.exhaustive_storage import Change, Scenario, storage_changes

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
FREE_PORT = 61_000
HIGHEST_PRIORITY = 1_000_000_000  # of a user's pods
HOST = "kubernetes.io/hostname"
HARD = ("NoSchedule", "NoExecute")
AILING = {
    f"node.kubernetes.io/{each}"
    for each in ("not-ready", "unreachable", "network-unavailable", "memory-pressure", "disk-pressure", "pid-pressure")
}


def one_change_that_helps(scenario: Scenario, *, cluster_only: bool = False) -> str:
    """Return what helps, in words; an empty text if no single change does."""
    state, profiles = node_records.cluster(scenario["cluster"]), profiles_of(scenario)
    for words, change in () if cluster_only else pod_changes(scenario):
        after = {"pod": copy.deepcopy(scenario["pod"])}
        change(after)
        if fits_in(state, after["pod"], profiles):
            return words
    others = (
        *(*node_changes(scenario), *deletions(scenario), *emptied_nodes(scenario)),
        *(*storage_changes(scenario), *more_nodes(scenario)),
    )
    for words, change in others:
        after = copy.deepcopy({key: scenario[key] for key in ("cluster", "pod")})
        change(after)
        if cluster_only and after["pod"] != scenario["pod"]:
            continue
        if fits_in(node_records.cluster(after["cluster"]), after["pod"], profiles):
            return words
    return "" if cluster_only else priority_that_helps(scenario)


def priority_that_helps(scenario: Scenario) -> str:
    """Return what evicts pods for this one if that does not happen already; an empty text if nothing does."""
    state, profiles = node_records.cluster(scenario["cluster"]), profiles_of(scenario)
    if fits_in(state, scenario["pod"], profiles, preempt=True):
        return ""
    pod = copy.deepcopy(scenario["pod"])
    pod["spec"]["preemptionPolicy"] = "PreemptLowerPriority"
    if fits_in(state, pod, profiles, preempt=True):
        return "allow preemption"
    pod["spec"]["priority"] = HIGHEST_PRIORITY
    return "the highest priority" if fits_in(state, pod, profiles, preempt=True) else ""


def profiles_of(scenario: Scenario) -> dict[str, Profile]:
    config = scenario.get("config")
    return (profile_loader.defaults() if config is None else profile_loader.configured(config))[1]


def fits(scenario: Scenario) -> bool:
    return fits_in(node_records.cluster(scenario["cluster"]), scenario["pod"], profiles_of(scenario))


def fits_in(
    state: ClusterState, document: dict[str, Any], profiles: dict[str, Profile], *, preempt: bool = False
) -> bool:
    """True if a pod gets a node; with `preempt` also if evictions make room for it."""
    try:
        pod = kinds.convert(Pod, document)
    except StowplanError:
        return False
    profile = profiles.get(pod.scheduler_name)
    if profile is None:
        return False
    profile.attach(state)
    decision = schedule_one(pod, state, profile, preempt=preempt)
    evicts = decision.post_filter is not None and decision.post_filter.candidate is not None
    return decision.node is not None or evicts


# -- how documents change


def popping(*path: str | int) -> Change:
    """Return the change that takes away what is at a path."""

    def change(scenario: Scenario) -> None:
        holder_of(scenario, path).pop(path[-1])

    return change


def setting(value: Any, *path: str | int) -> Change:
    def change(scenario: Scenario) -> None:
        holder_of(scenario, path)[path[-1]] = value

    return change


def holder_of(scenario: Scenario, path: tuple[str | int, ...]) -> Any:
    holder: Any = scenario
    for part in path[:-1]:
        holder = holder[part] if isinstance(part, int) else holder.setdefault(part, {})
    return holder


# -- the pod


def pod_changes(scenario: Scenario) -> Iterator[tuple[str, Change]]:
    spec = scenario["pod"]["spec"]
    for resource in sorted(requested(spec)):
        yield f"no request of {resource}", partial(without_request, resource=resource)
    tolerations = spec.get("tolerations") or []
    for key in sorted({taint["key"] for taint in taints(scenario)}):
        more = [*tolerations, {"key": key, "operator": "Exists"}]
        yield f"tolerate {key}", setting(more, "pod", "spec", "tolerations")
    for key in spec.get("nodeSelector") or {}:
        yield f"no selector {key}", popping("pod", "spec", "nodeSelector", key)
    yield from affinity_changes(spec.get("affinity") or {})
    for at, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if constraint["whenUnsatisfiable"] == "DoNotSchedule":
            path = ("pod", "spec", "topologySpreadConstraints", at, "whenUnsatisfiable")
            yield f"soft spreading {at}", setting("ScheduleAnyway", *path)
    for field in ("nodeName", "schedulingGates"):
        if spec.get(field):
            yield f"no {field}", popping("pod", "spec", field)
    for at, container in enumerate(spec["containers"]):
        for place, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                number = ("pod", "spec", "containers", at, "ports", place, "hostPort")
                yield f"port {at}.{place}", setting(FREE_PORT, *number)
    for name in profile_names(scenario):
        yield f"scheduler {name}", setting(name, "pod", "spec", "schedulerName")


def affinity_changes(affinity: dict[str, Any]) -> Iterator[tuple[str, Change]]:
    node_affinity = ("pod", "spec", "affinity", "nodeAffinity", REQUIRED)
    terms = ((affinity.get("nodeAffinity") or {}).get(REQUIRED) or {}).get("nodeSelectorTerms") or []
    if terms:
        yield "no node affinity", popping(*node_affinity)
    for at, term in enumerate(terms):
        fields = [field for field in ("matchExpressions", "matchFields") for _ in term.get(field) or ()]
        for field in set(fields) if len(fields) > 1 else ():
            for place in range(len(term[field])):
                yield f"no {field} {at}.{place}", popping(*node_affinity, "nodeSelectorTerms", at, field, place)
    for kind in ("podAffinity", "podAntiAffinity"):
        for at in range(len((affinity.get(kind) or {}).get(REQUIRED) or ())):
            yield f"no {kind} {at}", popping("pod", "spec", "affinity", kind, REQUIRED, at)


def requested(spec: dict[str, Any]) -> set[str]:
    holders = [spec, *spec["containers"], *(spec.get("initContainers") or ())]
    return {name for holder in holders for name in (holder.get("resources") or {}).get("requests") or ()}


def without_request(scenario: Scenario, resource: str) -> None:
    spec = scenario["pod"]["spec"]
    for holder in (spec, *spec["containers"], *(spec.get("initContainers") or ())):
        for field in ("requests", "limits"):
            amounts = (holder.get("resources") or {}).get(field) or {}
            if resource in amounts:
                amounts[resource] = "0"


def taints(scenario: Scenario) -> list[dict[str, Any]]:
    nodes = scenario["cluster"].get("nodes") or ()
    found = [taint for node in nodes for taint in (node.get("spec") or {}).get("taints") or ()]
    return [taint for taint in found if taint["effect"] in HARD and taint["key"] not in AILING]


def profile_names(scenario: Scenario) -> list[str]:
    profiles = (scenario.get("config") or {}).get("profiles") or ()
    names = [profile.get("schedulerName") or "default-scheduler" for profile in profiles]
    return [name for name in names if name != scenario["pod"]["spec"].get("schedulerName", "default-scheduler")]


# -- the cluster


def node_changes(scenario: Scenario) -> Iterator[tuple[str, Change]]:
    wanted = wanted_labels(scenario["pod"]["spec"])
    for at, node in enumerate(scenario["cluster"].get("nodes") or ()):
        spec, name, path = node.get("spec") or {}, node["metadata"]["name"], ("cluster", "nodes", at)
        if spec.get("unschedulable"):
            left = [taint for taint in spec.get("taints") or () if taint["key"] != "node.kubernetes.io/unschedulable"]
            yield f"uncordon {name}", setting({"taints": left}, *path, "spec")
        for place, taint in enumerate(spec.get("taints") or ()):
            if taint["key"] in AILING:
                continue
            yield f"taint {place} off {name}", popping(*path, "spec", "taints", place)
        for key, value in wanted:
            yield f"label {key}={value} on {name}", setting(value, *path, "metadata", "labels", key)


def wanted_labels(spec: dict[str, Any]) -> list[tuple[str, str]]:
    found = list((spec.get("nodeSelector") or {}).items())
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for each in term.get("matchExpressions") or ():
            if each["operator"] == "In":
                found.append((each["key"], each["values"][0]))
    return found


def deletions(scenario: Scenario) -> Iterator[tuple[str, Change]]:
    for at, pod in enumerate(scenario["cluster"].get("pods") or ()):
        if pod["spec"].get("nodeName") and not pod["metadata"].get("deletionTimestamp"):
            yield f"delete {pod['metadata']['name']}", popping("cluster", "pods", at)


def emptied_nodes(scenario: Scenario) -> Iterator[tuple[str, Change]]:
    """Yield every node without the pods that may go: so much room is freed on it at most."""
    placed = scenario["cluster"].get("pods") or ()
    for name in sorted({pod["spec"]["nodeName"] for pod in placed if pod["spec"].get("nodeName")}):
        left = [pod for pod in placed if pod["spec"].get("nodeName") != name or not free_room.may_go(read(pod))]
        if len(left) < len(placed) - 1:
            yield f"room on {name}", setting(left, "cluster", "pods")


def read(document: dict[str, Any]) -> Pod:
    return kinds.convert(Pod, document)


def more_nodes(scenario: Scenario) -> Iterator[tuple[str, Change]]:
    """Yield up to three new nodes like each that is there: empty, uncordoned, and well."""
    for number in (1, 2, 3):
        for node in scenario["cluster"].get("nodes") or ():
            added = [like(node, f"new-node-{at}") for at in range(number)]
            yield f"{number} more like {node['metadata']['name']}", adding_nodes(added)


def like(node: dict[str, Any], name: str) -> dict[str, Any]:
    found = copy.deepcopy(node)
    found["metadata"] = {"name": name, "labels": found["metadata"].get("labels") or {}}
    if HOST in found["metadata"]["labels"]:
        found["metadata"]["labels"][HOST] = name
    taints = (found.get("spec") or {}).get("taints") or ()
    found["spec"] = {"taints": [each for each in taints if not each["key"].startswith("node.kubernetes.io/")]}
    return found


def adding_nodes(added: list[dict[str, Any]]) -> Change:
    def change(scenario: Scenario) -> None:
        scenario["cluster"]["nodes"] += added

    return change


# -- an empty cluster


def fits_when_empty(scenario: Scenario) -> bool:
    """True if the pod fits on a node once all other pods are gone."""
    cluster = {**scenario["cluster"], "pods": []}
    return fits({"config": scenario.get("config"), "cluster": cluster, "pod": scenario["pod"]})
