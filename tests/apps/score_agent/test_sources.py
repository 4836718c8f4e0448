"""The cluster that an agent runs in: scores by real usage while metrics-server starts, fails, or lacks nodes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from stowplan.apps.score_agent.sources import Measurements, OwnCluster
from stowplan.kube.responses import Response, UnreachableError
from stowplan.objects.changes import Put
from stowplan.scores.demand import EVERYTHING
from stowplan.scores.usage import actual_measures, default_measures
from stowplan.testing import a_node

BY_REQUESTS = {each.name for each in default_measures()}
BY_USAGE = {each.name for each in actual_measures()}


class FakeCluster:
    """Answers like an API server with metrics-server. `status` 0: no answer at all."""

    def __init__(self) -> None:
        self.status, self.measured = 200, ["a", "b"]
        self.transport = self

    async def list_pages(self, *_: Any, **__: Any) -> AsyncIterator[None]:
        yield None

    async def request(self, *_: Any) -> Response:
        if not self.status:
            raise UnreachableError("no answer")
        usage = {"cpu": "1", "memory": "2G"}
        items = [{"metadata": {"name": name}, "usage": usage} for name in self.measured]
        return Response(self.status, [], json.dumps({"kind": "NodeMetricsList", "items": items}).encode())


class Agent:
    def __init__(self) -> None:
        self.now, self.server = 1000.0, FakeCluster()
        self.source = OwnCluster("east", (*default_measures(), *actual_measures()), keep=600.0, now=lambda: self.now)
        self.source.client = self.server  # type: ignore[assignment]
        self.source.usage.apply([Put(a_node(name, cpu="4", memory="8G")) for name in ("a", "b")])

    def read(self) -> Measurements:
        return asyncio.run(self.source.read({}, EVERYTHING))


@pytest.mark.parametrize(
    ("status", "measured", "said"),
    [
        pytest.param(200, [], "metrics-server has not measured enough nodes: a, b", id="it has just started"),
        pytest.param(200, ["a"], "metrics-server has not measured enough nodes: b", id="half of the nodes"),
        pytest.param(503, [], "install metrics-server, or leave --actual out", id="it does not run"),
        pytest.param(403, [], "403", id="it may not be asked"),
        pytest.param(0, [], "no answer", id="no answer"),
    ],
)
def test_without_metrics(status: int, measured: list[str], said: str) -> None:
    """Scores by requests go on. The last ones by usage stay until they would expire; without any there are none."""
    agent = Agent()
    agent.server.status, agent.server.measured = status, measured
    found = agent.read()
    assert found.values.keys() == BY_REQUESTS and said in str(found.problem)
    agent.server.status, agent.server.measured = 200, ["a", "b"]
    found = agent.read()
    assert found.values.keys() == BY_REQUESTS | BY_USAGE and found.problem is None
    assert found.values["cpuratio-actual"] == {"east": 0.75}
    agent.server.status, agent.server.measured = status, measured
    agent.now += 599
    found = agent.read()
    assert found.values["cpuratio-actual"] == {"east": 0.75} and said in str(found.problem)
    agent.now += 1
    found = agent.read()
    assert found.values.keys() == BY_REQUESTS and said in str(found.problem)
