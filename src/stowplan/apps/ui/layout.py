"""The frame of each page: head, navigation, what is looked at, the parts, and where the data is as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stowplan.apps.ui.markup import Child, Markup, element, fragment
from stowplan.apps.ui.view import View

NAVIGATION = (
    ("Overview", "/"), ("Pending", "/pending"), ("Groups", "/groups"), ("Placements", "/placements"),
    ("Decisions", "/decisions"), ("Simulations", "/simulations"),
)  # fmt: skip


@dataclass(frozen=True)
class Frame:
    """What surrounds a view. `looked_at`: "cluster kind-dev"; `path`: with the query; `unseen`: for lack of rights."""

    looked_at: str
    path: str
    live: bool
    version: int = 0
    unseen: Sequence[str] = ()
    notes: Sequence[str] = ()


def page(view: View, frame: Frame) -> bytes:
    """Return a whole page of HTML."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{view.title} · Stowplan"),
        element("link", rel="icon", href="/static/icon.svg", type="image/svg+xml"),
        *(element("link", rel="stylesheet", href=each) for each in view.styles),
        element("link", rel="stylesheet", href="/static/ui.css"),
        element("script", src="/static/live.js", defer=True) if frame.live or not view.scripts else None,
        *(element("script", src=each, defer=True) for each in view.scripts),
    )
    main = element(
        "main",
        element("h1", view.title), view.intro or None,
        *(element("section", _drawn(view, name, each), id=name, data_part=name) for name, each in view.parts.items()),
        id="content", tabindex=-1,
    )  # fmt: skip
    body = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="skip"),
        _header(frame), main, _footer(frame),
        data_events=f"/events{frame.path}" if frame.live else None, data_version=frame.version,
    )  # fmt: skip
    whole = fragment(element("html", head, body, lang="en"))
    return f"<!DOCTYPE html>\n{whole}\n".encode()


def _drawn(view: View, name: str, found: Markup) -> Markup:
    return view.drawing() if name == "map" and view.drawing is not None else found


def _header(frame: Frame) -> Markup:
    at = frame.path.partition("?")[0]
    here = next((path for _, path in reversed(NAVIGATION) if path != "/" and at.startswith(path)), "/")
    here = here if here != "/" or at == "/" else ""
    entries = [
        element("li", element("a", name, href=path, aria_current="page" if path == here else None))
        for name, path in NAVIGATION
    ]
    search = element(
        "form",
        element("label", "Find a pod or a node", for_="find", class_="hidden"),
        element("input", type="search", id="find", name="q", placeholder="Find a pod or a node", autocomplete="off"),
        element("button", "Find", type="submit"),
        action="/find", method="get", role="search",
    )  # fmt: skip
    return element(
        "header",
        element("div", element("a", _mark(), "Stowplan", href="/", class_="brand"),
                element("nav", element("ul", *entries), aria_label="Pages"), search, class_="bar"),
        _looked_at(frame),
    )  # fmt: skip


def _looked_at(frame: Frame) -> Markup:
    state = "live" if frame.live else "not live"
    told: list[Child] = [
        element("span", state, id="state", class_="state", data_live=frame.live or None),
        frame.looked_at,
    ]
    left_out = f" Not seen, for lack of rights: {', '.join(frame.unseen)}." if frame.unseen else ""
    notes = "".join(f" {each}" for each in frame.notes)
    return element("p", *told, element("span", f"{left_out}{notes}") if left_out or notes else None, class_="looked-at")


def _footer(frame: Frame) -> Markup:
    json = element("a", "This page as JSON", href=f"/api{frame.path}")
    told = element("p", json, ". The pages read, and change nothing.")
    return element("footer", told, element("p", "", id="said", role="status", aria_live="polite"))


def _mark() -> Markup:
    """The mark: containers, stowed."""
    boxes = ((1, 9, 6, 6), (9, 9, 6, 6), (5, 1, 6, 6))
    rects = [element("rect", x=x, y=y, width=w, height=h, rx=1) for x, y, w, h in boxes]
    return element("svg", *rects, viewBox="0 0 16 16", class_="mark", aria_hidden="true")
