"""The scores of nodes: a bar for each node, stacked of what each plugin gives, times its weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stowplan.apps.ui.markup import NOTHING, Child, Markup, element
from stowplan.apps.ui.view import Json, node_link, part, table

MOST_NODES, MOST_COLOURS = 25, 8


def scores(data: Json) -> Markup:
    """Return the best nodes with their scores. What all nodes score alike decides nothing, and is named above them."""
    found: Mapping[str, Json] = data["scores"]
    if not found:
        return NOTHING
    weights: Mapping[str, int] = data["weights"]
    ordered = sorted(found, key=lambda name: (-found[name]["total"], name != data["node"], name))
    alike = [
        name for name in weights if len(found) > 1 and len({each["plugins"][name] for each in found.values()}) == 1
    ]
    plugins = [name for name in weights if name not in alike and weights[name]]
    if not plugins:
        plugins, alike = [name for name in weights if weights[name]], []
    most = max(sum(each["plugins"][name] * weights[name] for name in plugins) for each in found.values())
    rows: list[Sequence[Child]] = [
        (
            node_link(name), f"{found[name]['total']:,}",
            stacked([(plugin, found[name]["plugins"][plugin] * weights[plugin]) for plugin in plugins], most),
            *(str(found[name]["plugins"][plugin]) for plugin in plugins),
        )
        for name in ordered[:MOST_NODES]
    ]  # fmt: skip
    notes = [f"The same on all nodes: {', '.join(alike)}."] if alike else []
    if len(ordered) > MOST_NODES:
        notes.append(f"The best {MOST_NODES} of {len(ordered):,} nodes.")
    heads = ("node", "total", "", *(f"{name} ×{weights[name]}" for name in plugins))
    shown = table(heads, rows, numbers=[1, *range(3, len(heads))], class_="scores")
    return part("Scores of the nodes that can take it", _legend(plugins), shown, note=" ".join(notes))


def stacked(found: Sequence[tuple[str, int]], most: int) -> Markup:
    """Return a bar of several segments, as long as their sum is of `most`."""
    place, drawn = 0.0, []
    for at, (name, value) in enumerate(found):
        width = 100 * max(value, 0) / max(most, 1)
        if width:
            title = element("title", f"{name}: {value}")
            style = f"s{min(at, MOST_COLOURS - 1) + 1}"
            drawn.append(element("rect", title, class_=style, x=round(place, 2), width=round(width, 2), height=10))
        place += width
    label = ", ".join(f"{name} {value}" for name, value in found)
    return element("svg", *drawn, class_="bar stacked", viewBox="0 0 100 10", preserveAspectRatio="none", role="img",
                   aria_label=label)  # fmt: skip


def _legend(plugins: Sequence[str]) -> Markup:
    items = [
        element("li", element("svg", element("rect", width=12, height=12, class_=f"s{min(at, MOST_COLOURS - 1) + 1}"),
                              class_="key", viewBox="0 0 12 12", aria_hidden="true"), " ", name)
        for at, name in enumerate(plugins)
    ]  # fmt: skip
    return element("ul", *items, class_="legend")
