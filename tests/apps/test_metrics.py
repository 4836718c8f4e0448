"""kube-scheduler's metrics: the names, labels and buckets that dashboards ask for."""

from __future__ import annotations

import numpy as np
import pytest

from stowplan.apps.metrics import Metrics
from stowplan.engine import reports
from stowplan.engine.scheduler import Scheduler
from stowplan.objects.changes import Put
from tests.builders import a_node, a_pod, a_profile

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
    """One pod bound, one without a place."""
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
        reports.Bound("default/web", "a", "default-scheduler", 17, 0.0, True),
        reports.Failed("default/big", "default-scheduler", True, "oops"),
        reports.Preempted("default/big", "a", 3),
        reports.Waited(2.0, False),
    ):
        metrics.report(what)
    metrics.look_at(engine)
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


def test_a_timed_plugin_is_that_plugin_in_all_else() -> None:
    profile = a_profile()
    timed = Metrics().timed(profile)
    for point, bounds in profile.points.items():
        for plain, wrapped in zip(bounds, timed.points[point], strict=True):
            assert (plain.name, plain.weight) == (wrapped.name, wrapped.weight)
            for mark in ("local", "filters_by_row", "scores_by_row", "reads"):
                marks = [getattr(each.plugin, mark, None) for each in (plain, wrapped)]
                assert callable(marks[0]) or marks[0] == marks[1]


def test_openmetrics_where_it_is_asked_for() -> None:
    text, kind = at_work().text("application/openmetrics-text; version=1.0.0")
    assert "openmetrics" in kind and text.endswith(b"# EOF\n")
