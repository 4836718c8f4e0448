"""An embedded cluster in virtual time with an engine, connected by the bridge."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np

from stowplan.engine.scheduler import Scheduler
from stowplan.kube.resources import RESOURCES
from stowplan.objects.actions import Action
from stowplan.objects.changes import Change, Result
from stowplan.simulation.bridge import Bridge
from stowplan.testing.builders import a_profile
from tests.embedded.virtual_cluster import VirtualCluster


class Engine(Protocol):
    def handle(self, change: Change | Result, now: float) -> list[Action]: ...

    def step(self, now: float) -> list[Action]: ...

    def next_deadline(self) -> float | None: ...


class EngineCluster(VirtualCluster):
    """`changes` and `actions` are all inputs and outputs of the engine, `results` the results by action id."""

    def __init__(self, engine: Engine, kinds: Iterable[str], *, controllers: bool = True) -> None:
        self.engine = engine
        self.changes: list[Change] = []
        self.actions: list[Action] = []
        self.results: dict[int, Result] = {}
        self.problems: list[str] = []
        super().__init__(controllers=controllers)
        watched = [RESOURCES[kind] for kind in sorted(kinds)]
        self.bridge = Bridge(self.api, watched, on_problem=self.problems.append)

    def schedule(self) -> None:
        """Pass every change to the engine, and step it until it has nothing to do at this time."""
        self.deliver()
        while (deadline := self.engine.next_deadline()) is not None and deadline <= self.now:
            self.perform(self.engine.step(self.now))
            self.deliver()

    def deliver(self) -> None:
        for change in self.bridge.changes():
            self.changes.append(change)
            self.perform(self.engine.handle(change, self.now))

    def perform(self, actions: list[Action]) -> None:
        for action in actions:
            self.actions.append(action)
            result = self.results[action.id] = self.bridge.perform(action, self.now)
            self.perform(self.engine.handle(result, self.now))

    def placed(self) -> dict[str, str]:
        """The node of each pod that has one."""
        pods = self.all("pods")
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}


def a_scheduled_cluster(seed: int = 0) -> EngineCluster:
    """A cluster with a scheduler of the default profile."""
    profile = a_profile()
    return EngineCluster(Scheduler({"default-scheduler": profile}, np.random.default_rng(seed)), profile.reads)
