"""Overview: the nodes as a map, what is requested of them, and the pods that wait, by cause."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stowplan.apps.explain.texts import counted
from stowplan.apps.ui.cluster import ClusterModel
from stowplan.apps.ui.markup import NOTHING, Markup, element, fragment
from stowplan.apps.ui.node_map import FULLEST, NodeMap, NodeMaps, legend, svg
from stowplan.apps.ui.view import Json, View, amount, bar, empty, part, pod_link, since, table, tiles
from stowplan.columns.nodes.table import NodeTable

SHOWN = ("cpu", "memory", "pods")
MOST_RESOURCES = 8
WORDS = {FULLEST: "the fullest resource", "zone": "zone", "taint": "taint"}


def read(model: ClusterModel, maps: NodeMaps, query: Mapping[str, str]) -> dict[str, Any]:
    """`query`: `by` says what colours the map."""
    state, table_ = model.snapshot.state, model.snapshot.state.table
    return {
        "now": model.now(),
        "nodes": _nodes(table_),
        "pods": {"onNodes": len(state.pods), "pending": len(model.waiting)},
        "resources": _resources(table_),
        "pending": [
            {"cause": each.cause, "pods": each.pods, "oldest": each.oldest, "since": each.since}
            for each in model.waiting.groups()
        ],
        "map": maps.of(state, query.get("by", FULLEST)),
    }


def _nodes(table_: NodeTable) -> dict[str, int]:
    rows = table_.live_rows()
    with_pods = int((table_.requested["pods"][rows] > 0).sum()) if len(rows) else 0
    return {"all": len(rows), "withPods": with_pods, "cordoned": int(table_.unschedulable[rows].sum())}


def _resources(table_: NodeTable) -> list[dict[str, Any]]:
    rows, found = table_.live_rows(), []
    for name in (*SHOWN, *sorted(set(table_.allocatable) - {*SHOWN, "ephemeral-storage"})):
        offered = float(table_.allocatable[name][rows].sum(dtype=float)) if len(rows) else 0.0
        if offered > 0:
            requested = float(table_.requested[name][rows].sum(dtype=float))
            found.append({"name": name, "requested": requested, "allocatable": offered})
    return found[:MOST_RESOURCES]


def show(data: Json) -> View:
    found: NodeMap = data["map"]
    parts = {
        "figures": _figures(data),
        "map": NOTHING if found.names else empty("The cluster has no nodes."),
        "waiting": _waiting(data),
        "resources": _used(data),
    }
    return View("Overview", parts, map=found, drawing=(lambda: _map(found)) if found.names else None)


def _figures(data: Json) -> Markup:
    nodes, pods = data["nodes"], data["pods"]
    oldest = min((each["since"] for each in data["pending"] if each["since"] is not None), default=None)
    found = [
        ("Nodes", f"{nodes['all']:,}", f"{nodes['withPods']:,} with pods" + (
            f", {nodes['cordoned']:,} cordoned" if nodes["cordoned"] else "")),
        ("Pods on nodes", f"{pods['onNodes']:,}", ""),
        ("Pods that wait", f"{pods['pending']:,}", f"in {counted(len(data['pending']), 'group')}"),
        ("The oldest waits for", since(oldest, data["now"]) or "–", ""),
    ]  # fmt: skip
    return tiles(found)


def _map(found: NodeMap) -> Markup:
    choices = [
        element("option", WORDS.get(each, each), value=each, selected=each == found.by) for each in found.choices
    ]
    form = element(
        "form",
        element("label", "Colour by ", element("select", *choices, name="by", id="by")), " ",
        element("button", "Show", type="submit"),
        method="get", action="/", class_="controls",
    )  # fmt: skip
    drawing = element(
        "figure", svg(found),
        element("canvas", tabindex=0, role="img", aria_label=found.summary, hidden=True),
        element("figcaption", f"{found.summary}. A square for each node, from {found.names[0]} to {found.names[-1]}.",
                class_="note", data_said=True),
        class_="map", id="drawing", data_by=found.by,
    )  # fmt: skip
    return part("Nodes", form, legend(found), drawing)


def _waiting(data: Json) -> Markup:
    if not data["pending"]:
        return part("Pods that wait", empty("No pod waits for a node."))
    rows = [
        (each["cause"], f"{each['pods']:,}", pod_link(each["oldest"]), since(each["since"], data["now"]))
        for each in data["pending"][:20]
    ]
    more = element("p", element("a", "What would help them", href="/pending"))
    shown = table(("cause, as the scheduler says it", "pods", "the oldest", "for"), rows, numbers=[1], class_="waits")
    return part("Pods that wait", shown, more)


def _used(data: Json) -> Markup:
    rows = []
    for each in data["resources"]:
        name, requested, offered = each["name"], each["requested"], each["allocatable"]
        percent = 100 * requested / offered
        label = f"{percent:.0f}%"
        told = f"{amount(name, requested)} of {amount(name, offered)}"
        rows.append((name, bar(percent, "f1", label), label, told))
    if not rows:
        return fragment()
    heads = ("resource", "", "requested", "")
    return part("Requested of the nodes", table(heads, rows, numbers=[2, 3], class_="used"))
