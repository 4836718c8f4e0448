"""KubeNexus from its seed's own labels, unedited, with the profile of deploy/ as it stands.

On a real control plane, with the rights of deploy/ alone, and with leader election. The scheduler is killed on the way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.deployed import ACCOUNT, DEPLOY, NAMESPACE, check_no_limit_met, grant
from tests.controlplane.plane import ControlPlane
from tests.controlplane.pod_groups import HIGH, LOW, priority_classes
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import Stowplan, a_live_pod, apply, bound, condition, noted

pytestmark = pytest.mark.controlplane

SEED = Path(__file__).parents[1] / "seeds" / "kubenexus_scheduler"
PROFILE, CRDS = DEPLOY / "profiles" / "kubenexus-scheduler", DEPLOY / "crds" / "kubenexus"
LABELS: dict[str, str] = yaml.safe_load((SEED / "pod-labels.yaml").read_text(encoding="utf-8"))
APP, SIZE = "spark-app-1", 10  # as the labels say
SORT = {"seed": "kubenexus"}
INFO = {"name", "namespace", "minAvailable", "timestamp", "scheduledPods", "waitingPods", "lastUpdateTime"}
METRICS = (
    "kubenexus_scheduling_attempts_total",
    "kubenexus_scheduling_duration_seconds",
    "kubenexus_pod_group_size",
    "kubenexus_waiting_pods",
    "kubenexus_resource_reservations",
)


class Schedulers:
    """The scheduler that runs, and those that were killed before it."""

    def __init__(self, plane: ControlPlane, kubeconfig: Path) -> None:
        self.plane, self._kubeconfig, self._started = plane, kubeconfig, list[Stowplan]()

    @property
    def current(self) -> Stowplan:
        return self._started[-1]

    def start(self) -> None:
        name, config = f"kubenexus-seed-{len(self._started)}", str(PROFILE / "config.yaml")
        self._started.append(Stowplan(self._kubeconfig, self.plane.folder, name, "--config", config))
        self.current.wait_until_leading()

    def kill(self) -> None:
        """As kill -9 does; another one starts, and leads when the lease is over."""
        self.current.kill()
        self.start()

    def stop(self) -> None:
        self.current.stop(grace=90)
        for each in self._started:
            check_no_limit_met(each.log)

    def wait(self, what: str, condition: Any) -> None:
        until(what, condition, 120, lambda *_: self.current.explain())


@pytest.fixture(scope="module")
def schedulers(plane: ControlPlane) -> Iterator[Schedulers]:
    with ExitStack() as stack:
        grant(plane)
        for file in ("rbac.yaml", "reservations-rbac.yaml"):
            plane.kubectl("apply", "--filename", str(PROFILE / file))
            stack.callback(plane.kubectl, "delete", "--filename", str(PROFILE / file))
        plane.kubectl("apply", "--kustomize", str(CRDS))
        stack.callback(plane.kubectl, "delete", "--kustomize", str(CRDS))
        for name in ("podgroups.scheduling.x-k8s.io", "resourcereservations.scheduling.kubenexus.io"):
            plane.kubectl("wait", "--for=condition=Established", "--timeout=120s", f"crd/{name}")
        stack.enter_context(plane.having(*priority_classes("PreemptLowerPriority")))
        found = Schedulers(plane, plane.service_account_kubeconfig(NAMESPACE, ACCOUNT))
        found.start()
        stack.callback(found.stop)
        yield found


@pytest.fixture
def room(plane: ControlPlane) -> Iterator[None]:
    """Room for twelve pods of one core."""
    with plane.nodes(3, prefix="seed-nexus", labels=SORT, capacity={"cpu": "4", "memory": "16Gi"}):
        yield


def a_member(name: str, labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    pod = a_live_pod(name, scheduler="kubenexus-scheduler", cpu="1", nodeSelector=SORT, **spec)
    pod["metadata"]["labels"] = labels
    return pod


def of_spark(name: str, role: str) -> dict[str, Any]:
    """What Spark itself sets, and the labels of the seed."""
    return a_member(name, {"spark-role": role, "spark-app-selector": APP, **LABELS}, **HIGH)


def count(plane: ControlPlane, namespace: str, prefix: str) -> int:
    return sum(name.startswith(prefix) for name in bound(plane, namespace))


@pytest.mark.usefixtures("room")
def test_the_two_labels_on_a_spark_application(schedulers: Schedulers, plane: ControlPlane, namespace: str) -> None:
    apply(plane, namespace, *(a_member(f"low-{at}", {}, **LOW) for at in range(12)))
    schedulers.wait("the cluster is full", lambda: count(plane, namespace, "low") == 12)
    apply(plane, namespace, of_spark("driver", "driver"))
    schedulers.wait("pods are evicted for all of it", lambda: count(plane, namespace, "driver") == 1)
    assert count(plane, namespace, "low") == 2, "for the driver and nine executors, and for no more"
    path = f"/apis/scheduling.kubenexus.io/v1alpha1/namespaces/{namespace}/resourcereservations/{APP}"
    assert len(plane.api().must("GET", path)["spec"]["reservations"]) == SIZE
    apply(plane, namespace, *(a_member(f"late-{at}", {}, **HIGH) for at in range(2)))
    schedulers.wait("others get what is left", lambda: count(plane, namespace, "late") == 2)
    schedulers.kill()
    apply(plane, namespace, a_member("later", {}, **HIGH), *(of_spark(f"executor-{at}", "executor") for at in range(9)))
    schedulers.wait("all executors have their room", lambda: count(plane, namespace, "executor") == 9)
    assert not count(plane, namespace, "later") and not count(plane, namespace, "low")
    schedulers.wait("it says so", lambda: plane.api().must("GET", path)["status"].get("taken") == SIZE)


@pytest.mark.usefixtures("room")
def test_the_two_labels_on_other_pods(schedulers: Schedulers, plane: ControlPlane, namespace: str) -> None:
    *most, last = (a_member(f"rank-{at}", LABELS) for at in range(SIZE))
    apply(plane, namespace, *most)
    waits = f"pod group {namespace}/{APP}: {SIZE - 1} of {SIZE} pods exist"
    schedulers.wait("they wait for the last", lambda: waits in noted(plane, namespace, "rank-0"))
    assert not bound(plane, namespace) and not condition(plane, namespace, "rank-0"), "no autoscaler adds nodes for it"
    schedulers.kill()
    apply(plane, namespace, last)
    schedulers.wait("all of them run", lambda: count(plane, namespace, "rank") == SIZE)
    page = json.loads(schedulers.current.page("/debug/podgroups"))["items"]
    (found,) = (each for each in page if each["namespace"] == namespace)
    assert found.keys() == INFO and (found["name"], found["minAvailable"]) == (APP, SIZE)
    figures = schedulers.current.page("/metrics")
    assert [name for name in METRICS if f"# HELP {name.removesuffix('_total')}" not in figures] == []
