"""The end of fault tests: every pod is bound once, no node is over-committed, and the scheduler is healthy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import Stowplan, bound, check_nothing_over_committed, pods, wait_until_bound

SIZES = [pytest.param(60, 1, id="short"), pytest.param(150, 3, id="long", marks=pytest.mark.full)]
ROOM = {"cpu": "32", "pods": "500"}
QUICK_LEASE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 9s, renewDeadline: 7s, retryPeriod: 1s, resourceName: %s}
profiles: [{schedulerName: stowplan}]
"""
# This lease does not expire, however long a slow machine takes for what a test does to the program.
LONG_LEASE = QUICK_LEASE.replace("9s", "300s").replace("7s", "250s")


def configuration(folder: Path, name: str, text: str = QUICK_LEASE) -> str:
    file = folder / f"{name}.yaml"
    file.write_text(text % name if "%s" in text else text, encoding="utf-8")
    return str(file)


def settle(cluster: Cluster, namespace: str, number: int, program: Stowplan) -> None:
    """All is well in the end."""
    wait_until_bound(cluster, namespace, number, 180, program.explain)
    until(
        "there is no pod too many", lambda: len(pods(cluster, namespace)) == number, 60
    )  # a controller may have miscounted
    program.check()
    assert program.page("/healthz") == "ok"
    check_nothing_over_committed(cluster)
    uids = [pod["metadata"]["uid"] for pod in pods(cluster, namespace)]
    assert len(bound(cluster, namespace)) == len(uids) == len(set(uids)) == number
