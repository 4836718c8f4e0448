"""Pending: the pods that wait, grouped by what keeps them, with what would help and the commands to type.

The data is what `stowplan explain -A -o json` prints: pods are judged in the order of the queue, each with what those
before it take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from stowplan.apps import json_output
from stowplan.apps.explain import answer_json
from stowplan.apps.explain.texts import counted
from stowplan.apps.ui.markup import Child, Markup, element, fragment
from stowplan.apps.ui.pending_judge import PendingReport
from stowplan.apps.ui.remedies import causes, remedies, told
from stowplan.apps.ui.view import Json, View, clock, empty, node_link, part, pod_link, table

MOST_GROUPS, MOST_KINDS, MOST_NAMES, MOST_PLACED = 30, 20, 8, 100
GETS_NODE = "These get a node"
EVICTS = "These get a node only after evictions"


def read(report: PendingReport, unseen: Sequence[str], query: Mapping[str, str]) -> dict[str, Any]:
    """`query`: `namespace` limits what is listed; all pods are judged."""
    namespace = query.get("namespace", "")
    items = answer_json.listed(report.answers)
    shown = [each for each in items if not namespace or str(each["pod"]).startswith(f"{namespace}/")]
    return {
        "apiVersion": json_output.VERSION,
        "kind": "DecisionList",
        "items": shown,
        "extendersNotAsked": list(report.extenders_not_asked),
        "unseen": list(unseen),
        "otherSchedulers": report.others,
        "at": report.made_at,
        "namespace": namespace,
        "namespaces": sorted({str(each["pod"]).partition("/")[0] for each in items}),
    }


def show(data: Json) -> View:
    kinds: dict[str, list[Json]] = {}
    for item in data["items"]:
        kinds.setdefault(item["alike"], []).append(item)
    groups: dict[str, list[list[Json]]] = {}
    for items in kinds.values():
        groups.setdefault(_cause(items[0]), []).append(items)
    ordered = sorted(groups.items(), key=lambda each: (each[0] in (GETS_NODE, EVICTS), -sum(map(len, each[1]))))
    parts = {"summary": _summary(data, groups)}
    parts["groups"] = fragment(*(_group(cause, found) for cause, found in ordered[:MOST_GROUPS]))
    return View("Pending", parts)


def _cause(item: Json) -> str:
    """Return the cause that heads the group of a pod: its own, or that of most nodes."""
    if item["preemption"] is not None and item["node"] is None:
        return EVICTS
    if item["node"] is not None:
        return GETS_NODE
    if item["podCauses"]:
        return told(item["podCauses"])
    # A node that the pod is not for says less than one that has no room: a "free" one is named first.
    found = [each for each in item["causes"] if not any("nodes" in one["details"] for one in each["causes"])]
    most = max(found or item["causes"], key=lambda each: each["count"], default=None)
    return told(most["causes"]) if most is not None else str(item["message"])


def _summary(data: Json, groups: Mapping[str, Sequence[Sequence[Json]]]) -> Markup:
    number = len(data["items"])
    if not number:
        where = f" in namespace {data['namespace']}" if data["namespace"] else ""
        return fragment(_filter(data), empty(f"No pod waits for a node{where}."))
    lost = sum(item["node"] is None for item in data["items"])
    text = f"{counted(number, 'pod')} waiting, judged in the order of the queue: {lost:,} would get no node now, "
    text += f"{number - lost:,} would. They are in {counted(len(groups), 'group')} by cause."
    others = sorted(set(data["otherSchedulers"].values()))
    notes = [f"Pods of {', '.join(others)} are judged with another profile."] if others else []
    if data["extendersNotAsked"]:
        notes.append(f"The extenders {', '.join(data['extendersNotAsked'])} are not asked.")
    told_at = element("p", "As of ", clock(data["at"]), " UTC.", class_="note") if data["at"] else None
    return fragment(_filter(data), element("p", text), *(element("p", each, class_="note") for each in notes), told_at)


def _filter(data: Json) -> Markup | None:
    names = data["namespaces"]
    if len(names) < 2 and not data["namespace"]:
        return None
    choices = [element("option", each, value=each, selected=each == data["namespace"]) for each in names]
    return element(
        "form",
        element("label", "Namespace ", element("select", element("option", "all", value=""), *choices,
                                               name="namespace", id="namespace")), " ",
        element("button", "Show", type="submit"), method="get", action="/pending", class_="controls",
    )  # fmt: skip


def _group(cause: str, kinds: Sequence[Sequence[Json]]) -> Markup:
    number = sum(map(len, kinds))
    if cause == GETS_NODE:
        return part(cause, _placed([item for items in kinds for item in items]), note=counted(number, "pod"))
    merged: dict[bytes, list[Json]] = {}
    for items in kinds:
        merged.setdefault(_help(items[0]), []).extend(items)
    kinds = list(merged.values())
    shown = [_kind(items) for items in kinds[:MOST_KINDS]]
    rest = len(kinds) - MOST_KINDS
    more = (
        element("p", f"… and {rest} more kinds of pods in the JSON of this page", class_="note") if rest > 0 else None
    )
    return part(cause, *shown, more, note=counted(number, "pod"))


def _help(item: Json) -> bytes:
    """Return what is said of a pod: the members of a group, for example, have the same causes, and the same helps."""
    remedies_ = [(each["text"], each["commands"]) for each in item["remedies"]]
    rest = (item[name] for name in ("podCauses", "causes", "waits", "never", "bounded"))
    return msgspec.json.encode([remedies_, *rest])


def _placed(items: Sequence[Json]) -> Markup:
    """Return a table of the pods that get a node: the scheduler has only not looked at them yet."""
    rows = [(pod_link(each["pod"]), node_link(each["node"]), _margin(each)) for each in items[:MOST_PLACED]]
    rest = len(items) - MOST_PLACED
    more = element("p", f"… and {rest:,} more", class_="note") if rest > 0 else None
    return fragment(table(("pod", "node", "why there"), rows), more)


def _margin(item: Json) -> str:
    """Return why this node: what the sentence has in brackets."""
    return str(item["sentence"]).rpartition("(")[2].removesuffix(").")


def _kind(items: Sequence[Json]) -> Markup:
    """Return a card about pods that are alike, and fare alike."""
    first, names = items[0], []
    kinds = len({each["alike"] for each in items})
    others = f"The same holds for {counted(kinds - 1, 'other')} here." if kinds > 1 else ""
    for each in items[:MOST_NAMES]:
        names.append(element("li", pod_link(each["pod"]), _where(each)))
    if len(items) > MOST_NAMES:
        names.append(element("li", f"and {len(items) - MOST_NAMES:,} more"))
    shown: list[Child] = [
        element("p", first["sentence"], class_="sentence"),
        element("p", others, class_="note") if others else None,
        element("ul", *names, class_="names"),
    ]
    shown += [
        element("h3", "What would help, each tried") if first["remedies"] else None,
        remedies(first) or element("p", "No remedy was found."),
        element("details", element("summary", "What keeps them from each node"), causes(first)),
    ]
    return element("article", *shown, class_="card")


def _where(item: Json) -> list[Child]:
    return [" → ", node_link(item["node"])] if item["node"] else []
