"""Node: what is on it, which pending pods it would take, and which cannot come, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from stowplan.apps.explain import answer_json
from stowplan.apps.explain.pod_explainer import PodExplainer
from stowplan.apps.explain.texts import counted
from stowplan.apps.ui.cluster import ClusterModel
from stowplan.apps.ui.markup import Child, Markup, element, fragment
from stowplan.apps.ui.remedies import told
from stowplan.apps.ui.view import Json, View, amount, bar, empty, facts, part, pod_link, table
from stowplan.columns.state import ClusterState
from stowplan.diagnosis.causes import cause_groups, pod_causes
from stowplan.diagnosis.rejections import rejections
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

MOST_KINDS = 30  # of pending pods that are asked about
MOST_PODS, MOST_NAMES = 200, 4
MOST_OF_A_KIND = 20  # pods of the node whose like is counted


def read(model: ClusterModel, name: str, _query: Mapping[str, str]) -> dict[str, Any] | None:
    state = model.snapshot.state
    node = model.snapshot.objects.get(("Node", name))
    if not isinstance(node, Node):
        return None
    row = state.table.row_of[name]
    explainer = model.explainer()
    pods = [placed.pod for placed in state.pods_on[row].values()]
    nominated = state.nominated_pods.by_node.get(name, {})
    asked, more = _kinds(model, explainer)
    return {
        "name": name,
        "now": model.now(),
        "node": {
            "cordoned": node.spec.unschedulable,
            "taints": [f"{each.key}={each.value}:{each.effect}" if each.value else f"{each.key}:{each.effect}"
                       for each in node.spec.taints],
            "labels": dict(node.labels),
        },
        "resources": list(_resources(state, row)),
        "pods": [_pod(each, explainer) for each in sorted(pods, key=lambda each: (-each.priority, each.key))],
        "held": [
            {"name": held, "amounts": amounts} for held, (where, amounts) in state.held.items() if where == name
        ],
        "nominated": [each.key for each in nominated.values()],
        "more": _more_of(state, row, pods, explainer),
        "pending": [_asked(model, name, pod, number) for pod, number in asked],
        "kindsNotAsked": more,
    }  # fmt: skip


def _resources(state: ClusterState, row: int) -> Iterator[dict[str, Any]]:
    table_ = state.table
    first = ("cpu", "memory", "pods")
    for name in (*first, *sorted(set(table_.allocatable) - set(first))):
        offered, requested = int(table_.allocatable[name][row]), int(table_.requested[name][row])
        if offered or requested:
            yield {"name": name, "requested": requested, "allocatable": offered}


def _pod(pod: Pod, explainer: PodExplainer) -> dict[str, Any]:
    owner = explainer.owners.of(pod)
    return {
        "pod": pod.key,
        "priority": pod.priority,
        "owner": None if owner is None else f"{owner.kind.lower()} {owner.key}",
        "requests": dict(pod.request),
        "terminating": pod.terminating,
    }


def _more_of(state: ClusterState, row: int, pods: Sequence[Pod], explainer: PodExplainer) -> list[dict[str, Any]]:
    """Return how many more pods like those on the node there is room for, by their requests alone."""
    table_, found = state.table, dict[str, dict[str, Any]]()
    free = {name: int(table_.allocatable[name][row] - table_.requested[name][row]) for name in table_.allocatable}
    for pod in pods:
        owner = explainer.owners.of(pod)
        name = pod.key if owner is None else f"{owner.kind.lower()} {owner.key}"
        if name in found or pod.of_daemon_set or len(found) == MOST_OF_A_KIND:
            continue
        needs = {"pods": 1, **{each: value for each, value in pod.request.items() if value > 0}}
        room = {each: max(free.get(each, 0), 0) // value for each, value in needs.items()}
        scarce = min(room, key=lambda each: room[each])
        found[name] = {"like": name, "pods": room[scarce], "limitedBy": scarce}
    return sorted(found.values(), key=lambda each: -each["pods"])


def _kinds(model: ClusterModel, explainer: PodExplainer) -> tuple[list[tuple[Pod, int]], int]:
    """Return a pod of each kind that waits, with how many there are; and how many kinds are left out."""
    found: dict[Any, tuple[Pod, int]] = {}
    for key in model.waiting:
        pod = model.snapshot.pods.get(key)
        if pod is not None and not pod.terminating:
            kind = explainer.kind(pod)
            found[kind] = (found[kind][0] if kind in found else pod, found.get(kind, (pod, 0))[1] + 1)
    ordered = sorted(found.values(), key=lambda each: -each[1])
    return ordered[:MOST_KINDS], max(len(ordered) - MOST_KINDS, 0)


def _asked(model: ClusterModel, name: str, pod: Pod, number: int) -> dict[str, Any]:
    """Return whether the node would take a pod as things are, and what keeps it from there."""
    snapshot = model.snapshot
    profile = snapshot.profiles.get(pod.scheduler_name) or next(iter(snapshot.profiles.values()))
    found = rejections(pod, snapshot.state, profile)
    takes = name in set(found.nodes.where(found.feasible()).names)
    own = pod_causes(pod, found, snapshot.state, profile)
    groups = () if takes else cause_groups(pod, found, snapshot.state, profile)
    here = next((group.causes for group in groups if name in group.nodes), ())
    return {
        "pod": pod.key,
        "pods": number,
        "takes": takes,
        "podCauses": [answer_json.cause(each) for each in own],
        "causes": [answer_json.cause(each) for each in here],
    }


def show(data: Json) -> View:
    parts = {
        "state": _state(data),
        "room": _room(data),
        "comers": _comers(data),
        "pods": _pods(data),
        "held": _held(data),
        "about": part("Labels", facts([(name, value or "(empty)") for name, value in data["node"]["labels"].items()])),
    }
    return View(f"Node {data['name']}", {name: each for name, each in parts.items() if each})


def _state(data: Json) -> Markup:
    node, told_ = data["node"], []
    if node["cordoned"]:
        told_.append("It is cordoned: no new pod comes here.")
    if node["taints"]:
        told_.append(f"Taints: {', '.join(node['taints'])}.")
    first = f"{counted(len(data['pods']), 'pod')} on it."
    return element("p", " ".join([first, *told_]), class_="sentence")


def _room(data: Json) -> Markup:
    rows = []
    for each in data["resources"]:
        name, requested, offered = each["name"], each["requested"], each["allocatable"]
        percent = 100 * requested / offered if offered else 100.0
        label = f"{percent:.0f}%"
        free = amount(name, max(offered - requested, 0))
        told_ = f"{amount(name, requested)} of {amount(name, offered)}"
        rows.append((name, bar(percent, "f1", label), label, told_, free))
    heads = ("resource", "", "requested", "", "free")
    more = [
        (each["like"], f"{each['pods']:,}", each["limitedBy"]) for each in data["more"]
    ]  # fmt: skip
    further: Child = None
    if more:
        further = fragment(
            element("h3", "How many more of the same fit, by their requests alone"),
            table(("like", "more", "limited by"), more, numbers=[1]),
        )
    return part("Room", table(heads, rows, numbers=[2, 3, 4], class_="used"), further)


def _comers(data: Json) -> Markup:
    found = data["pending"]
    if not found:
        return part("Pods that wait, and this node", empty("No pod waits for a node."))
    takes = [element("li", pod_link(each["pod"]), _alike(each)) for each in found if each["takes"]]
    refused: dict[str, list[Json]] = {}
    for each in found:
        if not each["takes"]:
            refused.setdefault(_why(each), []).append(each)
    cannot = [
        (f"{sum(each['pods'] for each in alike):,}", why, _names(alike)) for why, alike in refused.items()
    ]  # fmt: skip
    shown: list[Child] = [
        element("h3", "It would take"),
        element("ul", *takes, class_="names") if takes else empty("None of the pods that wait."),
    ]
    if cannot:
        shown += [element("h3", "Cannot come"), table(("pods", "because", "which"), cannot, numbers=[0])]
    if data["kindsNotAsked"]:
        shown.append(element("p", f"{data['kindsNotAsked']} more kinds of pods wait.", class_="note"))
    return part("Pods that wait, and this node", *shown)


def _alike(each: Json) -> str:
    return f" and {counted(each['pods'] - 1, 'pod')} like it" if each["pods"] > 1 else ""


def _names(alike: Sequence[Json]) -> list[Child]:
    """Return the first pods of some that cannot come for the same reason."""
    found: list[Child] = []
    for at, each in enumerate(alike[:MOST_NAMES]):
        found += [", " if at else "", pod_link(each["pod"]), _alike(each)]
    return [*found, f" and {len(alike) - MOST_NAMES} more"] if len(alike) > MOST_NAMES else found


def _why(each: Json) -> str:
    return told([*each["podCauses"], *each["causes"]]) or "a plugin fails, or another group keeps the room"


def _pods(data: Json) -> Markup:
    rows = [
        (pod_link(each["pod"]), each["owner"] or "", f"{each['priority']}",
         ", ".join(f"{name} {amount(name, value)}" for name, value in each["requests"].items() if value),
         "is being deleted" if each["terminating"] else "")
        for each in data["pods"][:MOST_PODS]
    ]  # fmt: skip
    heads = ("pod", "of", "priority", "requests", "")
    shown = table(heads, rows, numbers=[2], class_="pods") if rows else empty("No pod is on it.")
    rest = len(data["pods"]) - MOST_PODS
    return part("Pods on it", shown, element("p", f"… and {rest} more", class_="note") if rest > 0 else None)


def _held(data: Json) -> Markup | None:
    rows = [
        (each["name"], ", ".join(f"{name} {amount(name, value)}" for name, value in each["amounts"].items()))
        for each in data["held"]
    ]
    rows += [(pod_link(each), "a nomination: room for a pod that evicts others") for each in data["nominated"]]
    return part("Room that is held", table(("for", "what"), rows)) if rows else None
