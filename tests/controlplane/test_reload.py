"""The configuration file is edited while the scheduler runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import Stowplan, a_live_pod, apply, bound, stowplan, wait_until_bound

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
podMaxBackoffSeconds: %d
profiles: [%s]
"""


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[list[str]]:
    with cluster.nodes(2, prefix="reload") as names:
        yield names


def write(file: Path, *names: str, most: int = 10, more: str = "") -> None:
    profiles = ", ".join(f"{{schedulerName: {name}{more}}}" for name in names)
    put(file, CONFIG % (most, profiles))


def put(file: Path, text: str) -> None:
    """All at once, as a kubelet does: who looks at the file every second must not find half of it."""
    other = file.with_suffix(".new")
    other.write_text(text, encoding="utf-8")
    other.replace(file)


def in_force(program: Stowplan) -> Any:
    return json.loads(program.page("/configz"))["kubescheduler.config.k8s.io"]


def test_a_bad_edit_is_refused_and_a_good_one_taken(
    cluster: Cluster, namespace: str, nodes: list[str], tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    write(file, "stowplan")
    with stowplan(cluster, "reload", "--config", str(file)) as program:
        apply(
            cluster, namespace, a_live_pod("first"), a_live_pod("waits", cpu="4000"), a_live_pod("for", scheduler="new")
        )
        wait_until_bound(cluster, namespace, 1, explain=program.explain)
        before = in_force(program)

        put(file, "profiles: [{schedulerName: x, plugins: {nonsense: {}}}]")
        until("it complains", lambda: "is refused" in program.log.read_text(encoding="utf-8"), 60, program.explain)
        assert in_force(program) == before
        apply(cluster, namespace, a_live_pod("second"))
        wait_until_bound(cluster, namespace, 2, explain=program.explain)
        refusals = [line for line in program.log.read_text(encoding="utf-8").splitlines() if "is refused" in line]
        assert len(refusals) == 1 and str(file) in refusals[0]

        write(file, "stowplan", "new", most=7)
        until("it is in force", lambda: in_force(program)["pod_max_backoff_seconds"] == 7, 60, program.explain)
        wait_until_bound(cluster, namespace, 3, explain=program.explain)
        assert set(bound(cluster, namespace)) == {"first", "second", "for"}
        until("who waited waits on", lambda: waiting(program) == 1, 60, lambda: program.page("/metrics"))
        assert set(bound(cluster, namespace)) == {"first", "second", "for"}


def waiting(program: Stowplan) -> float:
    return program.metric("scheduler_pending_pods", queue="unschedulable")


def test_a_reload_imports_no_new_code(cluster: Cluster, nodes: list[str], tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    write(file, "stowplan")
    with stowplan(cluster, "no-new-code", "--config", str(file), "--plugin-path", str(tmp_path)) as program:
        (tmp_path / "evil.py").write_text("raise SystemExit(1)", encoding="utf-8")
        write(file, "stowplan", more=', plugins: {filter: {enabled: [{name: "evil.py:Evil"}]}}')
        until("it complains", lambda: "is refused" in program.log.read_text(encoding="utf-8"), 60, program.explain)
        assert "imports no new code" in program.log.read_text(encoding="utf-8") and program.running
