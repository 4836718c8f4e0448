"""A sink gets every change exactly once, whatever fails in between."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from stowplan.kube.rate_limits import Backoff
from stowplan.kube.reflector import Reflector
from stowplan.kube.resources import RESOURCES, ApiResource
from stowplan.objects.changes import Change, Gone, Put
from stowplan.objects.meta import Object, ObjectMeta
from stowplan.objects.nodes import Node
from tests.kube.fakes import Fake, a_client, refused, serving, until
from tests.kube.store import Store


class RecordingSink:
    """A sink that keeps the changes and the resulting objects."""

    def __init__(self) -> None:
        self.batches: list[list[Change]] = []
        self.there: dict[str, Object] = {}  # by uid: an object that came back is another one

    def __call__(self, changes: list[Change]) -> None:
        self.batches.append(changes)
        for change in changes:
            if isinstance(change, Put):
                known = self.there.get(change.object.uid)
                assert known is None or known.metadata.resource_version != change.object.metadata.resource_version
                self.there[change.object.uid] = change.object
            else:
                assert self.there.pop(change.object.uid, None), "gone twice"

    @property
    def changes(self) -> list[str]:
        words = {Put: "+", Gone: "-"}
        return [words[type(change)] + change.object.name for batch in self.batches for change in batch]

    def agrees(self, store: Store) -> bool:
        mine = {uid: found.metadata.resource_version for uid, found in self.there.items()}
        return mine == {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in store.objects.values()}


class Running:
    def __init__(self, fake: Fake, reflector: Reflector, sink: RecordingSink, problems: list[str]) -> None:
        self.fake, self.reflector, self.sink, self.problems = fake, reflector, sink, problems

    @property
    def watches(self) -> int:
        return sum("watch=1" in path for _, path, _ in self.fake.asked)

    def is_served(self) -> bool:
        return self.reflector.served

    def caught_up(self, store: Store, watches: int) -> bool:
        """True if there were more watches than this, and all that is in the store was reported."""
        return self.watches > watches and self.sink.agrees(store)


@asynccontextmanager
async def reflecting(store: Store, resource: ApiResource = RESOURCES["Node"], **options: Any) -> AsyncIterator[Running]:
    sink, problems = RecordingSink(), list[str]()
    async with serving(store) as fake, a_client(fake) as client:
        quick = Backoff(random.Random(1), first=0.005, longest=0.02)
        reflector = Reflector(client, resource, sink, on_problem=problems.append, backoff=quick, **options)
        task = asyncio.create_task(reflector.run())
        async with asyncio.timeout(60):
            await reflector.synced.wait()
        yield Running(fake, reflector, sink, problems)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_first_all_there_is_in_pages_then_all_that_happens() -> None:
    store = Store()
    for number in range(7):
        await store.put(f"n{number}")
    async with reflecting(store, page_size=3) as running:
        assert [len(batch) for batch in running.sink.batches] == [3, 3, 1]
        await store.put("n1", a="b")
        await store.delete("n2")
        await store.put("n2")
        await until(lambda: running.sink.agrees(store))
        assert running.sink.changes[7:] == ["+n1", "-n2", "+n2"]
        assert running.reflector.cache.objects["n1"].labels == {"a": "b"}


async def test_a_broken_watch_is_resumed() -> None:
    store = Store()
    async with reflecting(store) as running:
        for turn in range(3):
            await store.put(f"n{turn}")
            await until(lambda: running.sink.agrees(store))
            before = running.watches
            await store.cut()
            await store.put(f"later{turn}")
            await until(partial(running.caught_up, store, before))
        assert running.sink.changes == ["+n0", "+later0", "+n1", "+later1", "+n2", "+later2"]
        assert sum("watch=1" not in path for _, path, _ in running.fake.asked) == 1, "one list was enough"


async def test_after_a_410_the_list_is_compared_with_the_cache() -> None:
    store = Store()
    for name in ("same", "changed", "vanished", "replaced"):
        await store.put(name)
    async with reflecting(store) as running:
        await until(lambda: running.watches == 1)
        store.hiccups = [refused(503), refused(503)]  # so that changes happen between two watches
        await store.cut()
        await store.put("changed", a="b")
        await store.delete("vanished")
        await store.delete("replaced")
        await store.put("replaced")
        await store.put("new")
        store.forget()
        await until(lambda: running.sink.agrees(store))
        assert sorted(running.sink.changes[4:]) == ["+changed", "+new", "+replaced", "-replaced", "-vanished"]
        assert running.sink.changes.index("-replaced") < len(running.sink.changes) - 1
        await store.put("after")
        await until(lambda: running.sink.agrees(store))


@pytest.mark.parametrize("code", [410, 500], ids=["forgotten", "something else"])
async def test_an_error_event_ends_the_watch_but_not_the_telling(code: int) -> None:
    store = Store()
    await store.put("a")
    async with reflecting(store) as running:
        await until(lambda: running.watches == 1)
        store.forget()
        await store.say("ERROR", {"kind": "Status", "code": code, "message": "too old", "metadata": {}})
        await until(lambda: running.watches >= 2)  # and a third, if the place to go on from is forgotten
        await store.put("b")
        await until(lambda: running.sink.agrees(store))
        assert running.sink.changes == ["+a", "+b"]


async def test_bookmarks_move_the_place_to_go_on_from() -> None:
    store = Store()
    await store.put("a")
    async with reflecting(store) as running:
        await until(lambda: running.watches == 1)
        store.version, heard = 50, running.reflector.heard
        await store.say("BOOKMARK", {"metadata": {"resourceVersion": "50"}})
        await until(lambda: running.reflector.cache.resource_version == "50")
        assert running.reflector.heard > heard, "a sign of life"
        store.forget()
        await store.cut()
        await until(lambda: running.watches == 2)
        assert "resourceVersion=50" in running.fake.asked[-1][1]
        assert "allowWatchBookmarks=true" in running.fake.asked[-1][1]
        assert running.sink.changes == ["+a"]


@pytest.mark.parametrize("expired", [1, 2], ids=["once", "twice"])
async def test_pages_that_expire_are_read_again(expired: int) -> None:
    store = Store()
    store.expire_pages = expired
    for number in range(5):
        await store.put(f"n{number}")
    async with reflecting(store, page_size=2) as running:
        assert running.sink.agrees(store)
        assert running.sink.changes == [f"+n{number}" for number in range(5)]


NAMESPACES = RESOURCES["Namespace"]


async def test_a_document_that_cannot_be_read_is_skipped() -> None:
    store = Store("/api/v1/namespaces")
    await store.put("good")
    store.objects["bad"] = {"metadata": {"name": "bad", "resourceVersion": "2", "labels": 5}}
    async with reflecting(store, NAMESPACES) as running:
        assert running.sink.changes == ["+good"]
        store.version = 30
        await store.say("ADDED", {"metadata": {"name": "worse", "resourceVersion": "30", "labels": []}})
        await store.put("better")
        await until(lambda: "+better" in running.sink.changes)
        assert running.reflector.cache.resource_version == "31"
        skipped = [problem for problem in running.problems if "is skipped" in problem]
        assert len(skipped) == 2
        assert "Namespace bad: metadata.labels" in skipped[0]


async def test_an_object_that_turned_unreadable_stays_as_it_was_known() -> None:
    store = Store("/api/v1/namespaces")
    await store.put("a")
    async with reflecting(store, NAMESPACES) as running:
        await until(lambda: running.watches == 1)
        store.version += 1
        changed = {"labels": 5, "resourceVersion": str(store.version)}
        store.objects["a"] = {"metadata": {**store.objects["a"]["metadata"], **changed}}
        store.forget()
        await store.cut()
        await until(lambda: running.watches == 3)
        assert (running.sink.changes, list(running.reflector.cache.objects)) == (["+a"], ["a"])


async def test_an_object_nested_too_deep_to_be_framed_is_read_in_lists_and_watches() -> None:
    store = Store()
    store.deep = '{"f:a":' * 3000 + "{}" + "}" * 3000
    store.objects["listed"] = {"metadata": {"name": "listed", "uid": "l", "managedFields": "deep"}}
    await store.put("plain")
    async with reflecting(store) as running:
        assert sorted(running.sink.changes) == ["+listed", "+plain"]
        store.version += 1
        metadata = {"name": "watched", "uid": "w", "resourceVersion": str(store.version), "managedFields": "deep"}
        await store.say("ADDED", {"metadata": metadata})
        await store.put("after")
        await until(lambda: "+after" in running.sink.changes)
        assert running.sink.changes[2:] == ["+watched", "+after"]
        assert (running.problems, running.reflector.cache.unreadable) == ([], {})


async def test_no_error_of_a_sink_ends_a_reflector() -> None:
    store, got = Store(), list[list[Change]]()

    def sink(changes: list[Change]) -> None:
        got.append(changes)
        if len(got) == 1:
            raise RecursionError("too deep")

    await store.put("a")
    problems = list[str]()
    async with serving(store) as fake, a_client(fake) as client:
        quick = Backoff(random.Random(1), first=0.005, longest=0.02)
        reflector = Reflector(client, RESOURCES["Node"], sink, on_problem=problems.append, backoff=quick)
        task = asyncio.create_task(reflector.run())
        await until(reflector.synced.is_set)
        await store.put("b")
        await until(lambda: len(got) == 2)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert problems == ["nodes: RecursionError: too deep"]


async def test_a_kind_that_is_not_served_is_waited_for_and_may_go_again() -> None:
    store = Store()
    store.served = False
    async with reflecting(store, recheck_after=0.02) as running:
        assert not running.is_served()
        await store.put("a")
        store.served = True
        await until(lambda: running.sink.agrees(store))
        assert running.is_served()
        await until(lambda: running.watches == 1)
        store.served = False
        await store.cut()
        await until(lambda: running.sink.changes == ["+a", "-a"])


async def test_a_watch_that_ends_at_once_is_not_begun_again_at_once() -> None:
    store = Store()
    async with reflecting(store) as running:
        store.hiccups = [refused(200), refused(200)]
        await store.cut()
        await until(lambda: not store.hiccups)
        await until(lambda: sum("ended at once" in problem for problem in running.problems) == 2)
        await store.put("a")
        await until(lambda: running.sink.agrees(store))


async def test_documents_are_kept_on_request() -> None:
    store = Store()
    await store.put("a", x="y")
    async with reflecting(store, keep_raw=True) as running:
        assert b'"labels": {"x": "y"}' in running.reflector.cache.documents["a"]
        await store.delete("a")
        await until(lambda: running.sink.agrees(store))
        assert running.reflector.cache.documents == {}


def a_node(version: int, uid: str = "uid-1") -> Node:
    return Node(metadata=ObjectMeta(name="a", uid=uid, resource_version=str(version)))


async def test_what_a_read_found_out_is_not_turned_back_by_the_watch() -> None:
    """Read at version 20, then the watch sends 2 to 20: they are ignored."""
    store = Store()
    await store.put("a")
    async with reflecting(store) as running:
        await until(lambda: running.watches == 1)
        running.reflector.learn(Put(a_node(20)))
        running.reflector.learn(Put(a_node(20)))
        for _ in range(18):
            await store.put("a", step=str(store.version))
        await store.put("a", last="")
        await until(lambda: running.sink.agrees(store))
        assert running.sink.changes == ["+a"] * 3  # as listed, as read, and at 21
        assert store.version == 21


async def test_a_pod_that_a_read_found_deleted_stays_deleted() -> None:
    store = Store()
    await store.put("a")
    async with reflecting(store) as running:
        await until(lambda: running.watches == 1)
        running.reflector.learn(Gone(a_node(2)))
        running.reflector.learn(Gone(a_node(2)))
        await store.put("a", late="news")
        await store.delete("a")
        await store.put("a")
        await until(lambda: running.sink.agrees(store))
        assert running.sink.changes == ["+a", "-a", "+a"]


@pytest.mark.parametrize("seed", range(12))
async def test_any_history_with_any_faults_is_reported_exactly(seed: int) -> None:
    """`RecordingSink` checks that no change is sent twice."""
    draw, store = random.Random(seed), Store()
    async with reflecting(store, page_size=2) as running:
        for _ in range(40):
            name = f"n{draw.randrange(6)}"
            step = draw.random()
            if step < 0.5:
                await store.put(name, step=str(store.version))
            elif step < 0.75 and name in store.objects:
                await store.delete(name)
            elif step < 0.85:
                await store.cut()
            elif step < 0.92:
                store.forget()
            elif step < 0.97:
                store.hiccups.append(refused(draw.choice([429, 500, 503, 410])))
            else:
                store.expire_pages += 1
            for _ in range(draw.randrange(4)):
                await asyncio.sleep(0)
        await until(lambda: running.sink.agrees(store))
