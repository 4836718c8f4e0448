"""CronJobs: when a job is created, which jobs stay, and what is told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.controllers.workloads import names
from tests.embedded.virtual_cluster import START, VirtualCluster

# The start is a whole minute; jobs are named after theirs.
MINUTE = int(START) // 60


def a_cron_job(seconds: int = 1, code: int = 0, **spec: Any) -> dict[str, Any]:
    """A cron job of each minute, whose pods run for so many seconds."""
    annotations = {"stowplan.io/run-seconds": str(seconds), "stowplan.io/exit-code": str(code)}
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x:1"}]}
    job = {"backoffLimit": 0, "template": {"metadata": {"annotations": annotations}, "spec": pod}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": job}
    return {
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "cron", "namespace": "default"},
        "spec": {"schedule": "* * * * *", "jobTemplate": template, **spec},
    }  # fmt: skip


def minutes(cluster: VirtualCluster) -> list[int]:
    """The minutes of the jobs that are there, counted from the start."""
    return [int(name.rpartition("-")[2]) - MINUTE for name in names(cluster.all("jobs.batch"))]


def told(cluster: VirtualCluster) -> list[str]:
    return [event["reason"] for event in cluster.all("events") if event["involvedObject"]["kind"] == "CronJob"]


def status(cluster: VirtualCluster) -> dict[str, Any]:
    return dict(cluster.get("cronjobs.batch", "default/cron").get("status", {}))


@pytest.fixture
def cluster() -> VirtualCluster:
    found = VirtualCluster()
    found.nodes(1)
    return found


def run(cluster: VirtualCluster, seconds: int) -> None:
    """Second by second."""
    for _ in range(seconds):
        cluster.settle(1)


def test_a_job_is_created_at_its_minute(cluster: VirtualCluster) -> None:
    cluster.create(a_cron_job())
    cluster.settle(59)
    assert minutes(cluster) == []
    cluster.settle(1)
    (job,) = cluster.all("jobs.batch")
    assert minutes(cluster) == [1]
    assert job["metadata"]["annotations"] == {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2027-01-15T08:01:00Z"}
    assert job["metadata"]["labels"]["a"] == "b"
    assert [each["name"] for each in status(cluster)["active"]] == names([job])
    assert status(cluster)["lastScheduleTime"] == "2027-01-15T08:01:00Z"


def test_a_job_that_ends_is_told(cluster: VirtualCluster) -> None:
    cluster.create(a_cron_job())
    run(cluster, 62)
    assert told(cluster) == ["SuccessfulCreate", "SawCompletedJob"]
    assert status(cluster) == {
        "lastScheduleTime": "2027-01-15T08:01:00Z", "lastSuccessfulTime": "2027-01-15T08:01:01Z",
    }  # fmt: skip


def test_the_time_zone_counts(cluster: VirtualCluster) -> None:
    cluster.create(a_cron_job(schedule="2 9 * * *", timeZone="Europe/Paris"))
    cluster.settle(120)
    (job,) = cluster.all("jobs.batch")
    scheduled = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert scheduled == "2027-01-15T09:02:00+01:00"


@pytest.mark.parametrize(
    ("policy", "jobs", "active", "event"),
    [
        pytest.param("Allow", [1, 2], 2, "SuccessfulCreate", id="both run"),
        pytest.param("Forbid", [1], 1, "JobAlreadyActive", id="the first runs on"),
        pytest.param("Replace", [2], 1, "SuccessfulDelete", id="the second replaces it"),
    ],
)
def test_a_job_that_is_still_active(
    cluster: VirtualCluster, policy: str, jobs: list[int], active: int, event: str
) -> None:
    cluster.create(a_cron_job(seconds=1000, concurrencyPolicy=policy))
    cluster.settle(60)
    cluster.settle(60)
    assert minutes(cluster) == jobs
    assert len(status(cluster)["active"]) == active
    assert event in told(cluster)


def test_a_forbidden_time_is_made_up_for_when_the_job_ends(cluster: VirtualCluster) -> None:
    cluster.create(a_cron_job(seconds=70, concurrencyPolicy="Forbid"))
    run(cluster, 135)
    assert minutes(cluster) == [1, 2]
    assert status(cluster)["lastScheduleTime"] == "2027-01-15T08:02:00Z"


def test_a_suspended_cron_job_creates_nothing_until_it_is_resumed(cluster: VirtualCluster) -> None:
    cluster.create(a_cron_job(suspend=True))
    cluster.settle(200)
    assert minutes(cluster) == []
    cluster.change("cronjobs.batch", "default/cron", suspend=False)
    cluster.settle()
    assert minutes(cluster) == [3]  # the last of those that it missed


@pytest.mark.parametrize(
    ("deadline", "jobs"),
    [pytest.param(30, [3], id="in time"), pytest.param(10, [], id="too late")],
)
def test_a_missed_time_within_the_deadline(cluster: VirtualCluster, deadline: int, jobs: list[int]) -> None:
    cluster.create(a_cron_job(suspend=True, startingDeadlineSeconds=deadline))
    cluster.settle(200)
    cluster.change("cronjobs.batch", "default/cron", suspend=False)
    cluster.settle()
    assert minutes(cluster) == jobs


def test_too_many_missed_times_are_told_and_the_last_counts(cluster: VirtualCluster) -> None:
    cluster.create(a_cron_job(suspend=True))
    cluster.settle(60 * 5000 + 5)
    cluster.change("cronjobs.batch", "default/cron", suspend=False)
    cluster.settle()
    assert minutes(cluster) == [5000]
    assert "TooManyMissedTimes" in told(cluster)


@pytest.mark.parametrize(
    ("code", "limits", "jobs"),
    [
        pytest.param(0, {}, [3, 4, 5], id="three that succeeded"),
        pytest.param(1, {}, [5], id="one that failed"),
        pytest.param(0, {"successfulJobsHistoryLimit": 0}, [], id="none"),
        pytest.param(1, {"failedJobsHistoryLimit": 2}, [4, 5], id="two"),
    ],
)
def test_finished_jobs_that_stay(cluster: VirtualCluster, code: int, limits: dict[str, int], jobs: list[int]) -> None:
    cluster.create(a_cron_job(code=code, **limits))
    run(cluster, 310)
    assert minutes(cluster) == jobs


def test_a_job_that_somebody_deleted_is_missed(cluster: VirtualCluster) -> None:
    cluster.create(a_cron_job(seconds=1000))
    cluster.settle(60)
    cluster.delete("jobs.batch", f"default/cron-{MINUTE + 1}")
    cluster.settle()
    assert told(cluster) == ["SuccessfulCreate", "MissingJob"]
    assert "active" not in status(cluster)


def test_jobs_go_with_their_cron_job(cluster: VirtualCluster) -> None:
    cluster.create(a_cron_job(seconds=1000))
    cluster.settle(60)
    cluster.delete("cronjobs.batch", "default/cron")
    cluster.settle()
    assert cluster.all("jobs.batch") == []
    assert cluster.all("pods") == []
