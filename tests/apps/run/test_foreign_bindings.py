"""When the service warns of a second scheduler with its name."""

from __future__ import annotations

import io

from prometheus_client import CollectorRegistry

from stowplan.apps.logging import Log
from stowplan.apps.run.foreign_bindings import GRACE, SAY_EVERY, ForeignBindings
from stowplan.engine.reports import BoundByAnother

FOUND = BoundByAnother("ns/web", "a", "stowplan")


class Scene:
    def __init__(self) -> None:
        self.now, self.out, self.registry = 1_000.0, io.StringIO(), CollectorRegistry()
        self.bindings = ForeignBindings(self.registry, Log(stream=self.out), lambda: self.now)

    @property
    def lines(self) -> list[str]:
        return self.out.getvalue().splitlines()

    @property
    def counted(self) -> float:
        return self.registry.get_sample_value("stowplan_foreign_bindings_total", {"profile": "stowplan"}) or 0.0


def test_a_follower_and_a_new_leader_say_nothing() -> None:
    scene = Scene()
    scene.bindings.report(FOUND)
    scene.bindings.leading_begins()
    scene.now += GRACE - 1
    scene.bindings.report(FOUND)
    assert not scene.lines and not scene.counted


def test_a_leader_says_it_once_in_a_while() -> None:
    scene = Scene()
    scene.bindings.leading_begins()
    scene.now += GRACE
    for _ in range(5):
        scene.bindings.report(FOUND)
    assert len(scene.lines) == 1 and scene.counted == 5
    assert 'pod="ns/web" node="a" scheduler="stowplan"' in scene.lines[0] and "one lease" in scene.lines[0]
    scene.now += SAY_EVERY
    scene.bindings.report(FOUND)
    assert len(scene.lines) == 2 and "times=5" in scene.lines[1]
