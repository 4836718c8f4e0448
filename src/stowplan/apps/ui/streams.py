"""Server-sent events: what changed on a page, for all browsers that show it.

    a change of the model ─► the page is read once ─► each browser gets what differs from what it has

    event: part     {"id", "html"}              a part of the page, as the server renders it
    event: map      {"changed": [[place, value], …]} or {"names", "values"}
    event: rows     {"html", "last"}            new rows of the decisions
    event: state    {"problem"}                 why the page cannot be read now, "" once it can be
    event: version  {"version"}                 the end of one update

A page is read again at most as often as its reading takes a tenth of the time. A browser that is slow skips updates
rather than getting them late. Pages that nobody shows cost nothing. A page whose reading fails says so, and is tried
again.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from dataclasses import dataclass, field

import msgspec
import numpy as np

from stowplan.apps.ui.markup import Markup
from stowplan.apps.ui.node_map import NodeMap
from stowplan.apps.ui.pages.decisions import row
from stowplan.apps.ui.view import View
from stowplan.framework.plugin_faults import error_text

SHORTEST = 0.4  # seconds between two updates
SHARE = 10.0  # a pause is so many times as long as reading the page takes
AFTER_A_PROBLEM = 3.0  # seconds until a page is read again whose reading failed
LONGEST = 15.0  # seconds: then ages are told anew, and a connection that is gone is noticed
MAP_PART = "map"
GONE = "what it shows is gone"


@dataclass
class Update:
    """A page as it was read last."""

    number: int
    version: int
    view: View


@dataclass
class SentState:
    """What a browser has."""

    parts: dict[str, str] = field(default_factory=dict)
    map: NodeMap | None = None
    last: int = 0
    problem: str = ""


class PageChannel:
    """The updates of one page. `version` tells when it may have changed."""

    def __init__(self, read: Callable[[], Awaitable[View | None]], version: Callable[[], tuple[int, Hashable]]) -> None:
        self._read, self._version = read, version
        self._update: Update | None = None
        self._problem = ""  # why the page could not be read the last time
        self._new = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.subscribers = 0

    async def follow(self, since: int) -> AsyncGenerator[bytes, None]:
        """Yield events. `since`: the version of the model that the browser's page was made of."""
        self.subscribers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work())
        sent, number = SentState(), 0
        try:
            yield b"retry: 2000\n\n"
            while True:
                new = self._new  # before the looks, so that no change is missed meanwhile
                if self._problem != sent.problem:
                    sent.problem = self._problem
                    yield _event("state", {"problem": sent.problem})
                update = self._update
                if update is None or update.number == number:
                    yield b": still here\n\n"
                    await _wait(new)
                    continue
                if number == 0 and update.version == since:
                    sent.parts = {name: str(each) for name, each in update.view.parts.items()}
                    sent.last = max((each.number for each in update.view.feed or ()), default=0)
                number = update.number
                events = list(_events(update, sent))
                if events:
                    yield b"".join(events) + _event("version", {"version": update.version})
                else:
                    await asyncio.sleep(0)
        finally:
            self.subscribers -= 1
            if not self.subscribers and self._task is not None:
                self._task.cancel()
                self._task, self._update, self._problem = None, None, ""

    async def _work(self) -> None:
        """Read the page whenever it may have changed, and tell whoever shows it."""
        seen, read_at = None, 0.0
        while True:
            version, pause = self._version(), SHORTEST
            if version != seen or self._problem or time.monotonic() - read_at > LONGEST:
                begun = time.monotonic()
                try:
                    self._take(await self._read(), version[0])
                    seen, read_at = version, time.monotonic()
                except Exception as error:  # a cluster that does not answer, a plugin that fails
                    self._tell(error_text(error))
                pause = AFTER_A_PROBLEM if self._problem else min(SHARE * (time.monotonic() - begun), 60.0)
            await asyncio.sleep(max(SHORTEST, pause))

    def _take(self, view: View | None, version: int) -> None:
        if view is None:
            self._tell(GONE)
            return
        self._update = Update(1 if self._update is None else self._update.number + 1, version, view)
        self._tell("")

    def _tell(self, problem: str) -> None:
        self._problem = problem
        self._new.set()
        self._new = asyncio.Event()


async def _wait(new: asyncio.Event) -> None:
    try:
        async with asyncio.timeout(LONGEST):
            await new.wait()
    except TimeoutError:
        return


def _events(update: Update, sent: SentState) -> list[bytes]:
    view, found = update.view, list[bytes]()
    for name, each in view.parts.items():
        text = str(each)
        is_drawn = (name == MAP_PART and view.map is not None) or (name == "feed" and view.feed is not None)
        if not is_drawn and sent.parts.get(name) != text:
            found.append(_event("part", {"id": name, "html": text}))
            sent.parts[name] = text
    for name in [each for each in sent.parts if each not in view.parts]:
        found.append(_event("part", {"id": name, "html": ""}))
        del sent.parts[name]
    if view.map is not None and view.map is not sent.map:
        found += _map_events(view.map, sent.map)
        sent.map = view.map
    if view.feed is not None:
        new = [each for each in view.feed if each.number > sent.last]
        if new:
            rows: list[Markup] = [row(each) for each in new]
            sent.last = new[0].number
            found.append(_event("rows", {"html": "".join(map(str, rows)), "last": sent.last}))
    return found


def _map_events(new: NodeMap, old: NodeMap | None) -> list[bytes]:
    if old is None or old.names is not new.names or old.keys != new.keys:
        return [_event("map", {**new.as_json(), "said": new.summary})]
    if old.values == new.values:
        return []
    before, after = (np.frombuffer(each.values, np.uint8) for each in (old, new))
    places = np.flatnonzero(before != after)
    if len(places) > len(after) // 4:
        return [_event("map", {"values": base64.b64encode(new.values).decode(), "said": new.summary})]
    changed = np.stack((places, after[places]), axis=1).tolist()
    return [_event("map", {"changed": changed, "said": new.summary})]


def _event(name: str, data: object) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"
