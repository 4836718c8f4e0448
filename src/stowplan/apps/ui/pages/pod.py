"""Pod: where it would go and why, what keeps it from each node, what would help, and what was tried before.

The data is what `stowplan explain POD -o json` prints, with the facts of the pod and the history of its attempts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stowplan.apps.explain import answer_json
from stowplan.apps.explain.answers import not_asked
from stowplan.apps.explain.sources import event_time
from stowplan.apps.ui.cluster import ClusterModel
from stowplan.apps.ui.markup import NOTHING, Child, Markup, element, fragment
from stowplan.apps.ui.remedies import causes, remedies
from stowplan.apps.ui.score_bars import scores
from stowplan.apps.ui.view import Json, View, amount, clock, empty, facts, node_link, part, since, table
from stowplan.objects.pods import Pod

MOST_REJECTED = 200
MOST_HISTORY = 50


def read(model: ClusterModel, key: str, _query: Mapping[str, str]) -> dict[str, Any] | None:
    pod = model.snapshot.pods.get(key)
    if pod is None:
        return None
    explainer = model.explainer()
    answer = explainer.answer(pod)
    extenders = not_asked([pod], model.policies.configuration.extenders)
    found = answer_json.of(answer) | {"extendersNotAsked": extenders, "unseen": model.all_unseen}
    return found | {"now": model.now(), "facts": _facts(pod), "history": _history(model, pod)}


def _facts(pod: Pod) -> dict[str, Any]:
    created = pod.metadata.creation_timestamp
    return {
        "phase": pod.status.phase or ("Pending" if pod.pending else ""),
        "node": pod.node_name,
        "nominatedNode": pod.nominated_node,
        "schedulerName": pod.scheduler_name,
        "priority": pod.priority,
        "terminating": pod.terminating,
        "created": None if created is None else created.timestamp(),
        "requests": dict(pod.request),
        "labels": dict(pod.labels),
    }


def _history(model: ClusterModel, pod: Pod) -> list[dict[str, Any]]:
    """Return what was said of attempts: events of the cluster, and decisions that were seen here; the newest first."""
    found: list[dict[str, Any]] = []
    for event in model.source.events(pod.key):
        series = event.get("series") or {}
        reporter = event.get("reportingController") or event.get("reportingComponent") or ""
        found.append({
            "at": event_time(event), "what": str(event.get("reason", "")),
            "message": str(event.get("note") or event.get("message") or ""),
            "times": int(series.get("count") or event.get("deprecatedCount") or event.get("count") or 1),
            "by": str(reporter),
        })  # fmt: skip
    for entry in model.feed.of_pod(pod.key, MOST_HISTORY):
        message = entry.message or (f"to {entry.node}" if entry.node else "")
        if not entry.scheduler or not _is_told(found, entry.event, message):
            found.append({"at": entry.at, "what": entry.event, "message": message, "times": 1, "by": entry.scheduler})
    return sorted(found, key=lambda each: -(each["at"] or 0.0))[:MOST_HISTORY]


def _is_told(events: Sequence[Mapping[str, Any]], event: str, message: str) -> bool:
    """True if an event of the cluster says the same."""
    return any(each["message"] == message or (event == "bound" and each["what"] == "Scheduled") for each in events)


def show(data: Json) -> View:
    parts = {
        "answer": _answer(data),
        "why": _why(data),
        "help": _help(data),
        "scores": scores(data),
        "history": _attempts(data),
        "about": _about(data),
    }
    return View(str(data["pod"]), {name: each for name, each in parts.items() if each})


def _answer(data: Json) -> Markup:
    bound = data["boundTo"]
    intro: Child = None
    if bound:
        intro = element("p", "The pod is on ", node_link(bound), ". If it were scheduled now:")
    elif data["facts"]["terminating"]:
        intro = element("p", "The pod is being deleted, so that no scheduler takes it. Otherwise:")
    extenders = data["extendersNotAsked"]
    note = f"Not asked: the extenders {', '.join(extenders)}. They may reject nodes or change scores."
    return fragment(
        intro, element("p", data["sentence"], class_="sentence"),
        element("p", note, class_="note") if extenders else None,
    )  # fmt: skip


def _why(data: Json) -> Markup:
    if data["causes"] or data["podCauses"]:
        said = element("p", "The scheduler says: ", element("q", data["message"])) if data["message"] else None
        return part("What keeps it from each node", causes(data), said)
    rejected = data["rejected"]
    if not rejected:
        return NOTHING
    groups: dict[tuple[str, str], list[str]] = {}
    for name, verdict in rejected.items():
        groups.setdefault((verdict["plugin"], ", ".join(verdict["reasons"])), []).append(name)
    ordered = sorted(groups.items(), key=lambda each: -len(each[1]))[:MOST_REJECTED]
    rows: list[Sequence[Child]] = [
        (f"{len(names):,}", reasons, plugin, [node_link(names[0]), f" and {len(names) - 1:,} more" * (len(names) > 1)])
        for (plugin, reasons), names in ordered
    ]
    return part("Nodes that cannot take it", table(("nodes", "because", "plugin", "which"), rows, numbers=[0]))


def _help(data: Json) -> Markup:
    if data["node"] is not None:
        return NOTHING
    evicts = data["preemption"]
    victims: Child = None
    if evicts is not None:
        names = ", ".join(each["pod"] for each in evicts["victims"][:10])
        victims = element("p", f"The scheduler can make room by evicting {names}.")
    return part("What would help, each tried", victims, remedies(data) or empty("No remedy was found."))


def _attempts(data: Json) -> Markup:
    rows = [
        (clock(each["at"]), since(each["at"], data["now"]), each["what"], each["message"],
         f"{each['times']:,}" if each["times"] > 1 else "", each["by"])
        for each in data["history"]
    ]  # fmt: skip
    queue = data["waiting"]["queue"]
    told: Child = None
    if queue:
        backoff = f", next attempt in {queue['backoffSeconds']:.0f} s" if queue.get("backoffSeconds") else ""
        told = element("p", f"In its queue: {queue['stage']}, {queue['attempts']} attempts{backoff}.")
    heads = ("when", "ago", "what", "message", "times", "by")
    shown = table(heads, rows, numbers=[4], class_="history") if rows else empty("Nothing was said of it yet.")
    return part("Its attempts so far", told, shown)


def _about(data: Json) -> Markup:
    found, owner, now = data["facts"], data["owner"], data["now"]
    requests = ", ".join(f"{name} {amount(name, value)}" for name, value in found["requests"].items() if value)
    labels = ", ".join(f"{name}={value}" for name, value in found["labels"].items())
    serving = data["scheduler"]
    by = f" ({serving['by']})" if serving["by"] else ""
    named: list[tuple[str, Child]] = [
        ("Phase", found["phase"]),
        ("Created", f"{since(found['created'], now)} ago" if found["created"] and now else ""),
        ("Scheduler", f"{found['schedulerName']}{by}"),
        ("Priority", str(found["priority"])),
        ("Owner", f"{owner['kind']} {owner['namespace']}/{owner['name']}" if owner else ""),
        ("Requests", requests or "nothing"),
        ("Nominated to", node_link(found["nominatedNode"]) if found["nominatedNode"] else ""),
        ("Labels", labels),
    ]
    return part("About the pod", facts(named))
