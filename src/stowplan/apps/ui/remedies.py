"""Causes and remedies as markup, from the JSON of an explanation of a pod or a placement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stowplan.apps.explain.sentences import CORDON_TAINT
from stowplan.apps.explain.texts import some
from stowplan.apps.ui.markup import NOTHING, Child, Markup, element, fragment
from stowplan.apps.ui.view import Json, command, links, table

MOST_CAUSES, MOST_REMEDIES, MOST_COMMANDS = 30, 10, 3


def told(causes: Iterable[Json]) -> str:
    """Return the texts of causes, each once. The taint that a cordoned node has says nothing more."""
    found = list(causes)
    cordoned = any(each["code"] == "cordoned" for each in found)
    texts = dict.fromkeys(str(each["text"]) for each in found)
    return " · ".join(text for text in texts if not (cordoned and text == CORDON_TAINT))


def causes(item: Json, nodes: str = "nodes", *, linked: bool = True) -> Markup:
    """Return what keeps a pod from all nodes, and what keeps it from each group of them."""
    whole = "The pod as a whole: " if linked else "The placement: "
    own, groups = item.get("podCauses") or (), item.get("causes") or ()
    shown: list[Child] = [element("p", element("strong", whole), told(own))] if own else []
    if groups:
        rows = [
            (f"{each['count']:,}", told(each["causes"]), links(each["nodes"]) if linked else some(each["nodes"], 5))
            for each in groups[:MOST_CAUSES]
        ]
        shown.append(table((nodes, "because", "which"), rows, numbers=[0], class_="causes"))
        if len(groups) > MOST_CAUSES:
            shown.append(element("p", f"… and {len(groups) - MOST_CAUSES:,} more groups of nodes", class_="note"))
    return fragment(*shown)


def remedies(item: Json) -> Markup:
    """Return what would help, the best first, with the commands to type."""
    found: Sequence[Json] = item.get("remedies") or ()
    shown = [element("li", _remedy(each)) for each in found[:MOST_REMEDIES]]
    rest = len(found) - MOST_REMEDIES
    more = element("p", f"… and {rest} more in the JSON of this page", class_="note") if rest > 0 else None
    waits = [element("li", str(each["text"])) for each in item.get("waits") or ()]
    never, bounded = item.get("never"), item.get("bounded")
    parts: list[Child] = [
        element("ol", *shown, class_="remedies") if shown else None,
        more,
        element("p", "Or wait:" if shown else "What may help without a change:") if waits else None,
        element("ul", *waits) if waits else None,
        element("p", f"As it is, it never fits: {never}.") if never else None,
        element("p", f"Not all was searched: {bounded}.", class_="note") if bounded else None,
    ]
    return fragment(*parts) if any(parts) else NOTHING


def _remedy(found: Json) -> Markup:
    commands: Sequence[str] = found.get("commands") or ()
    shown = [command(each) for each in commands[:MOST_COMMANDS]]
    more = f"… and {len(commands) - MOST_COMMANDS} more commands like these, in the JSON of this page"
    also = [element("p", str(each), class_="note") for each in found.get("also") or ()]
    evicted = [str(each) for each in found.get("evicted") or ()]
    return fragment(
        element("p", str(found["text"]), _outcome(found)),
        element("p", f"Evicts {', '.join(evicted[:5])}{' …' if len(evicted) > 5 else ''}.") if evicted else None,
        *shown,
        element("p", more, class_="note") if len(commands) > MOST_COMMANDS else None,
        *also,
    )


def _outcome(found: Json) -> list[Child]:
    nodes = list(dict.fromkeys((found.get("nodes") or {}).values())) or ([found["node"]] if found.get("node") else [])
    told: list[Child] = [" → ", *links(nodes, 3)] if nodes else []
    if found.get("clusters"):
        told = [f" → {', '.join(found['clusters'][:5])}"]
    tried = found.get("triedFor", 1)
    if tried > 1:
        told.append(f"; {found.get('helps', 1)} of {tried} pods")
    return told
