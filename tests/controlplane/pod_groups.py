"""Groups for tests on clusters: a scheduler with Coscheduling, pods and controllers of groups, and which run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.controlplane.cluster import Cluster
from tests.controlplane.stowplan_process import Stowplan, a_container, a_live_pod, pods

GROUP = "pod-group.scheduling.kubenexus.io"
QUIET = 3.0  # seconds in which nothing happens any more
LOW, MIDDLE, HIGH = (dict[str, Any](priorityClassName=f"gang-{name}") for name in ("low", "middle", "high"))


class Starter:
    """Starts the scheduler, and kills it, as often as a test wants; one at a time."""

    def __init__(self, cluster: Cluster, config: Path) -> None:
        self._cluster, self._config = cluster, config
        self._program: Stowplan | None = None

    def start(self) -> Stowplan:
        self.kill()
        self._program = Stowplan(
            self._cluster.kubeconfig(), self._cluster.folder, "gangs", "--config", str(self._config)
        )
        return self._program

    def ready(self) -> Stowplan:
        program = self.start()
        program.wait_until_ready()
        return program

    def kill(self) -> None:
        """As kill -9 does."""
        if self._program is not None:
            self._program.kill()
            self._program = None


@contextmanager
def coscheduling(cluster: Cluster, folder: Path, args: dict[str, Any] | None = None) -> Iterator[Starter]:
    """A scheduler with gangs, to be started; it goes with the test."""
    config = folder / "gangs.yaml"
    config.write_text(yaml.safe_dump(configuration(args)))
    starter = Starter(cluster, config)
    try:
        yield starter
    finally:
        starter.kill()


def configuration(args: dict[str, Any] | None = None, *, lease: bool = False) -> dict[str, Any]:
    """A profile `stowplan` with gangs and nothing else of ours."""
    plugins = {
        "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
        "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
    }
    own = [{"name": "Coscheduling", "args": args or {}}]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": lease, "resourceName": "stowplan", "resourceNamespace": "kube-system"},
        "profiles": [{"schedulerName": "stowplan", "plugins": plugins, "pluginConfig": own}],
    }


def priority_classes(policy: str) -> list[dict[str, Any]]:
    """gang-low, gang-middle and gang-high; `policy` is their preemptionPolicy."""
    return [
        {
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
            "preemptionPolicy": policy,
        }
        for name, value in (("gang-low", 10), ("gang-middle", 100), ("gang-high", 10_000))
    ]  # fmt: skip


# -- gangs


def labels(name: str, needed: int) -> dict[str, str]:
    return {f"{GROUP}/name": name, f"{GROUP}/min-available": str(needed)}


def gang(name: str, count: int, needed: int | None = None, **spec: Any) -> list[dict[str, Any]]:
    """Plain pods."""
    found = [a_live_pod(f"{name}-{at}", **spec) for at in range(count)]
    for pod in found:
        pod["metadata"]["labels"] = labels(name, count if needed is None else needed)
    return found


def kept_gang(name: str, count: int, cpu: str = "1") -> dict[str, Any]:
    """A ReplicaSet: a member that is evicted comes again, under another name."""
    marks = labels(name, count)
    spec = {"schedulerName": "stowplan", "containers": [a_container(cpu)], "terminationGracePeriodSeconds": 0}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": count,
            "selector": {"matchLabels": {f"{GROUP}/name": name}},
            "template": {"metadata": {"labels": marks}, "spec": spec},
        },
    }


def asking(memory: int, pods: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for pod in pods:
        pod["spec"]["containers"][0]["resources"] = {"requests": {"memory": str(memory)}}
    return pods


def interleaved(*gangs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    longest = max(map(len, gangs))
    return [each[at] for at in range(longest) for each in gangs if at < len(each)]


# -- who runs


def running(cluster: Cluster, namespace: str) -> Counter[str]:
    """Return how many pods of each group run on nodes, and single pods by their names."""
    found: Counter[str] = Counter()
    for pod in pods(cluster, namespace):
        over = "deletionTimestamp" in pod["metadata"] or pod["status"].get("phase") in ("Succeeded", "Failed")
        if pod["spec"].get("nodeName") and not over:
            found[pod["metadata"].get("labels", {}).get(f"{GROUP}/name", pod["metadata"]["name"])] += 1
    return found


def settled(cluster: Cluster, namespace: str, seconds: float = 60, quiet: float = QUIET) -> Counter[str]:
    """What runs when nothing has changed for a while."""
    before, since, end = running(cluster, namespace), time.monotonic(), time.monotonic() + seconds
    while time.monotonic() < end and time.monotonic() - since < quiet:
        time.sleep(0.3)
        now = running(cluster, namespace)
        if now != before:
            before, since = now, time.monotonic()
    return before
