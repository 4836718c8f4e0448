"""What alerts look at, and kube-scheduler's metrics do not have: ages of queues, errors of plugins, the lease."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from stowplan.apps.run.metrics import Metrics
from stowplan.engine import reports
from stowplan.engine.scheduler import Scheduler
from stowplan.engine.unit import Unit
from stowplan.objects.changes import Put
from stowplan.objects.errors import PluginError
from stowplan.testing.builders import a_node, a_pod, a_profile


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Iterator[Clock]:
    yield Clock()


def value(metrics: Metrics, series: str, /, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(series, labels)


def age(metrics: Metrics, queue: str) -> float | None:
    return value(metrics, "stowplan_queue_oldest_pod_seconds", queue=queue)


def test_the_age_of_the_oldest_pod_of_each_queue(clock: Clock) -> None:
    metrics, engine = Metrics(clock), Scheduler({"default-scheduler": a_profile()}, np.random.default_rng(0))
    metrics.read_engine(engine)
    assert [age(metrics, queue) for queue in ("active", "backoff", "unschedulable", "gated")] == [0.0] * 4
    engine.handle(Put(a_node("a", cpu=1)), clock.now)
    engine.handle(Put(a_pod("big", cpu=4)), clock.now)
    metrics.read_engine(engine)
    clock.now += 30
    engine.handle(Put(a_pod("second", cpu=4)), clock.now)
    metrics.read_engine(engine)
    assert age(metrics, "active") == 30.0, "the older one counts"
    engine.step(clock.now)
    metrics.read_engine(engine)
    assert (age(metrics, "active"), age(metrics, "unschedulable")) == (0.0, 30.0)
    engine.step(clock.now)
    clock.now += 60
    metrics.read_engine(engine)
    assert (age(metrics, "active"), age(metrics, "unschedulable")) == (0.0, 90.0), "since the pod is known"


def test_a_pod_that_is_attempted_again_and_again_is_not_old(clock: Clock) -> None:
    """It may be active each time that somebody looks: what counts is for how long it was not attempted."""
    metrics, unit = Metrics(clock), Unit([a_pod("web")], "p", now=0.0)
    engine = cast(Scheduler, an_engine(unit))
    for attempts, expected in ((0, 0.0), (1, 0.0), (2, 0.0), (2, 600.0), (2, 1200.0), (3, 0.0)):
        unit.attempts = attempts
        metrics.read_engine(engine)
        assert age(metrics, "active") == expected
        clock.now += 600


def test_a_replica_that_waits_for_the_lease_has_no_old_pods(clock: Clock) -> None:
    """It knows the pods that the leader cannot place, and would be in alarm for ever."""
    metrics, engine = Metrics(clock), cast(Scheduler, an_engine(Unit([a_pod("web")], "p", now=0.0)))
    for leading, expected in ((False, 0.0), (False, 0.0), (True, 0.0), (True, 600.0), (False, 0.0)):
        metrics.read_engine(engine, leading=leading)
        assert age(metrics, "active") == expected
        clock.now += 600


def an_engine(unit: Unit) -> SimpleNamespace:
    """With one unit, which is active."""
    table, queue = SimpleNamespace(live_rows=list), SimpleNamespace(units={unit.key: unit}, incoming={}, waiting=list)
    return SimpleNamespace(queue=queue, state=SimpleNamespace(table=table, pods={}), assumed_pods={})


@pytest.mark.parametrize(
    ("report", "counted"),
    [
        pytest.param(
            reports.AttemptFailed("a/b", "p", True, str(PluginError("Mine", "filter", "KeyError: 'x' (mine.py:3)"))),
            1.0,
            id="a decision that it ended",
        ),
        pytest.param(
            reports.AttemptFailed("a/b", "p", True, f"{PluginError('Mine', 'filter', 'x')}. 1 of 3 pods are bound"),
            1.0,
            id="a binding of a group",
        ),
        pytest.param(reports.PluginMisbehaved("Mine", "filter", "x"), 1.0, id="where no pod depends on it"),
        pytest.param(reports.AttemptFailed("a/b", "p", True, "binding rejected: 403"), None, id="another error"),
        pytest.param(
            reports.AttemptFailed("a/b", "p", False, str(PluginError("Mine", "filter", "x"))),
            None,
            id="a reason that only looks like it",
        ),
    ],
)
def test_errors_of_plugins(report: reports.Report, counted: float | None) -> None:
    metrics = Metrics()
    metrics.report(report)
    assert value(metrics, "stowplan_plugin_errors_total", plugin="Mine", point="filter") == counted


def test_what_an_error_names() -> None:
    assert PluginError.named_in(str(PluginError("my.package:Mine", "pre_bind", "x: y"))) == (
        "my.package:Mine",
        "pre_bind",
    )
    assert PluginError.named_in("0/3 nodes are available") is None


def test_bindings_by_their_answer() -> None:
    metrics = Metrics()
    count = "stowplan_binding_duration_seconds_count"
    assert value(metrics, count, code="201") == 0.0, "there from the start: a rate needs two samples"
    for status in (201, 201, 409):
        metrics.binding_answered(status, 0.01)
    assert (value(metrics, count, code="201"), value(metrics, count, code="409")) == (2.0, 1.0)


def test_who_leads() -> None:
    metrics = Metrics()
    for leading in (True, False):
        metrics.show_leading("stowplan", leading=leading)
        assert value(metrics, "leader_election_master_status", name="stowplan") == float(leading)
