"""A warning that another scheduler serves the same scheduler name: two that decide for themselves fill a node twice.

The engine reports each pod that waited for it and that somebody else bound. Some are as they should be: a follower sees
what its leader binds, and the last bindings of a leader may arrive after the next one has begun. Others are a second
scheduler with the same name and without leader election, or with another lease. (A pod that is created with a node
never waited, so it is not reported.)
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter

from stowplan.apps.logging import Log
from stowplan.engine.reports import BoundByAnother

GRACE = 30.0  # seconds of leading in which the bindings of the last leader may arrive
SAY_EVERY = 600.0  # seconds
REMEDY = "see that one scheduler alone serves this name: leader election with one lease, or another schedulerName"


class ForeignBindings:
    def __init__(self, registry: CollectorRegistry, log: Log, clock: Callable[[], float]) -> None:
        self._log, self._clock = log, clock
        self._leading_since: float | None = None
        self._say_at, self._unsaid = float("-inf"), 0
        self._counter = Counter(
            "stowplan_foreign_bindings_total",
            "Pods of this scheduler that somebody else bound while it was leading.",
            ["profile"],
            registry=registry,
        )

    def leading_begins(self) -> None:
        self._leading_since = self._clock()

    def report(self, found: BoundByAnother) -> None:
        now = self._clock()
        if self._leading_since is None or now < self._leading_since + GRACE:
            return
        self._counter.labels(found.profile).inc()
        self._unsaid += 1
        if now >= self._say_at:
            self._log.warning(
                "Somebody else binds the pods of this scheduler",
                pod=found.pod, node=found.node_name, scheduler=found.profile, times=self._unsaid, remedy=REMEDY,
            )  # fmt: skip
            self._say_at, self._unsaid = now + SAY_EVERY, 0
