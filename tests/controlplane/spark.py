"""Spark as a scheduler sees it: drivers with annotations, and a controller that creates executors of a driver."""

from __future__ import annotations

import threading
from typing import Any

from tests.controlplane.cluster import Cluster
from tests.controlplane.stowplan_process import a_live_pod, pods

APP, ROLE = "spark-app-selector", "spark-role"
DYNAMIC = "spark-dynamic-allocation"


def a_driver(name: str, scheduler: str, executors: int, most: int = 0, **spec: Any) -> dict[str, Any]:
    """So many executors of one core each; with `most`, at least so many."""
    annotations = {"spark-executor-cpu": "1", "spark-executor-mem": "1Gi", "test/executors": str(executors)}
    if most:
        annotations |= {
            f"{DYNAMIC}-enabled": "true",
            f"{DYNAMIC}-min-executor-count": str(executors),
            f"{DYNAMIC}-max-executor-count": str(most),
        }
    else:
        annotations["spark-executor-count"] = str(executors)
    pod = a_live_pod(f"{name}-driver", scheduler=scheduler, cpu="1", **spec)
    pod["metadata"] |= {"labels": {APP: name, ROLE: "driver"}, "annotations": annotations}
    return pod


def an_executor(driver: dict[str, Any], number: int) -> dict[str, Any]:
    name, spec = driver["metadata"]["labels"][APP], driver["spec"]
    own = {"nodeSelector": spec["nodeSelector"]} if "nodeSelector" in spec else {}
    pod = a_live_pod(f"{name}-exec-{number}", scheduler=spec["schedulerName"], cpu="1", **own)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": driver["metadata"]["name"], "uid": driver["metadata"]["uid"]}
    pod["metadata"] |= {"labels": {APP: name, ROLE: "executor"}, "ownerReferences": [owner]}
    return pod


class Spark:
    """Looks at the pods of a namespace: a driver that runs gets its executors, each of them once."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster, self._namespace = cluster, namespace
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._made: set[str] = set()
        self.problem: Exception | None = None

    def __enter__(self) -> Spark:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(10)
        assert self.problem is None, self.problem

    def _run(self) -> None:
        try:
            while not self._over.wait(0.05):
                for pod in pods(self._cluster, self._namespace):
                    self._look_at(pod)
        except Exception as problem:  # reported at the end to the test that waits for executors
            self.problem = problem

    def _look_at(self, pod: dict[str, Any]) -> None:
        metadata = pod["metadata"]
        if metadata.get("labels", {}).get(ROLE) != "driver" or metadata["uid"] in self._made:
            return
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in metadata:
            self._made.add(metadata["uid"])
            for number in range(int(metadata["annotations"]["test/executors"])):
                self.create(an_executor(pod, number))

    def create(self, document: dict[str, Any]) -> None:
        path = f"/api/v1/namespaces/{self._namespace}/pods"
        self._cluster.api().must("POST", path, document)
