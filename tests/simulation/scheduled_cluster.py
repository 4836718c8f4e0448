"""An embedded cluster in virtual time whose pods are placed by a scheduler engine through the bridge."""

from __future__ import annotations

from typing import Any

import numpy as np

from stowplan.engine.scheduler import Scheduler
from stowplan.framework.profile import Profile
from stowplan.kube.resources import RESOURCES
from stowplan.objects.actions import Action
from stowplan.objects.changes import Change, Result
from stowplan.simulation.bridge import Bridge
from stowplan.testing.builders import a_profile
from tests.embedded.virtual_cluster import VirtualCluster


class ScheduledCluster(VirtualCluster):
    """`changes` and `actions` are all that the engine was told and wanted, `results` the answers by action id."""

    def __init__(self, *, seed: int = 0, profile: Profile | None = None, **pace: Any) -> None:
        profile = profile or a_profile()
        self.engine = Scheduler({"default-scheduler": profile}, np.random.default_rng(seed))
        self.changes: list[Change] = []
        self.actions: list[Action] = []
        self.results: dict[int, Result] = {}
        self.problems: list[str] = []
        super().__init__(**pace)
        watched = [RESOURCES[kind] for kind in sorted(profile.reads)]
        self.bridge = Bridge(self.api, watched, on_problem=self.problems.append)

    def schedule(self) -> None:
        """Give the engine every change, and let it decide until it has nothing to do at this moment."""
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

    def of(self, kind: type[Action]) -> list[Action]:
        return [action for action in self.actions if isinstance(action, kind)]

    def placed(self) -> dict[str, str]:
        """The node of each pod that has one."""
        pods = self.all("pods")
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}
