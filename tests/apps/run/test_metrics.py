"""kube-scheduler's metrics: the names, labels and buckets that dashboards use."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from stowplan.apps.run.metrics import Metrics
from stowplan.columns.nodes.views import Cluster
from stowplan.engine import reports
from stowplan.engine.scheduler import Scheduler
from stowplan.framework import interfaces
from stowplan.objects.changes import Gone, Put
from stowplan.testing.builders import a_node, a_pod, a_profile
from tests.engine.small_plugins import profiles

STABLE = {
    "schedule_attempts_total": ("counter", {"result", "profile"}),
    "scheduling_attempt_duration_seconds": ("histogram", {"result", "profile"}),
    "pending_pods": ("gauge", {"queue"}),
    "queue_incoming_pods_total": ("counter", {"queue", "event"}),
    "framework_extension_point_duration_seconds": ("histogram", {"extension_point", "status", "profile"}),
    "preemption_attempts_total": ("counter", set()),
    "preemption_victims": ("histogram", set()),
    "pod_scheduling_attempts": ("histogram", set()),
    "pod_scheduling_sli_duration_seconds": ("histogram", {"attempts"}),
    "plugin_evaluation_total": ("counter", {"plugin", "extension_point", "profile"}),
    "unschedulable_pods": ("gauge", {"plugin", "profile"}),
    "permit_wait_duration_seconds": ("histogram", {"result"}),
    "plugin_execution_duration_seconds": ("histogram", {"plugin", "extension_point", "status"}),
    "scheduling_algorithm_duration_seconds": ("histogram", set()),
    "cache_size": ("gauge", {"type"}),
    "pod_scheduled_after_flush_total": ("counter", set()),
}


def at_work() -> Metrics:
    """Metrics after one pod was bound, and one was unschedulable."""
    metrics = Metrics()
    profile = {"default-scheduler": metrics.timed(a_profile())}
    engine = Scheduler(profile, np.random.default_rng(0), report=metrics.report)
    for each in (a_node("a", cpu=1), a_pod("web", cpu="100m"), a_pod("big", cpu=4)):
        engine.handle(Put(each), 0.0)
    for _ in range(2):
        for action in engine.step(0.0):
            engine.handle(Put(a_pod("web", cpu="100m", node="a")), 0.0) if hasattr(action, "node_name") else None
        metrics.stepped(0.001)
    for what in (
        reports.PodBound("default/web", "a", "default-scheduler", 17, 0.0, True),
        reports.AttemptFailed("default/big", "default-scheduler", True, "oops"),
        reports.PreemptionStarted("default/big", "a", 3),
        reports.PermitWaited(2.0, False),
    ):
        metrics.report(what)
    metrics.read_engine(engine)
    return metrics


@pytest.mark.parametrize("name", STABLE)
def test_names_types_and_labels(name: str) -> None:
    kind, labels = STABLE[name]
    text = at_work().text()[0].decode()
    assert f"# TYPE scheduler_{name} {kind}" in text
    lines = [line for line in text.splitlines() if line.startswith(f"scheduler_{name}")]
    assert lines
    found = {part.split("=")[0] for line in lines if "{" in line for part in line[line.index("{") + 1 :].split('",')}
    assert found - {"le"} == labels, found


def test_values() -> None:
    text = at_work().text()[0].decode()
    for line in (
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0',
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"} 1.0',
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="error"} 1.0',
        'scheduler_pending_pods{queue="unschedulable"} 1.0',
        'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="default-scheduler"} 1.0',
        'scheduler_queue_incoming_pods_total{event="PodAdd",queue="active"} 2.0',
        'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="15+"} 1.0',
        'scheduler_cache_size{type="nodes"} 1.0',
        "scheduler_pod_scheduled_after_flush_total 1.0",
    ):
        assert line in text


def test_a_timed_plugin_has_the_other_attributes_of_the_plugin() -> None:
    profile = a_profile()
    timed = Metrics().timed(profile)
    for point, bounds in profile.points.items():
        for plain, wrapped in zip(bounds, timed.points[point], strict=True):
            assert (plain.name, plain.weight) == (wrapped.name, wrapped.weight)
            for mark in ("local", "filters_by_row", "scores_by_row", "reads"):
                marks = [getattr(each.plugin, mark, None) for each in (plain, wrapped)]
                assert callable(marks[0]) or marks[0] == marks[1]


def test_openmetrics_if_the_client_asks_for_it() -> None:
    text, kind = at_work().text("application/openmetrics-text; version=1.0.0")
    assert "openmetrics" in kind and text.endswith(b"# EOF\n")


class Counting:
    """A plugin with gauges; the same in all its profiles."""

    fails = False

    def score(self, *_: object) -> int:
        return 0

    def gauges(self, cluster: Cluster) -> Iterator[interfaces.Gauge]:
        if self.fails:
            raise KeyError("oops")
        for node in cluster.nodes:
            yield interfaces.Gauge("pods_there", "Pods there.", len(list(node.pods)), {"node": node.name})


def test_gauges_of_plugins() -> None:
    metrics, plugin = Metrics(), Counting()
    engine = Scheduler({"one": metrics.timed(profiles(score=[plugin])["default-scheduler"])}, np.random.default_rng(0))
    for each in (a_node("a"), a_node("b"), a_pod("web", node="a")):
        engine.handle(Put(each), 0.0)
    metrics.read_plugins(engine)
    assert 'stowplan_pods_there{node="a"} 1.0' in metrics.text()[0].decode()
    engine.handle(Gone(a_node("b")), 1.0)
    metrics.read_plugins(engine)
    assert 'node="b"' not in metrics.text()[0].decode(), "a deleted node is not shown"
    plugin.fails, said = True, list[reports.PluginMisbehaved]()
    metrics.read_plugins(engine, said.append)
    assert "pods_there{" not in metrics.text()[0].decode()
    ((name, point, problem),) = [(each.plugin, each.point, each.problem) for each in said]
    assert (name, point) == ("Counting", "gauges") and problem.startswith("KeyError: 'oops' (test_metrics.py:")


class GaugePlugin:
    """Shows the gauges that a test sets."""

    def __init__(self, *shown: interfaces.Gauge) -> None:
        self.shown = shown

    def score(self, *_: object) -> int:
        return 0

    def gauges(self, cluster: Cluster) -> tuple[interfaces.Gauge, ...]:
        return self.shown


def test_each_profile_has_its_own_gauges() -> None:
    """Two profiles may have one plugin with different arguments."""
    metrics = Metrics()
    one, two = (GaugePlugin(interfaces.Gauge("told", "Told.", 1, {"of": name})) for name in ("one", "two"))
    made = {plugin: metrics.timed(profiles(score=[plugin])["default-scheduler"]) for plugin in (one, two)}
    engine = Scheduler({"one": made[one], "two": made[two]}, np.random.default_rng(0))
    metrics.read_plugins(engine)
    text = metrics.text()[0].decode()
    assert 'stowplan_told{of="one"} 1.0' in text and 'stowplan_told{of="two"} 1.0' in text
    two.shown = ()
    metrics.read_plugins(engine)
    text = metrics.text()[0].decode()
    assert 'of="one"' in text and 'of="two"' not in text


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(interfaces.Gauge("told", "Told.", 3), "stowplan_told 3.0", id="no labels"),
        pytest.param(
            interfaces.Gauge("told", "Told.", 3, {"a": "x", "b": "y"}), 'told{a="x",b="y"} 3.0', id="two labels"
        ),
    ],
)
def test_gauges_with_and_without_labels(shown: interfaces.Gauge, expected: str) -> None:
    metrics, plugin = Metrics(), GaugePlugin(shown)
    engine = Scheduler({"one": metrics.timed(profiles(score=[plugin])["default-scheduler"])}, np.random.default_rng(0))
    metrics.read_plugins(engine)
    assert expected in metrics.text()[0].decode()
    names, said = ", ".join(shown.labels) or "none", list[reports.PluginMisbehaved]()
    for other in ({"other": "z"}, {"a": "z", "other": "z"}):
        plugin.shown = (interfaces.Gauge("told", "Told.", 4, other),)
        metrics.read_plugins(engine, said.append)  # labels cannot change
        assert "z" not in metrics.text()[0].decode().split("stowplan_told")[-1]
        now = ", ".join(other)
        assert said.pop() == reports.PluginMisbehaved(
            "GaugePlugin", "gauges", f"the labels of told were {names} before, and are {now} now"
        )


def test_the_order_of_labels_does_not_matter() -> None:
    metrics, plugin = Metrics(), GaugePlugin(interfaces.Gauge("told", "Told.", 1, {"a": "x", "b": "y"}))
    engine = Scheduler({"one": metrics.timed(profiles(score=[plugin])["default-scheduler"])}, np.random.default_rng(0))
    metrics.read_plugins(engine)
    plugin.shown = (interfaces.Gauge("told", "Told.", 2, {"b": "y", "a": "x"}),)
    metrics.read_plugins(engine)
    lines = [line for line in metrics.text()[0].decode().splitlines() if line.startswith("stowplan_told")]
    assert lines == ['stowplan_told{a="x",b="y"} 2.0'], "in any order"


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        pytest.param(interfaces.Gauge("told", "Told.", 1, {"__a": "x"}), "__a", id="a reserved label"),
        pytest.param(interfaces.Gauge("told", "Told.", 1, ["a"]), "keys", id="labels in a list"),  # type: ignore[arg-type]
        pytest.param(interfaces.Gauge("told", "Told.", "many"), "many", id="not a number"),  # type: ignore[arg-type]
    ],
)
def test_an_invalid_gauge_is_reported(wrong: interfaces.Gauge, problem: str) -> None:
    metrics, plugin, said = Metrics(), GaugePlugin(wrong), list[reports.PluginMisbehaved]()
    engine = Scheduler({"one": metrics.timed(profiles(score=[plugin])["default-scheduler"])}, np.random.default_rng(0))
    metrics.read_plugins(engine, said.append)
    assert len(said) == 1 and said[0].plugin == "GaugePlugin" and problem in said[0].problem
