"""Recounts from the API server's objects: what is compared, when, and what is reported."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import pytest

from stowplan.apps.logging import Log
from stowplan.apps.run.configuration import LoadedConfiguration, beside_kube_scheduler
from stowplan.apps.run.options import RunOptions
from stowplan.apps.run.recount import with_assumed
from stowplan.apps.run.service import SchedulerService
from stowplan.engine.reports import PluginMisbehaved
from stowplan.kube.reflector_cache import ReflectorCache
from stowplan.kube.resources import PODS
from stowplan.objects.changes import Put
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod, a_profile

CONFIG = """
profiles:
  - plugins: {score: {enabled: [{name: FlavourClusterWide}]}}
    pluginConfig: [{name: FlavourClusterWide, args: {cacheTTL: %s}}]
"""


class Reflector:
    """Knows the pods that a test gives it."""

    def __init__(self) -> None:
        self.cache, self.synced = ReflectorCache(PODS, lambda _: None), asyncio.Event()
        self.synced.set()


def gold(name: str, **more: Any) -> Pod:
    return a_pod(name, labels={"flavour": "gold"}, **more)


class Scene:
    def __init__(self, period: str) -> None:
        self.said = io.StringIO()
        configuration = beside_kube_scheduler().configuration
        loaded = LoadedConfiguration(configuration, {"default-scheduler": a_profile(CONFIG % period)})
        self.service = SchedulerService(RunOptions(), lambda: loaded, Log(stream=self.said))
        self.metrics, self.loop = self.service.metrics, self.service.engine_loop
        self.engine = self.loop.engine
        self.reflector = self.service.reflectors["Pod"] = Reflector()  # type: ignore[assignment]
        self.loop.receive([Put(a_node("a")), Put(a_node("b"))])

    def hear(self, *pods: Pod) -> None:
        """The API server reports these pods; they are in the engine's inbox."""
        for pod in pods:
            self.reflector.cache.objects[pod.key] = pod
        self.loop.receive([Put(pod) for pod in pods])

    def metric(self, name: str) -> float | None:
        labels = {"plugin": "FlavourClusterWide", "profile": "default-scheduler"}
        return self.metrics.registry.get_sample_value(f"stowplan_{name}", labels)


def test_no_drift_is_reported_as_zero_after_the_inbox_is_handled() -> None:
    scene = Scene("10")
    scene.hear(gold("p", node="a"), gold("q", node="b"))
    for now in (0.0, 9.9):
        scene.service._recount(now)
    assert scene.metric("recounts_total") is None, "not before the end of the first period"
    scene.hear(gold("r", node="b"))
    scene.service._recount(10.0)
    assert (scene.metric("recounts_total"), scene.metric("drift"), scene.said.getvalue()) == (1.0, 0.0, "")


def test_drift_goes_into_a_metric_and_a_log_line_each_time() -> None:
    scene = Scene("10")
    scene.hear(gold("p", node="a"), gold("q", node="b"))
    scene.loop.handle_inbox()
    del scene.reflector.cache.objects["default/q"]
    for now in (0.0, 10.0, 19.0, 20.0):
        scene.service._recount(now)
    assert (scene.metric("recounts_total"), scene.metric("drift")) == (2.0, 1.0)
    lines = scene.said.getvalue().splitlines()
    assert len(lines) == 2
    assert (
        lines[0].startswith("W") and '"Counts differ from the API\'s objects" plugin="FlavourClusterWide"' in lines[0]
    )
    assert 'differences=1 first="flavour=gold on node b: 1, not 0"' in lines[0]
    scene.hear(gold("q", node="b"))
    scene.service._recount(30.0)
    assert scene.metric("drift") == 0.0


@pytest.mark.parametrize("period", [pytest.param("0", id="off"), pytest.param("null", id="not given")])
def test_there_is_no_recount_by_default(period: str) -> None:
    scene = Scene(period)
    scene.hear(gold("p", node="a"))
    for now in (0.0, 1e6, 1e9):
        scene.service._recount(now)
    assert scene.metric("recounts_total") is None


def test_assumed_pods_are_no_drift() -> None:
    scene = Scene("10")
    scene.hear(gold("p"), gold("q"))
    scene.loop.handle_inbox()
    for _ in range(2):
        scene.engine.step(0.0)
    assert len(scene.engine.assumed_pods) == 2
    for now in (0.0, 10.0):
        scene.service._recount(now)
    assert (scene.metric("drift"), scene.said.getvalue()) == (0.0, "")
    shown = list(with_assumed(scene.reflector.cache.objects.values(), scene.engine.assumed_pods))
    assert {pod.name: pod.node_name for pod in shown}.keys() == {"p", "q"}
    assert {pod.node_name for pod in shown} == {"a", "b"}


def test_there_is_no_recount_before_caches_are_synced() -> None:
    scene = Scene("10")
    scene.reflector.synced.clear()
    scene.loop.receive([Put(gold("p", node="a"))])
    scene.loop.handle_inbox()
    for now in (0.0, 10.0, 20.0):
        scene.service._recount(now)
    assert scene.metric("recounts_total") is None


def test_a_plugin_that_fails_is_reported_once_per_problem() -> None:
    scene = Scene("10")
    scene.reflector.cache.objects["default/p"] = gold("p", node="a")
    plugin = scene.engine.profiles["default-scheduler"].plugin("FlavourClusterWide")
    assert plugin is not None
    plugin.recount = lambda *_: [1 / 0]
    for now in (0.0, 10.0, 20.0, 30.0):
        scene.service._recount(now)
    assert scene.metric("recounts_total") is None
    (line,) = scene.said.getvalue().splitlines()
    assert line.startswith("W") and '"A plugin misbehaves" plugin="FlavourClusterWide" point="recount"' in line
    assert "ZeroDivisionError" in line
    plugin.recount = lambda *_: ["two"]
    scene.service._recount(40.0)
    scene.service._recount(50.0)
    assert len(scene.said.getvalue().splitlines()) == 2, "each problem once"


@pytest.mark.parametrize("left", [pytest.param("0", id="switched off"), pytest.param("", id="plugin disabled")])
def test_after_a_reload_without_the_recount_there_is_no_metric(left: str) -> None:
    scene = Scene("10")
    scene.hear(gold("p", node="a"))
    for now in (0.0, 10.0):
        scene.service._recount(now)
    assert scene.metric("drift") == 0.0
    after = a_profile(CONFIG % left) if left else a_profile()
    scene.engine.adopt({"default-scheduler": scene.metrics.timed(after)}, 11.0)
    scene.service._recount(12.0)
    assert scene.metric("drift") is None and scene.metric("recounts_total") == 1.0, "the counter stays"
    scene.engine.adopt({"default-scheduler": scene.metrics.timed(a_profile(CONFIG % "5"))}, 13.0)
    for now in (13.0, 18.0):
        scene.service._recount(now)
    assert scene.metric("drift") == 0.0, "enabled again"


def test_problems_of_plugins_are_logged_once_each() -> None:
    said = io.StringIO()
    program = SchedulerService(RunOptions(), beside_kube_scheduler, Log(stream=said))
    for problem in ("one", "one", "two", "one"):
        program._report(PluginMisbehaved("Census", "reconcile", problem))
    lines = said.getvalue().splitlines()
    assert [line.split(" ", 4)[-1].split("] ")[-1] for line in lines] == [
        f'"A plugin misbehaves" plugin="Census" point="reconcile" problem="{text}"' for text in ("one", "two")
    ]
