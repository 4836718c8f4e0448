"""What a page shows: parts by name, which are sent again if they changed; and words and tables that all pages share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from stowplan.apps.explain.texts import ago
from stowplan.apps.ui.feed import DecisionEntry
from stowplan.apps.ui.markup import NOTHING, Child, Markup, element
from stowplan.apps.ui.node_map import NodeMap

Json = Mapping[str, Any]
OF_BARS = ("used", "scores")


@dataclass(frozen=True)
class View:
    """A page. `parts` are in their order.

    map      the nodes; the browser gets their changed values. `drawing` makes the part `map`, which is not sent again
    feed     the entries of the part `feed`; the browser gets the new ones
    status   of HTTP
    """

    title: str
    parts: Mapping[str, Markup]
    map: NodeMap | None = None
    drawing: Callable[[], Markup] | None = None
    feed: Sequence[DecisionEntry] | None = None
    status: int = 200
    styles: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()
    intro: Markup = field(default=NOTHING)


def pod_link(key: str) -> Markup:
    """Return a link to a pod's page: "namespace/name"."""
    return element("a", key, href=pod_path(key))


def pod_path(key: str) -> str:
    namespace, _, name = key.partition("/")
    return f"/pods/{quote(namespace, safe='')}/{quote(name, safe='')}"


def placement_link(key: str) -> Markup:
    """Return a link to a placement's page: "namespace/name"."""
    namespace, _, name = key.partition("/")
    return element("a", key, href=f"/placements/{quote(namespace, safe='')}/{quote(name, safe='')}")


def node_link(name: str) -> Markup:
    return element("a", name, href=f"/nodes/{quote(name, safe='')}")


def links(names: Sequence[str], most: int = 5) -> list[Child]:
    """Return the first nodes as links, and how many more there are."""
    found: list[Child] = []
    for at, name in enumerate(names[:most]):
        found += [", " if at else "", node_link(name)]
    if len(names) > most:
        found.append(f" and {len(names) - most:,} more")
    return found


def part(heading: str, *children: Child, note: str = "") -> Markup:
    """Return a part of a page with a heading."""
    return element("div", element("h2", heading), element("p", note, class_="note") if note else None, *children)


def tiles(found: Iterable[tuple[str, str, str]]) -> Markup:
    """Return figures with their names and units."""
    shown = [
        element("div", element("dt", name), element("dd", value, " ", element("small", unit) if unit else None))
        for name, value, unit in found
    ]
    return element("dl", *shown, class_="tiles")


def facts(found: Iterable[tuple[str, Child]]) -> Markup:
    """Return names and what they stand for, without those that are empty."""
    shown = [element("div", element("dt", name), element("dd", value)) for name, value in found if value]
    return element("dl", *shown, class_="facts")


def table(
    heads: Sequence[str], rows: Iterable[Sequence[Child]], *, caption: str = "", numbers: Iterable[int] = (),
    class_: str = "",
) -> Markup:  # fmt: skip
    """Return a table. `numbers`: the columns that are aligned to the right. The first cell heads its row.

    On a narrow screen a table of texts has a block for each row; one of bars scrolls.
    """
    right = set(numbers)
    style = ["number" if at in right else None for at in range(len(heads))]
    head = element("tr", *(element("th", each, scope="col", class_=style[at]) for at, each in enumerate(heads)))
    body = [
        element("tr", *(
            element("td", cell, class_=style[at], data_head=heads[at] or None) if at
            else element("th", cell, scope="row", class_=style[at], data_head=heads[at] or None)
            for at, cell in enumerate(row)
        ))
        for row in rows
    ]  # fmt: skip
    stacked = "stack" if len(heads) > 2 and class_ not in OF_BARS else ""
    made = element(
        "table", element("caption", caption) if caption else None, element("thead", head), element("tbody", *body),
        class_=" ".join(filter(None, (class_, stacked))) or None,
    )  # fmt: skip
    label = f"{caption or ', '.join(filter(None, heads))}: a table that scrolls"
    return element("div", made, class_="wide", role="region", tabindex=0, aria_label=label)


def command(text: str) -> Markup:
    """Return a command of a shell, with a button that copies it (the script shows that)."""
    return element(
        "div", element("pre", element("code", text), tabindex=0, role="region", aria_label="Command"),
        element("button", "Copy", type="button", class_="copy", hidden=True), class_="command",
    )  # fmt: skip


def since(at: float | None, now: float) -> str:
    """Return how long ago something was: "12 min"."""
    return "" if at is None or not now else ago(max(now - at, 0.0))


def clock(at: float | None) -> Markup:
    """Return a moment, in UTC."""
    if not at:
        return NOTHING
    moment = datetime.fromtimestamp(at, UTC)
    return element("time", moment.strftime("%H:%M:%S"), datetime=moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
                   title=moment.strftime("%Y-%m-%d %H:%M:%S UTC"))  # fmt: skip


def amount(resource: str, value: float) -> str:
    """Return an amount of a resource as people write it: cores, Gi, or a number."""
    if resource == "cpu":
        return f"{value / 1000:,.4g}"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for size, unit in ((1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")):
            if value >= size:
                return f"{value / size:,.4g}{unit}"
    return f"{value:,.0f}"


def bar(percent: float, style: str, label: str) -> Markup:
    """Return a bar that is so full."""
    return element(
        "svg",
        element("rect", class_="track", width=100, height=10),
        element("rect", class_=style, width=round(min(max(percent, 0), 100), 2), height=10),
        class_="bar", viewBox="0 0 100 10", preserveAspectRatio="none", role="img", aria_label=label,
    )  # fmt: skip


def empty(text: str) -> Markup:
    """Return what is said where there is nothing to show."""
    return element("p", text, class_="empty")
