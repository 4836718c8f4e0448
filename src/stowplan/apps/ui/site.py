"""Which page answers which address: each as HTML, under /api as JSON, and under /events as a stream of changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from stowplan.apps.http_server import Pages
from stowplan.apps.ui import layout
from stowplan.apps.ui.access import PARAMETER, BrowserAccess
from stowplan.apps.ui.cluster import ClusterModel
from stowplan.apps.ui.feed import DecisionEntry
from stowplan.apps.ui.layout import Frame
from stowplan.apps.ui.node_map import NodeMap, NodeMaps
from stowplan.apps.ui.pages import decisions, find, groups, node, overview, pending, placements, pod, simulations
from stowplan.apps.ui.pages.simulations import ShownRuns
from stowplan.apps.ui.pending_judge import PendingJudge
from stowplan.apps.ui.simulated_runs import SimulatedRuns
from stowplan.apps.ui.streams import PageChannel
from stowplan.apps.ui.view import View, empty
from stowplan.serving import web
from stowplan.simulation.report.heat_map_script import SCRIPT as REPORT_SCRIPT
from stowplan.simulation.report.page_style import STYLE as REPORT_STYLE

Json = Mapping[str, Any]
Reader = Callable[[Mapping[str, str], Mapping[str, str]], Awaitable[Json | None]]
TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
READING = "The cluster is being read. This page comes back by itself."
OWN = (NodeMap, DecisionEntry, ShownRuns, list)
NO_CLUSTER = "No cluster is looked at: start with --context NAME or --from DUMP."


@dataclass(frozen=True)
class SitePage:
    """`read` gets the parts of the path and the query, and returns None for what does not exist (`absent`)."""

    pattern: str
    read: Reader
    show: Callable[[Json], View]
    absent: str = "There is no such page."
    of_cluster: bool = True


class Site:
    """`model` None: only simulations are shown. All but the model works in the loop of the server.

    `first_asked` is called when a page about the cluster is asked for, and the model is empty still.
    """

    def __init__(
        self, model: ClusterModel | None, runs: SimulatedRuns, access: BrowserAccess,
        first_asked: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        self._first_asked = first_asked
        self._model, self._runs, self._access = model, runs, access
        self._judge = None if model is None else PendingJudge(model)
        self._maps = NodeMaps()
        self._channels: dict[tuple[str, str], PageChannel] = {}
        self.feed_notes: Callable[[], Sequence[str]] = lambda: ()  # what a reader of the decisions should know
        self._pages = self._all()

    def close(self) -> None:
        """The model belongs to who made it."""
        if self._judge is not None:
            self._judge.close()

    def pages(self) -> Pages:
        get = {each.pattern: self._html(each) for each in self._pages}
        get |= {_under("/api", each.pattern): self._json(each) for each in self._pages}
        get |= {_under("/events", each.pattern): self._events(each) for each in self._pages}
        get["/static/{name}"] = _static
        return Pages(get=get, guard=self._access.guard)

    # -- the pages

    def _all(self) -> list[SitePage]:
        ask = self._ask
        return [
            SitePage("/", lambda _, query: ask(lambda model: overview.read(model, self._maps, query)), overview.show),
            SitePage("/pending", lambda _, query: self._pending(query), pending.show),
            SitePage(
                "/pods/{namespace}/{name}",
                lambda at, query: ask(lambda model: pod.read(model, f"{at['namespace']}/{at['name']}", query)),
                pod.show,
                "There is no such pod (any more).",
            ),
            SitePage(
                "/nodes/{name}",
                lambda at, query: ask(lambda model: node.read(model, at["name"], query)),
                node.show,
                "There is no such node (any more).",
            ),
            SitePage("/groups", lambda _, __: ask(groups.read), groups.show),
            SitePage("/placements", lambda _, __: ask(placements.read_all), placements.show_all),
            SitePage(
                "/placements/{namespace}/{name}",
                lambda at, _: ask(lambda model: placements.read(model, f"{at['namespace']}/{at['name']}")),
                placements.show,
                "There is no such placement (any more).",
            ),
            SitePage("/decisions", lambda _, query: self._decisions(query), decisions.show),
            SitePage("/find", lambda _, query: ask(lambda model: find.read(model, query)), find.show),
            SitePage("/simulations", lambda _, query: self._simulations(query), simulations.show, of_cluster=False),
        ]

    async def _ask(self, question: Callable[[ClusterModel], Json | None]) -> Json | None:
        assert self._model is not None, "asked only of pages about a cluster"
        return await self._model.ask(question)

    async def _pending(self, query: Mapping[str, str]) -> Json:
        assert self._judge is not None and self._model is not None, "asked only of pages about a cluster"
        return pending.read(await self._judge.report(), self._model.all_unseen, query)

    async def _decisions(self, query: Mapping[str, str]) -> Json:
        assert self._model is not None, "asked only of pages about a cluster"
        return decisions.read(self._model.feed, query, self.feed_notes())

    async def _simulations(self, query: Mapping[str, str]) -> Json:
        return simulations.read(self._runs, query)

    # -- as HTML, JSON, and events

    def _html(self, site_page: SitePage) -> web.Handler:
        async def answer(request: web.PageRequest) -> web.PageResponse:
            view = self._missing(site_page) or await self._view(site_page, request.match_info, request.query)
            view = view or View("Not found", {"absent": empty(site_page.absent)}, status=404)
            body = layout.page(view, self._frame(request, live=view.status == 200 and site_page.of_cluster))
            headers = {"Refresh": "1"} if view.status == 503 and self._model is not None else {}
            return web.PageResponse(
                body=body, status=view.status, headers=headers, content_type="text/html; charset=utf-8"
            )

        return answer

    def _json(self, site_page: SitePage) -> web.Handler:
        async def answer(request: web.PageRequest) -> web.PageResponse:
            if (missing := self._missing(site_page)) is not None:
                return _json_response({"message": NO_CLUSTER if self._model is None else READING}, missing.status)
            found = await site_page.read(request.match_info, request.query)
            return _json_response({"message": site_page.absent}, 404) if found is None else _json_response(found)

        return answer

    def _events(self, site_page: SitePage) -> web.Handler:
        async def answer(request: web.PageRequest) -> web.PageResponse:
            model, since = self._model, request.query.get("v", "")
            if model is None or not model.is_live or not site_page.of_cluster:
                return web.PageResponse(text="Nothing changes here.\n", status=204)
            query = {name: value for name, value in request.query.items() if name != "v"}
            channel = self._channel(site_page, dict(request.match_info), query)
            parts = channel.follow(int(since) if since.isascii() and since.isdigit() else -1)
            return web.StreamedResponse(parts, content_type="text/event-stream; charset=utf-8")

        return answer

    def _channel(self, site_page: SitePage, at: dict[str, str], query: dict[str, str]) -> PageChannel:
        key = (
            site_page.pattern,
            urlencode(sorted({**query, **{f"/{name}": value for name, value in at.items()}}.items())),
        )
        for each in [each for each, channel in self._channels.items() if not channel.subscribers]:
            del self._channels[each]
        if key not in self._channels:

            async def read() -> View | None:
                return self._missing(site_page) or await self._view(site_page, at, query)

            self._channels[key] = PageChannel(read, self._version)
        return self._channels[key]

    async def _view(self, site_page: SitePage, at: Mapping[str, str], query: Mapping[str, str]) -> View | None:
        found = await site_page.read(at, query)
        return None if found is None else site_page.show(found)

    def _missing(self, site_page: SitePage) -> View | None:
        """Return what is shown instead while there is no cluster to show."""
        if not site_page.of_cluster or (self._model is not None and self._model.loaded):
            return None
        if self._model is not None:
            self._first_asked()
        return View(
            "Nothing to show yet", {"reading": empty(NO_CLUSTER if self._model is None else READING)}, status=503
        )

    def _version(self) -> tuple[int, Hashable]:
        assert self._model is not None and self._judge is not None, "only a live cluster has versions"
        return self._model.version, (id(self._judge.latest), self._model.feed.last)

    def _frame(self, request: web.PageRequest, *, live: bool) -> Frame:
        model = self._model
        path = "/" + "/".join(quote(each, safe="") for each in request.segments).lstrip("/")
        query = {name: value for name, value in request.query.items() if name != PARAMETER}
        path += f"?{urlencode(query)}" if query else ""
        if model is None:
            return Frame(self._runs.name, path, live=False)
        return Frame(model.name, path, live and model.is_live, model.version, model.all_unseen, model.notes)


def _under(root: str, pattern: str) -> str:
    return root + pattern


def _json_response(found: object, status: int = 200) -> web.PageResponse:
    body = msgspec.json.encode(_plain(found), enc_hook=str)
    return web.PageResponse(body=body, status=status, content_type="application/json")


def _plain(value: object) -> object:
    """Return the data of a page with what it has of our own values as JSON has them."""
    if isinstance(value, NodeMap | DecisionEntry | ShownRuns):
        return value.as_json()
    if isinstance(value, dict):
        return {name: _plain(each) if isinstance(each, OWN) else each for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value


@cache
def _files() -> dict[str, bytes]:
    """Return our style sheet and scripts. Those of a simulation's report are the report's own."""
    folder = resources.files("stowplan.apps.ui") / "static"
    found = {each.name: each.read_bytes() for each in folder.iterdir() if each.name.rpartition(".")[2] in TYPES}
    return found | {"report.css": REPORT_STYLE.encode(), "report.js": REPORT_SCRIPT.encode()}


async def _static(request: web.PageRequest) -> web.PageResponse:
    name = request.match_info["name"]
    found = _files().get(name)
    if found is None:
        raise web.HTTPNotFound
    kind = TYPES[name.rpartition(".")[2]]
    return web.PageResponse(body=found, content_type=f"{kind}; charset=utf-8", headers={"Cache-Control": "no-cache"})
