"""The examples, as their pages run them, in the embedded cluster and on a real control plane."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from stowplan.plugins.nodes.sp_priority.plugin import STATE
from tests.controlplane.cluster import Cluster
from tests.controlplane.deployed import DEPLOY
from tests.controlplane.flavours import landed
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until
from tests.controlplane.stowplan_process import (
    Stowplan,
    a_live_pod,
    apply,
    noted,
    pods,
    stowplan,
    wait_until_bound,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
FLAVOURS = ("gold", "silver", "bronze")
ZONE = "topology.kubernetes.io/zone"
TEAMS = ("team-a", "team-b", "team-c")


@contextmanager
def at_work(cluster: Cluster, example: str) -> Iterator[Stowplan]:
    """The example's configuration in force."""
    folder = EXAMPLES / example
    flags = ("--config", str(folder / "config.yaml"), "--plugin-path", str(folder))
    with stowplan(cluster, f"example-{Path(example).name}", *flags) as program:
        program.wait_until_leading()
        yield program


def workloads(example: str) -> str:
    return str(EXAMPLES / example / "workloads.yaml")


def test_the_first_plugin(cluster: Cluster, namespace: str) -> None:
    with cluster.nodes(3, prefix="flavoured"), at_work(cluster, "01-first-plugin") as program:
        for number in range(9):
            pod = a_live_pod(f"p{number}", scheduler="flavoured")
            pod["metadata"]["labels"] = {"flavour": FLAVOURS[number % 3]}
            apply(cluster, namespace, pod)
        wait_until_bound(cluster, namespace, 9, explain=program.explain)
        landed = Counter(
            (pod["spec"]["nodeName"], pod["metadata"]["labels"]["flavour"]) for pod in pods(cluster, namespace)
        )
    assert set(landed.values()) == {1} and len(landed) == 9


# -- flavours


def test_flavours_of_three_teams_are_spread_over_all_of_them_together(cluster: Cluster) -> None:
    example = "policies/flavour-cluster-wide"
    with cluster.nodes(3, prefix="node") as nodes, at_work(cluster, example) as program, teams(cluster, example):
        until("six pods are bound", lambda: landed(cluster).total() == 6, 120, program.explain)
        assert landed(cluster) == {("gold", node): 2 for node in nodes}


@contextmanager
def teams(cluster: Cluster, example: str) -> Iterator[None]:
    """The example's namespaces and what is in them; gone afterwards."""
    api = cluster.api()
    cluster.kubectl("apply", "--filename", workloads(example))
    try:
        yield
    finally:
        cluster.kubectl("delete", "--wait=false", "--ignore-not-found", "--filename", workloads(example))
        for team in TEAMS:
            api.ask("DELETE", f"/api/v1/namespaces/{team}/pods?gracePeriodSeconds=0")
        for team in TEAMS:
            until(f"{team} is gone", lambda team=team: api.get(f"/api/v1/namespaces/{team}").status == 404, 180)  # type: ignore[misc]


# -- a pod that moves


def test_a_pod_that_is_deleted_comes_back_elsewhere(cluster: Cluster, namespace: str) -> None:
    example, nodes, seen = "policies/sp-priority", list[str](), set[str]()

    def next_node() -> str:
        for pod in pods(cluster, namespace):
            if pod["metadata"]["uid"] not in seen and pod["spec"].get("nodeName"):
                seen.add(pod["metadata"]["uid"])
                return str(pod["spec"]["nodeName"])
        return ""

    with cluster.nodes(3, prefix="node"), at_work(cluster, example) as program:
        cluster.kubectl("apply", "--namespace", namespace, "--filename", workloads(example))
        nodes.append(until("it is bound", next_node, 120, program.explain))
        for _ in range(4):
            cluster.kubectl("delete", "pods", "--selector=app=nomad", "--now", "--namespace", namespace)
            nodes.append(until("it is bound again", next_node, 120, program.explain))
        assert all(one != another for one, another in pairwise(nodes)), nodes
        until(
            "each is counted",
            lambda: history(cluster, namespace).get("node_count") == Counter(nodes),
            60,
            lambda: str(nodes),
        )


def history(cluster: Cluster, namespace: str) -> dict[str, Any]:
    said = f"jsonpath={{.items[*].metadata.annotations.{STATE.replace('.', chr(92) + '.')}}}"
    text = cluster.kubectl("get", "replicasets", "--selector=app=nomad", "--namespace", namespace, "--output", said)
    found: dict[str, Any] = json.loads(text or "{}")
    return found


# -- so many here, so many there


def test_a_policy_is_filled_and_then_made_a_wish(cluster: Cluster, namespace: str) -> None:
    example, where = "policies/workload-policy", ("--namespace", namespace)
    with ExitStack() as stack:
        if isinstance(cluster, ControlPlane):
            stack.enter_context(defined(cluster))
        for zone in ("zone-a", "zone-b"):
            stack.enter_context(cluster.nodes(3, prefix=zone, labels={ZONE: zone}))
        program = stack.enter_context(at_work(cluster, example))
        cluster.kubectl("apply", *where, "--filename", workloads(example))
        until(
            "four of six are bound",
            lambda: in_zones(cluster, namespace) == {"zone-a": 1, "zone-b": 3, "": 2},
            120,
            program.explain,
        )
        cluster.kubectl("wait", "--for=condition=Satisfied", "--timeout=120s", "workloadpolicy/web", *where)
        told = ["Required", "4", "4", "2", "True"]  # desired, current, pending, satisfied
        until("it says so", lambda: cluster.kubectl("get", "workloadpolicies", *where).split()[-6:-1] == told, 60)
        cluster.kubectl(
            "patch", "workloadpolicy", "web", "--type=merge", '-p={"spec": {"allocationType": "Preferred"}}', *where
        )
        wait_until_bound(cluster, namespace, 6, 120, program.explain)
        assert in_zones(cluster, namespace) == {"zone-a": 2, "zone-b": 4}, "one too many each: both were just full"


def in_zones(cluster: Cluster, namespace: str) -> Counter[str]:
    return Counter(pod["spec"].get("nodeName", "").rpartition("-")[0] for pod in pods(cluster, namespace))


@contextmanager
def defined(cluster: Cluster) -> Iterator[None]:
    """The kind of the policies; gone afterwards, with all of them."""
    cluster.kubectl("apply", "--kustomize", str(DEPLOY / "crds"))
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=120s", "crd/workloadpolicies.kosmos.io")
    yield
    cluster.kubectl("delete", "--kustomize", str(DEPLOY / "crds"))


# -- gangs


@contextmanager
def groups_defined(cluster: Cluster) -> Iterator[None]:
    """The kinds of groups and reservations; gone afterwards, with all of them."""
    if not isinstance(cluster, ControlPlane):
        yield  # it has them
        return
    folder = str(DEPLOY / "crds" / "kubenexus")
    cluster.kubectl("apply", "--kustomize", folder)
    for name in ("podgroups.scheduling.x-k8s.io", "resourcereservations.scheduling.kubenexus.io"):
        cluster.kubectl("wait", "--for=condition=Established", "--timeout=120s", f"crd/{name}")
    yield
    cluster.kubectl("delete", "--kustomize", folder)


def nodes_of(cluster: Cluster, namespace: str) -> Counter[str]:
    """How many pods each node has; "" for those without one."""
    return Counter(pod["spec"].get("nodeName", "") for pod in pods(cluster, namespace))


ROOM = {"cpu": "4", "memory": "16Gi"}


def test_a_spark_application_has_room_for_its_executors(cluster: Cluster, namespace: str) -> None:
    example, where = "policies/spark-application", ("--namespace", namespace)
    with (
        groups_defined(cluster),
        cluster.nodes(2, prefix="spark", capacity=ROOM),
        at_work(cluster, example) as program,
    ):
        cluster.kubectl("apply", *where, "--filename", workloads(example))
        wait_until_bound(cluster, namespace, 1, explain=program.explain)
        shown = ("get", "resourcereservations", "pi", "--output=jsonpath={.status.reserved} {.status.taken}")
        until("five places, one taken", lambda: cluster.kubectl(*shown, *where) == "5 1", 60, program.explain)
        cluster.kubectl("apply", *where, "--filename", str(EXAMPLES / example / "executors.yaml"))
        wait_until_bound(cluster, namespace, 5, explain=program.explain)
        until("all places are taken", lambda: cluster.kubectl(*shown, *where) == "5 5", 60, program.explain)


def test_an_mpi_gang_gets_nodes_together_or_not_at_all(cluster: Cluster, namespace: str) -> None:
    example, where = "policies/mpi-gang", ("--namespace", namespace)
    with (
        groups_defined(cluster),
        cluster.nodes(1, prefix="small", capacity=ROOM),
        at_work(cluster, example) as program,
    ):
        cluster.kubectl("apply", *where, "--filename", workloads(example))

        def told() -> list[list[str]]:
            return [noted(cluster, namespace, pod["metadata"]["name"]) for pod in pods(cluster, namespace)]

        until("all are told", lambda: len(told()) == 5 and all(told()), 60, program.explain)
        assert nodes_of(cluster, namespace) == {"": 5}
        with cluster.nodes(2, prefix="more", capacity=ROOM):
            wait_until_bound(cluster, namespace, 5, explain=program.explain)


def test_a_pytorch_job_is_packed_on_one_node(cluster: Cluster, namespace: str) -> None:
    example, where = "policies/pytorch-job", ("--namespace", namespace)
    with (
        groups_defined(cluster),
        cluster.nodes(3, prefix="train", capacity={"cpu": "8", "memory": "16Gi"}),
        at_work(cluster, example) as program,
    ):
        cluster.kubectl("apply", *where, "--filename", workloads(example))
        wait_until_bound(cluster, namespace, 4, explain=program.explain)
        assert len(nodes_of(cluster, namespace)) == 1
        phase = ("get", "podgroups.scheduling.x-k8s.io", "resnet", "--output=jsonpath={.status.phase}", *where)
        told = "Finished" if isinstance(cluster, ControlPlane) else "Running"  # kwok ends the pods of Jobs at once
        until(f"it says {told}", lambda: cluster.kubectl(*phase) == told, 60, program.explain)
