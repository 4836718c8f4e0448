"""/debug/decisions: lines about decisions, for the namespaces whose pods a client may list."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from stowplan.apps.run import streamed_decisions
from stowplan.apps.run.streamed_decisions import MOST, DecisionStream
from stowplan.engine import reports


def bound(namespace: str, name: str) -> reports.PodBound:
    return reports.PodBound(f"{namespace}/{name}", "n1", "stowplan", 1, 0.5, False)


async def may_list_a(namespace: str) -> bool:
    return namespace == "a"


async def lines(stream: AsyncGenerator[bytes, None]) -> list[dict[str, Any]]:
    async with asyncio.timeout(20):
        return [json.loads(line) for line in (await anext(stream)).splitlines() if line]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streamed_decisions, "EVERY", 0.001)


def test_a_client_gets_what_was_decided_before_and_what_is_decided_then() -> None:
    async def story() -> None:
        stream = DecisionStream()
        stream.report(bound("a", "before"))
        stream.report(reports.PermitWaited(1.0, True))
        client = stream.follow(may_list_a)
        found = await lines(client)
        assert [each.get("pod") or each["namespaces"] for each in found] == ["a/before", 0]
        stream.report(reports.AttemptFailed("a/after", "stowplan", False, "no room"))
        (after,) = await lines(client)
        assert (after["event"], after["pod"], after["message"]) == ("failed", "a/after", "no room")
        await client.aclose()

    asyncio.run(story())


def test_namespaces_that_may_not_be_listed_are_left_out_and_counted() -> None:
    async def story() -> None:
        stream = DecisionStream()
        for namespace in ("a", "b", "c", "b", "a"):
            stream.report(bound(namespace, "p"))
        client = stream.follow(may_list_a)
        found = await lines(client)
        assert [each["pod"] for each in found[:-1]] == ["a/p", "a/p"]
        assert found[-1] == {"event": "leftOut", "namespaces": 2}
        await client.aclose()

    asyncio.run(story())


def test_it_is_bounded_and_costs_nothing_while_nobody_listens() -> None:
    async def story() -> None:
        stream = DecisionStream()
        for at in range(3 * MOST):
            stream.report(bound("a", f"p-{at}"))
        assert not stream._lines, "lines are made when somebody reads them"
        clients = [stream.follow(may_list_a) for _ in range(3)]
        found = await asyncio.gather(*map(lines, clients))
        assert all(len(each) == MOST + 1 and each[-2]["pod"] == f"a/p-{3 * MOST - 1}" for each in found)
        for each in clients:
            await each.aclose()

    asyncio.run(story())
