"""`stowplan explain` says the same of a cluster and of a dump of it, and what the pod's own event says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import Stowplan, a_live_pod, apply, bound, condition, noted, stowplan

DUMPED = (
    "nodes,pods,namespaces,services,persistentvolumes,persistentvolumeclaims,storageclasses,csinodes,priorityclasses"
)
TAINT = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
WHY = ("large", "picky", "apart", "thirsty")  # the pods that have no place
PLACED = "small"


@pytest.fixture
def scheduler(cluster: Cluster) -> Iterator[Stowplan]:
    with stowplan(cluster, "explained") as program:
        program.wait_until_leading()
        yield program


def explain(*arguments: str, kubeconfig: Path | None = None) -> tuple[int, Any]:
    """Without the flag --kubeconfig, which would also be in the commands that are printed."""
    command = [sys.executable, "-m", "stowplan.apps.cli", "explain", "-o", "json", *arguments]
    environment = os.environ | {"KUBECONFIG": str(kubeconfig)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def of_the_pod(found: Any) -> Any:
    """What does not depend on leases, events and times, which the dump does not have."""
    return {name: value for name, value in found.items() if name not in ("scheduler", "waiting", "sentence")}


def refusal(cluster: Cluster, namespace: str, name: str) -> str:
    return str(condition(cluster, namespace, name).get("message", ""))


def submit(cluster: Cluster, namespace: str) -> None:
    apart = [{"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}]
    apply(
        cluster,
        namespace,
        a_live_pod("first", cpu="3"),
        a_live_pod(PLACED, cpu="100m"),
        a_live_pod("large", cpu="4500m"),
        a_live_pod("picky", nodeSelector={"disk": "fast"}),
        a_live_pod("apart", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": apart}}),
        a_live_pod("thirsty", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "nobody"}}]),
    )


def test_the_cluster_its_dump_and_the_pods_own_event_agree(
    cluster: Cluster, namespace: str, scheduler: Stowplan, tmp_path: Path
) -> None:
    with cluster.nodes(3, prefix="explained", capacity={"cpu": "4"}) as (_, _, tainted):
        cluster.kubectl("taint", "node", tainted, "dedicated=gpu:NoSchedule")
        submit(cluster, namespace)
        until("those that fit are bound", lambda: {*bound(cluster, namespace)} == {"first", PLACED}, 60)
        for name in WHY:
            until(f"{name} is refused", partial(refusal, cluster, namespace, name), 60)
        until("each has its event", lambda: all(noted(cluster, namespace, name) for name in WHY), 60)
        dump = tmp_path / "dump.yaml"
        dump.write_text(cluster.kubectl("get", DUMPED, "--all-namespaces", "-o", "yaml"), encoding="utf-8")
        live = cluster.kubeconfig()
        for name in (*WHY, PLACED):
            code, of_cluster = explain(name, "-n", namespace, kubeconfig=live)
            code_of_dump, of_dump = explain(name, "-n", namespace, "--from", str(dump))
            assert (code, of_the_pod(of_cluster)) == (code_of_dump, of_the_pod(of_dump))
            assert (code == 0) is (name == PLACED), of_cluster
            if name != PLACED:
                wait_until_told(cluster, namespace, name, of_cluster["message"])
        code, every = explain("-n", namespace, kubeconfig=live)
        assert code == 1 and {each["pod"] for each in every["items"]} == {f"{namespace}/{name}" for name in WHY}


def wait_until_told(cluster: Cluster, namespace: str, name: str, message: str) -> None:
    """By the pod's condition and by an event: it may have been refused before all was known, and then once more."""

    def said() -> tuple[str, list[str]]:
        return condition(cluster, namespace, name).get("message", ""), noted(cluster, namespace, name)

    def as_explained() -> bool:
        now, events = said()
        return now == message and message in events

    until(f"{name} is told {message}", as_explained, 60, lambda: str(said()))
