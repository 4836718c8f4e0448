"""Decisions: what was decided lately, as it happens, with filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stowplan.apps.ui.feed import KINDS, DecisionEntry, DecisionFeed, DecisionFilter
from stowplan.apps.ui.markup import Markup, element, fragment
from stowplan.apps.ui.view import Json, View, clock, node_link, part, placement_link, pod_link

MOST = 200
WORDS = {
    "bound": "got a node", "failed": "found no node", "preempting": "evicts others", "lost": "binding lost",
    "placed": "placement decided",
}  # fmt: skip
HEADS = ("when", "what", "pod or placement", "node", "message", "by")


def chosen(query: Mapping[str, str]) -> DecisionFilter:
    event = query.get("event", "")
    return DecisionFilter(query.get("text", ""), event if event in KINDS else "", query.get("namespace", ""))


def read(feed: DecisionFeed, query: Mapping[str, str], notes: Sequence[str] = ()) -> dict[str, Any]:
    wanted = chosen(query)
    last = feed.last
    return {
        "last": last,
        "filter": {"text": wanted.text, "event": wanted.event, "namespace": wanted.namespace},
        "notes": list(notes),
        "items": feed.since(0, wanted, MOST),
    }


def show(data: Json) -> View:
    entries: list[DecisionEntry] = data["items"]
    shown = element(
        "div",
        element(
            "table",
            element("caption", "The latest first", class_="hidden"),
            element("thead", element("tr", *(element("th", each, scope="col") for each in HEADS))),
            element("tbody", *(row(each) for each in entries), id="entries", data_most=MOST, data_last=data["last"]),
            class_="history stack",
        ),
        class_="wide", role="region", tabindex=0, aria_label="Decisions: a table that scrolls",
    )  # fmt: skip
    parts = {
        "filter": fragment(_filter(data["filter"]), [element("p", each, class_="note") for each in data["notes"]]),
        "feed": part("The latest first", shown,
                     element("p", "Nothing was decided yet.", class_="empty", id="none", hidden=bool(entries))),
    }  # fmt: skip
    return View("Decisions", parts, feed=entries)


def row(entry: DecisionEntry) -> Markup:
    """Return a row of the table."""
    name = placement_link(entry.pod) if entry.event == "placed" else pod_link(entry.pod)
    cells = (
        clock(entry.at),
        element("span", WORDS[entry.event], class_=f"event {entry.event}"),
        name,
        node_link(entry.node) if entry.node else "",
        entry.message,
        entry.scheduler,
    )
    return element(
        "tr",
        *(
            element("td" if at != 2 else "th", cell, scope="row" if at == 2 else None, data_head=HEADS[at])
            for at, cell in enumerate(cells)
        ),
    )


def _filter(found: Json) -> Markup:
    kinds = [element("option", WORDS[each], value=each, selected=each == found["event"]) for each in KINDS]
    return element(
        "form",
        element("label", "Text ", element("input", type="search", name="text", value=found["text"])), " ",
        element("label", "Namespace ", element("input", name="namespace", value=found["namespace"], size=16)), " ",
        element("label", "What ", element("select", element("option", "all", value=""), *kinds, name="event")), " ",
        element("button", "Filter", type="submit"),
        method="get", action="/decisions", class_="controls",
    )  # fmt: skip
