"""Spark-like applications and other pods: executors get the room that is held for them, and it is held no longer.

In the embedded cluster and on a real one; there with the rights of deploy/ alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.cluster import Cluster
from tests.controlplane.conftest import REAL_AT_LENGTH
from tests.controlplane.deployed import DEPLOY, check_no_limit_met, grant
from tests.controlplane.process import until
from tests.controlplane.spark import Spark, a_driver, an_executor
from tests.controlplane.stowplan_process import (
    Stowplan,
    a_deployment,
    a_live_pod,
    apply,
    bound,
    check_nothing_over_committed,
    condition,
    pods,
)

CRDS, RBAC = DEPLOY / "crds" / "kubenexus", DEPLOY / "profiles" / "kubenexus-scheduler" / "reservations-rbac.yaml"
NAME, SORT = "reserving", {"test/sort": "spark"}
NO_SPOTS = "application has no free executor spots to schedule this one"


@pytest.fixture(scope="module", params=REAL_AT_LENGTH)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """With the definition, and the account that may use it."""
    found: Cluster = request.getfixturevalue(request.param)
    if request.param == "embedded":
        yield found
        return
    grant(found)  # type: ignore[arg-type]
    found.kubectl("apply", "--filename", str(RBAC))
    found.kubectl("apply", "--kustomize", str(CRDS))
    name = "crd/resourcereservations.scheduling.kubenexus.io"
    found.kubectl("wait", "--for=condition=Established", "--timeout=120s", name)
    yield found
    found.kubectl("delete", "--kustomize", str(CRDS))
    found.kubectl("delete", "--filename", str(RBAC))


class Starter:
    """Starts the scheduler, and kills it, as often as a test wants."""

    def __init__(self, cluster: Cluster, folder: Path, stack: ExitStack) -> None:
        self._cluster, self._stack = cluster, stack
        self._config = folder / "config.yaml"
        plugins = {"multiPoint": {"enabled": [{"name": "ResourceReservation"}]}}
        lease = {"leaderElect": True, "resourceName": "stowplan", "resourceNamespace": "kube-system"}
        lease |= {"leaseDuration": "9s", "renewDeadline": "7s", "retryPeriod": "500ms"}
        self._config.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "kubescheduler.config.k8s.io/v1",
                    "kind": "KubeSchedulerConfiguration",
                    "leaderElection": lease,
                    "profiles": [{"schedulerName": NAME, "plugins": plugins}],
                }
            )
        )

    def start(self) -> Stowplan:
        real = self._cluster.has_accounts
        kubeconfig = self._cluster.service_account_kubeconfig("kube-system", "stowplan") if real else None
        where, name = kubeconfig or self._cluster.kubeconfig(), f"{NAME}-{time.monotonic_ns()}"
        program = Stowplan(where, self._cluster.folder, name, "--config", str(self._config))
        self._stack.callback(lambda: check_no_limit_met(program.log))
        self._stack.enter_context(program)
        program.wait_until_leading()
        return program


@pytest.fixture
def starter(cluster: Cluster, tmp_path: Path) -> Iterator[Starter]:
    with ExitStack() as stack:
        yield Starter(cluster, tmp_path, stack)


@pytest.fixture
def room(cluster: Cluster) -> Iterator[None]:
    """Two nodes of four cores."""
    with cluster.nodes(2, prefix="spark", labels=SORT, capacity={"cpu": "4", "memory": "16Gi"}):
        yield


def reservations(cluster: Cluster, namespace: str) -> dict[str, Any]:
    path = f"/apis/scheduling.kubenexus.io/v1alpha1/namespaces/{namespace}/resourcereservations"
    return {each["metadata"]["name"]: each for each in cluster.api().must("GET", path)["items"]}


def rival(replicas: int) -> dict[str, Any]:
    deployment = a_deployment("rival", replicas, scheduler=NAME, nodeSelector=SORT, terminationGracePeriodSeconds=0)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": "1"}}
    return deployment


def count(cluster: Cluster, namespace: str, prefix: str) -> int:
    return sum(name.startswith(prefix) for name in bound(cluster, namespace))


def wait_for(
    cluster: Cluster, namespace: str, prefix: str, number: int, program: Stowplan, seconds: float = 120
) -> None:
    what = f"{number} of {prefix} are bound"
    until(what, lambda: count(cluster, namespace, prefix) == number, seconds, program.explain)


def end(cluster: Cluster, namespace: str, app: str) -> None:
    """Five seconds after the driver is deleted nothing is left of its reservation."""
    path = f"/api/v1/namespaces/{namespace}/pods/{app}-driver?gracePeriodSeconds=0"
    cluster.api().must("DELETE", path)
    until(f"{app} keeps nothing", lambda: app not in reservations(cluster, namespace), 5)


@contextmanager
def spark_in(cluster: Cluster, namespace: str) -> Iterator[Spark]:
    with Spark(cluster, namespace) as spark:
        yield spark
    check_nothing_over_committed(cluster)


def test_executors_always_find_their_slots(cluster: Cluster, namespace: str, room: None, starter: Starter) -> None:
    """1 + 4 of eight cores; the rival has three and wants twelve from the moment that the driver comes."""
    program = starter.start()
    with spark_in(cluster, namespace):
        for number in range(4):
            app = f"app-{number}"
            apply(cluster, namespace, rival(3))
            wait_for(cluster, namespace, "rival", 3, program)
            apply(cluster, namespace, a_driver(app, NAME, 4, nodeSelector=SORT), rival(12))
            wait_for(cluster, namespace, app, 5, program)
            slots = reservations(cluster, namespace)[app]["spec"]["reservations"]
            where = bound(cluster, namespace)
            assert sorted(slot["node"] for slot in slots.values()) == sorted(
                node for name, node in where.items() if name.startswith(app)
            ), "each in a place of its own"
            assert count(cluster, namespace, "rival") == 3
            until("the object says who has which place", lambda app=app: taken(cluster, namespace, app) == 5, 60)  # type: ignore[misc]
            end(cluster, namespace, app)
            wait_for(cluster, namespace, app, 0, program)
            wait_for(cluster, namespace, "rival", 8, program)


def taken(cluster: Cluster, namespace: str, app: str) -> int:
    status = reservations(cluster, namespace)[app].get("status", {})
    assert len(status.get("pods", {})) == status.get("taken", 0)
    return int(status.get("taken", 0))


def message(cluster: Cluster, namespace: str, name: str) -> str:
    return str(condition(cluster, namespace, name).get("message", ""))


def test_dynamic_allocation(cluster: Cluster, namespace: str, room: None, starter: Starter) -> None:
    """At least one, at most three: the fourth is told why not, and takes the place of one that dies."""
    program = starter.start()
    with spark_in(cluster, namespace) as spark:
        apply(cluster, namespace, a_driver("app", NAME, 1, 3, nodeSelector=SORT))
        wait_for(cluster, namespace, "app", 2, program)
        (driver,) = (each for each in pods(cluster, namespace) if each["metadata"]["name"] == "app-driver")
        for number in (1, 2, 3):
            spark.create(an_executor(driver, number))
            if number < 3:
                wait_for(cluster, namespace, "app", number + 2, program)
        until("the fourth is told", lambda: NO_SPOTS in message(cluster, namespace, "app-exec-3"), 60, program.explain)
        assert count(cluster, namespace, "app") == 4
        cluster.api().must("DELETE", f"/api/v1/namespaces/{namespace}/pods/app-exec-1?gracePeriodSeconds=0")
        until("it has a node", lambda: "app-exec-3" in bound(cluster, namespace), 60, program.explain)

        def line() -> str:
            return cluster.kubectl("get", "rr", "app", "--namespace", namespace, "--no-headers")

        def up_to_date() -> bool:
            return taken(cluster, namespace, "app") == 2 and line().split()[:4] == ["app", "2", "2", "True"]

        until("the object is up to date", up_to_date, 60, line)
        end(cluster, namespace, "app")


def test_killed_while_executors_are_still_to_come(
    cluster: Cluster, namespace: str, room: None, starter: Starter
) -> None:
    """The driver has its node, the scheduler dies, the rival comes, another scheduler starts."""
    first = starter.start()
    apply(cluster, namespace, a_driver("app", NAME, 4, nodeSelector=SORT))
    wait_for(cluster, namespace, "app", 1, first)
    before = reservations(cluster, namespace)["app"]["spec"]
    first.kill()
    apply(cluster, namespace, rival(8))
    until("the rival is there", lambda: len(pods(cluster, namespace)) == 9)
    second = starter.start()
    wait_for(cluster, namespace, "rival", 3, second)
    with spark_in(cluster, namespace):
        wait_for(cluster, namespace, "app", 5, second)
    assert reservations(cluster, namespace)["app"]["spec"] == before
    second.kill()
    cluster.api().must("DELETE", f"/api/v1/namespaces/{namespace}/pods/app-driver?gracePeriodSeconds=0")
    third = starter.start()
    wait_for(cluster, namespace, "rival", 8, third)
    until("nothing is kept", lambda: not reservations(cluster, namespace), 60)


def test_a_hand_written_reservation(cluster: Cluster, namespace: str, room: None, starter: Starter) -> None:
    program = starter.start()
    slots = {name: {"node": "spark-0", "resources": {"cpu": "2"}} for name in ("one", "two")}
    kept = {
        "apiVersion": "scheduling.kubenexus.io/v1alpha1",
        "kind": "ResourceReservation",
        "metadata": {"name": "kept"},
        "spec": {"reservations": slots},
    }
    apply(cluster, namespace, kept)
    until("it is in force", lambda: active(cluster, namespace) == "True", 60, program.explain)
    apply(cluster, namespace, rival(8))
    wait_for(cluster, namespace, "rival", 4, program)
    mine = a_live_pod("mine", scheduler=NAME, cpu="2", nodeSelector=SORT)
    mine["metadata"]["annotations"] = {"scheduling.kubenexus.io/reservation": "kept"}
    apply(cluster, namespace, mine)
    until("it has its place", lambda: bound(cluster, namespace).get("mine") == "spark-0", 60, program.explain)
    cluster.kubectl("delete", "rr", "kept", "--namespace", namespace)
    wait_for(cluster, namespace, "rival", 6, program)
    check_nothing_over_committed(cluster)


def active(cluster: Cluster, namespace: str) -> str:
    conditions = reservations(cluster, namespace)["kept"].get("status", {}).get("conditions", ())
    return next((each["status"] for each in conditions if each["type"] == "ReservationActive"), "")
