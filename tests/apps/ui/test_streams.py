"""Server-sent events: each browser gets what changed since what it has, and nothing else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

from stowplan.apps.ui import streams
from stowplan.apps.ui.feed import DecisionEntry
from stowplan.apps.ui.markup import Markup
from stowplan.apps.ui.node_map import NodeMap
from stowplan.apps.ui.streams import PageChannel
from stowplan.apps.ui.view import View

NAMES = tuple(f"n{at}" for at in range(100))


class Model:
    """A page that a test changes."""

    def __init__(self) -> None:
        self.version, self.reads, self.problem = 1, 0, ""
        self.view: View = View("t", {"a": Markup("1"), "b": Markup("2")})
        self.gone = False

    def change(self, **given: Any) -> None:
        self.version += 1
        self.view = View("t", given.pop("parts", self.view.parts), **given)

    async def read(self) -> View | None:
        self.reads += 1
        if self.problem:
            raise ConnectionError(self.problem)
        return None if self.gone else self.view

    def channel(self) -> PageChannel:
        return PageChannel(self.read, lambda: (self.version, 0))


async def news(stream: AsyncGenerator[bytes, None]) -> list[tuple[str, Any]]:
    """Return the events of the next update, without its end."""
    async with asyncio.timeout(20):
        async for data in stream:
            found = []
            for block in data.decode().split("\n\n"):
                if block.startswith("event: "):
                    name, _, body = block.partition("\ndata: ")
                    found.append((name.removeprefix("event: "), json.loads(body)))
            if found:
                assert found.pop()[0] == "version"
                return found
    raise AssertionError("the stream ended")


def run(story: Callable[[], Any], monkeypatch: Any) -> None:
    monkeypatch.setattr(streams, "SHORTEST", 0.001)
    monkeypatch.setattr(streams, "AFTER_A_PROBLEM", 0.001)
    asyncio.run(story())


def test_a_browser_gets_the_parts_that_changed(monkeypatch: Any) -> None:
    async def story() -> None:
        model = Model()
        stream = model.channel().follow(since=0)
        assert await news(stream) == [("part", {"id": "a", "html": "1"}), ("part", {"id": "b", "html": "2"})]
        model.change(parts={"a": Markup("1"), "b": Markup("3")})
        assert await news(stream) == [("part", {"id": "b", "html": "3"})]
        model.change(parts={"a": Markup("1")})
        assert await news(stream) == [("part", {"id": "b", "html": ""})]
        await stream.aclose()

    run(story, monkeypatch)


def test_a_page_that_is_as_the_model_gets_nothing_until_a_change(monkeypatch: Any) -> None:
    async def story() -> None:
        model = Model()
        stream = model.channel().follow(since=1)
        first = asyncio.ensure_future(news(stream))
        while not model.reads:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        assert not first.done()
        model.change(parts={"a": Markup("9"), "b": Markup("2")})
        assert await first == [("part", {"id": "a", "html": "9"})]
        await stream.aclose()

    run(story, monkeypatch)


async def next_state(stream: AsyncGenerator[bytes, None]) -> str:
    """Return the next problem that is told, without what else comes."""
    async with asyncio.timeout(20):
        async for data in stream:
            for block in data.decode().split("\n\n"):
                if block.startswith("event: state\ndata: "):
                    problem: str = json.loads(block.partition("\ndata: ")[2])["problem"]
                    return problem
    raise AssertionError("the stream ended")


def test_a_page_that_cannot_be_read_says_so_and_goes_on_later(monkeypatch: Any) -> None:
    async def story() -> None:
        model = Model()
        stream = model.channel().follow(since=0)
        assert len(await news(stream)) == 2
        model.problem = "no route to the API server"
        model.change(parts={"a": Markup("7"), "b": Markup("2")})
        assert "no route to the API server" in await next_state(stream)
        model.problem = ""
        assert await next_state(stream) == ""
        assert await news(stream) == [("part", {"id": "a", "html": "7"})]
        model.gone = True
        model.change()
        assert await next_state(stream) == streams.GONE
        await stream.aclose()

    run(story, monkeypatch)


def test_many_browsers_cost_one_reading(monkeypatch: Any) -> None:
    async def story() -> None:
        model = Model()
        channel = model.channel()
        followers = [channel.follow(since=0) for _ in range(20)]
        assert all(len(found) == 2 for found in await asyncio.gather(*map(news, followers)))
        assert model.reads == 1 and channel.subscribers == 20
        for each in followers:
            await each.aclose()
        assert channel.subscribers == 0
        before = model.reads
        model.change()
        await asyncio.sleep(0.02)
        assert model.reads == before, "nobody looks, so nothing is read"

    run(story, monkeypatch)


def a_map(**changed: int) -> NodeMap:
    values = bytes(changed.get(name, 5) for name in NAMES)
    return NodeMap("cpu", NAMES, values, KEYS, ("cpu",))


KEYS = (("empty", "h0"), ("full", "h5"))


def test_a_map_is_sent_whole_and_then_square_by_square(monkeypatch: Any) -> None:
    async def story() -> None:
        model = Model()
        model.change(parts={}, map=a_map())
        stream = model.channel().follow(since=0)
        ((name, whole),) = await news(stream)
        assert name == "map" and whole["names"] == list(NAMES)
        model.change(map=a_map(n3=70, n99=100))
        ((_, some),) = await news(stream)
        assert some["changed"] == [[3, 70], [99, 100]] and "names" not in some
        model.change(map=a_map(**dict.fromkeys(NAMES, 1)))
        ((_, most),) = await news(stream)
        assert "values" in most and "changed" not in most
        await stream.aclose()

    run(story, monkeypatch)


def entry(number: int) -> DecisionEntry:
    return DecisionEntry(number, 0.0, "bound", "a/<b>", "n")


def test_new_decisions_are_rows_and_escaped(monkeypatch: Any) -> None:
    async def story() -> None:
        model = Model()
        model.change(parts={"feed": Markup("table")}, feed=[entry(1)])
        stream = model.channel().follow(since=2)
        first = asyncio.ensure_future(news(stream))
        while not model.reads:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        model.change(feed=[entry(3), entry(2), entry(1)])
        ((name, found),) = await first
        assert name == "rows" and found["last"] == 3
        assert found["html"].count("<tr>") == 2 and "a/&lt;b&gt;" in found["html"]
        await stream.aclose()

    run(story, monkeypatch)
