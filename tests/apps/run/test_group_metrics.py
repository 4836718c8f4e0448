"""KubeNexus' metrics under its five names with a limited number of labels, and our own metrics of groups."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from stowplan.apps.run import group_metrics
from stowplan.apps.run.group_metrics import GroupMetrics
from stowplan.apps.run.metrics import Metrics
from stowplan.engine import reports
from stowplan.objects import kinds
from stowplan.objects.reservations import ResourceReservation
from stowplan.testing.builders import a_pod, a_profile
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling import pod_groups
from tests.plugins.nodes.coscheduling.pod_groups import gang

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def reservation(name: str, namespace: str = "default", minutes: float = 0.0) -> ResourceReservation:
    created = NOON - timedelta(minutes=minutes)
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": created.isoformat()}
    return kinds.convert(ResourceReservation, {"metadata": metadata, "spec": {"reservations": {}}})


def at_work() -> tuple[Metrics, World]:
    """A group that runs, one that does not fit, one that has too few pods."""
    metrics = Metrics()
    profiles = {name: metrics.timed(each) for name, each in pod_groups.profiles().items()}
    world = World(nodes=[f"n{at}" for at in range(2)], profiles=profiles, report=metrics.report)
    metrics.pod_of = lambda key: next((pod for pod in world.pods() if pod.key == key), None)
    world.submit(*gang("runs", 3), *gang("large", 2, cpu=100), *gang("few", 1, needed=4))
    world.submit(reservation("r"))
    world.run()
    metrics.read_engine(world.scheduler)
    metrics.read_plugins(world.scheduler)
    return metrics, world


def text_of(metrics: Metrics) -> str:
    return metrics.text()[0].decode()


@pytest.mark.parametrize(
    "line",
    [
        "# TYPE kubenexus_scheduling_attempts_total counter",
        'kubenexus_scheduling_attempts_total{plugin="Coscheduling",result="scheduled"} 1.0',
        'kubenexus_scheduling_attempts_total{plugin="Coscheduling",result="unschedulable"} 1.0',
        "# TYPE kubenexus_scheduling_duration_seconds histogram",
        'kubenexus_scheduling_duration_seconds_count{operation="attempt",plugin="Coscheduling"} 2.0',
        "# TYPE kubenexus_pod_group_size histogram",
        'kubenexus_pod_group_size_bucket{le="2.0",namespace="default"} 0.0',
        'kubenexus_pod_group_size_bucket{le="5.0",namespace="default"} 1.0',
        'kubenexus_pod_group_size_bucket{le="500.0",namespace="default"} 1.0',
        "# TYPE kubenexus_waiting_pods gauge",
        'kubenexus_waiting_pods{namespace="default",pod_group="large"} 2.0',
        'kubenexus_waiting_pods{namespace="default",pod_group="few"} 1.0',
        "# TYPE kubenexus_resource_reservations gauge",
        'kubenexus_resource_reservations{namespace="default"} 1.0',
        "# TYPE kubenexus_gang_wait_duration_seconds histogram",
        "kubenexus_gang_wait_duration_seconds_count 1.0",
        "# TYPE kubenexus_gang_timeouts_total counter",
        "kubenexus_gang_timeouts_total 0.0",
    ],
)
def test_a_line(line: str) -> None:
    assert line in text_of(at_work()[0]).splitlines()


def test_labels_of_groups_that_ended_are_removed() -> None:
    metrics, world = at_work()
    world.delete(*world.pods(), reservation("r"))
    world.run()
    metrics.read_engine(world.scheduler)
    metrics.read_plugins(world.scheduler)
    text = text_of(metrics)
    assert "kubenexus_waiting_pods{" not in text and "kubenexus_resource_reservations{" not in text
    assert 'kubenexus_pod_group_size_count{namespace="default"} 1.0' in text


def test_profiles_without_these_plugins_have_no_such_metrics() -> None:
    metrics = Metrics()
    metrics.timed(a_profile())
    assert "kubenexus" not in text_of(metrics)


@pytest.mark.parametrize(
    ("what", "line"),
    [
        pytest.param(
            reports.PodBound("default/driver", "n", "p", 1, 0.0, False),
            'kubenexus_scheduling_attempts_total{plugin="ResourceReservation",result="scheduled"} 1.0',
            id="a driver with room for its executors",
        ),
        pytest.param(
            reports.AttemptFailed("default/driver", "p", False, "no room"),
            'kubenexus_scheduling_attempts_total{plugin="ResourceReservation",result="unschedulable"} 1.0',
            id="a driver without room",
        ),
        pytest.param(
            reports.AttemptFailed("default/driver", "p", True, "oops"),
            'kubenexus_scheduling_attempts_total{plugin="ResourceReservation",result="error"} 1.0',
            id="a driver with an error",
        ),
        pytest.param(reports.GroupTimedOut("default/g", 10.0), "kubenexus_gang_timeouts_total 1.0", id="too late"),
        pytest.param(
            reports.GroupPartiallyBound("default/g", "", evicts=True),
            "kubenexus_gang_bound_in_part_total 1.0",
            id="partially bound",
        ),
        pytest.param(
            reports.GroupAttempted("default/g", "p", 0, 3, whole=False, error=True),
            'kubenexus_scheduling_attempts_total{plugin="Coscheduling",result="error"} 1.0',
            id="a group with an error",
        ),
    ],
)
def test_a_report(what: reports.Report, line: str) -> None:
    metrics = Metrics()
    metrics.timed(pod_groups.profiles()["default-scheduler"])
    driver = a_pod("driver", labels={"spark-role": "driver", "spark-app-id": "a"})
    annotations = {"spark-executor-cpu": "1", "spark-executor-mem": "1Gi", "spark-executor-count": "2"}
    metadata = msgspec.structs.replace(driver.metadata, annotations=annotations)
    metrics.pod_of = {"default/driver": msgspec.structs.replace(driver, metadata=metadata)}.get
    metrics.report(what)
    assert line in text_of(metrics).splitlines()


def test_other_pods_are_not_drivers() -> None:
    metrics = Metrics()
    metrics.timed(pod_groups.profiles()["default-scheduler"])
    metrics.pod_of = lambda _: a_pod("web")
    metrics.report(reports.PodBound("default/web", "n", "p", 1, 0.0, False))
    assert 'plugin="ResourceReservation"' not in text_of(metrics)


# -- labels are bounded


def bare() -> tuple[GroupMetrics, CollectorRegistry]:
    registry = CollectorRegistry()
    return GroupMetrics(registry, now=NOON.timestamp), registry


def samples(registry: CollectorRegistry, name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == name
    }


def test_too_many_namespaces_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_metrics, "MAX_NAMESPACES", 2)
    metrics, registry = bare()
    metrics.read_reservations([reservation("r", namespace) for namespace in ("a", "b", "c", "d", "a")])
    assert samples(registry, "kubenexus_resource_reservations") == {("a",): 2, ("b",): 1, ("(others)",): 2}
    for name in ("a/x", "c/y", "e/z"):
        metrics.report(reports.GroupComplete(name, 3, 1.0), 0.0, lambda _: None)
    assert samples(registry, "kubenexus_pod_group_size_count") == {("a",): 1, ("(others)",): 2}


def test_too_many_waiting_groups_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest groups have labels of their own."""
    monkeypatch.setattr(group_metrics, "MAX_GROUPS", 1)
    world = pod_groups.a_world(nodes=1)
    world.submit(*gang("a", 2, needed=9), *gang("b", 3, needed=9), *gang("c", 1, needed=9))
    metrics, registry = bare()
    metrics.read_engine(world.scheduler)
    assert samples(registry, "kubenexus_waiting_pods") == {("default", "b"): 3, ("(others)", "(others)"): 3}


def test_the_age_of_the_oldest_reservation() -> None:
    metrics, registry = bare()
    found: dict[str, Any] = {}
    for minutes in ((), (3.0, 7.0, 1.0), ()):
        metrics.read_reservations([reservation(f"r{each}", minutes=each) for each in minutes])
        found[str(minutes)] = samples(registry, "kubenexus_resource_reservation_oldest_age_seconds")[()]
    assert found == {"()": 0.0, "(3.0, 7.0, 1.0)": 420.0}
