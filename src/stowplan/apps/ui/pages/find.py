"""Find: pods and nodes whose name contains a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stowplan.apps.ui.cluster import ClusterModel
from stowplan.apps.ui.view import Json, View, empty, node_link, part, pod_link, table

MOST = 100


def read(model: ClusterModel, query: Mapping[str, str]) -> dict[str, Any]:
    text = query.get("q", "").strip().lower()
    pods, nodes = model.snapshot.pods, [key for kind, key in model.snapshot.objects if kind == "Node"]
    found = [key for key in pods if text in key.lower()]
    near = [name for name in nodes if text in name.lower()]
    return {
        "text": query.get("q", "").strip(),
        "nodes": sorted(near)[:MOST],
        "pods": [{"pod": key, "node": pods[key].node_name} for key in sorted(found)[:MOST]],
        "counts": {"nodes": len(near), "pods": len(found)},
    }


def show(data: Json) -> View:
    counts = data["counts"]
    pods = [(pod_link(each["pod"]), node_link(each["node"]) if each["node"] else "waits") for each in data["pods"]]
    nodes = [(node_link(each),) for each in data["nodes"]]
    parts = {
        "nodes": part("Nodes", table(("node",), nodes) if nodes else empty("No node has such a name."),
                      note=_shown(len(nodes), counts["nodes"])),
        "pods": part("Pods", table(("pod", "node"), pods) if pods else empty("No pod has such a name."),
                     note=_shown(len(pods), counts["pods"])),
    }  # fmt: skip
    return View(f"Found: {data['text']}" if data["text"] else "All pods and nodes", parts)


def _shown(number: int, every: int) -> str:
    return f"The first {number} of {every:,}." if number < every else ""
