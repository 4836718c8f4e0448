"""Ratios of WorkloadPolicies on a real control plane: the real ReplicaSet controller scales down, the real eviction API
keeps budgets, and the scheduler, with the rights of `keep-ratios` alone and with leader election, is killed meanwhile.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane import flags
from tests.controlplane.api import Api
from tests.controlplane.cluster import Cluster
from tests.controlplane.deployed import DEPLOY, check_no_limit_met, flags_for, holder
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program, until
from tests.controlplane.stowplan_process import a_deployment, apply, pods

PROFILE, CRDS = DEPLOY / "profiles" / "kosmos-scheduler", DEPLOY / "crds"
SEED = Path(__file__).parents[1] / "seeds" / "workload_policy"
COST = "controller.kubernetes.io/pod-deletion-cost"
KEY = "example.io/cluster"
QUICK = {"leaseDuration": "3s", "renewDeadline": "2s", "retryPeriod": "500ms"}  # so that a killed one is followed soon

pytestmark = pytest.mark.controlplane


class Starter:
    """The scheduler as `deploy/` has it with `keep-ratios`, and one eviction a second; `kill` starts it again."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.plane, self._folder = plane, folder
        config = yaml.safe_load((PROFILE / "keep-ratios" / "config.yaml").read_text())
        config["leaderElection"] |= QUICK
        config["profiles"][0]["pluginConfig"][0]["args"]["evictionsPerMinute"] = 60
        self._port = flags.free_port()
        command = ["-m", "stowplan.apps.cli", "run", *flags_for(plane, folder, config, self._port)]
        self._command, self.log = command, folder / "stowplan.log"
        self.program = self._started()

    def _started(self) -> Program:
        return Program(Path(sys.executable), self._command, self.log)

    def kill(self) -> None:
        """With -9: whatever it was doing, it is not finished."""
        self.program.kill()
        self.program = self._started()

    def page(self, path: str) -> str:
        answer = Api(f"https://{flags.LOOPBACK}:{self._port}", token=self.plane.tokens["admin"]).get(path)
        return answer.body.decode()

    def metric(self, name: str, **labels: str) -> float | None:
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        lines = [line for line in self.page("/metrics").splitlines() if line.startswith(f"{name}{{")]
        found = [float(line.rsplit(" ", 1)[1]) for line in lines if all(each in line for each in wanted)]
        return found[0] if found else None


@pytest.fixture(scope="module")
def scheduler(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Starter]:
    with ExitStack() as stack:
        for file in (PROFILE / "rbac.yaml", PROFILE / "keep-ratios" / "rbac.yaml"):
            stack.enter_context(granted(plane, file))
        plane.kubectl("apply", "--kustomize", str(CRDS))
        stack.callback(lambda: plane.kubectl("delete", "--kustomize", str(CRDS)))
        plane.kubectl("wait", "--for=condition=Established", "--timeout=120s", "crd/workloadpolicies.kosmos.io")
        found = Starter(plane, tmp_path_factory.mktemp("ratios"))
        try:
            yield found
            found.program.check()
            assert holder(plane), "it led"
        finally:
            found.program.stop(grace=60)
        check_no_limit_met(found.log)


@contextmanager
def granted(plane: Cluster, file: Path) -> Iterator[None]:
    plane.kubectl("apply", "--filename", str(file))
    yield
    plane.kubectl("delete", "--filename", str(file))


@pytest.fixture
def place(plane: ControlPlane, scheduler: Starter) -> Iterator[Starter]:
    """Two nodes of the domain `member`, three of `host`."""
    member, host = ({KEY: value, "workload-test": value} for value in ("member", "host"))
    with plane.nodes(2, prefix="member", labels=member), plane.nodes(3, prefix="host", labels=host):
        yield scheduler


def a_policy(member: int | str, host: int | str, **spec: Any) -> dict[str, Any]:
    listed = [{"name": "member", "replicas": member}, {"name": "host", "replicas": host}]
    given = {"topologyKey": KEY, "labelSelector": {"matchLabels": {"app": "web"}}, "allocationPolicy": listed, **spec}
    return {"apiVersion": "kosmos.io/v1alpha1", "kind": "WorkloadPolicy", "metadata": {"name": "web"}, "spec": given}


def a_workload(replicas: int) -> dict[str, Any]:
    document = a_deployment("web", replicas, scheduler="kosmos-scheduler", terminationGracePeriodSeconds=0)
    document["spec"]["template"]["metadata"]["labels"]["workload-policy/kosmos.io"] = "web"
    return document


def where(cluster: Cluster, namespace: str) -> Counter[str]:
    """Pods that run and are not about to go, by domain."""
    found = [pod for pod in pods(cluster, namespace) if "deletionTimestamp" not in pod["metadata"]]
    running = [pod for pod in found if pod["status"].get("phase") == "Running"]
    return Counter(pod["spec"]["nodeName"].rpartition("-")[0] for pod in running)


def until_there(place: Starter, namespace: str, seconds: float = 120, **expected: int) -> None:
    """They run there, no others exist, and each has a cost."""

    def as_expected() -> bool:
        found = pods(place.plane, namespace)
        costs = [pod for pod in found if COST in pod["metadata"].get("annotations", {})]
        return where(place.plane, namespace) == expected and len(found) == len(costs) == sum(expected.values())

    def explain() -> str:
        return f"{where(place.plane, namespace)}\n{place.program.tail(30)}"

    until(f"{expected} run, with costs", as_expected, seconds, explain)


def scale(place: Starter, namespace: str, replicas: int, name: str = "web") -> None:
    place.plane.kubectl("-n", namespace, "scale", f"deployment/{name}", f"--replicas={replicas}")


def test_scaling_down_keeps_the_ratio(place: Starter, namespace: str) -> None:
    """From 16 to 8 replicas of 3:5, and further; the scheduler is killed before it has written all costs."""
    apply(place.plane, namespace, a_policy(3, 5), a_workload(16))
    until("some run", lambda: where(place.plane, namespace).total() > 4, 120, place.program.tail)
    place.kill()
    until_there(place, namespace, member=6, host=10)
    scale(place, namespace, 8)
    until_there(place, namespace, member=3, host=5)
    scale(place, namespace, 4)
    until_there(place, namespace, member=1, host=3)


def test_percentages_hold_at_every_size(place: Starter, namespace: str) -> None:
    """As an autoscaler has it, up and down. The metrics have the numbers of now."""
    apply(place.plane, namespace, a_policy("37.5%", "62.5%", allocationType="Required"), a_workload(8))
    for size, member, host in ((8, 3, 5), (16, 6, 10), (24, 9, 15), (8, 3, 5)):
        scale(place, namespace, size)
        until_there(place, namespace, member=member, host=host)
    for name in ("stowplan_workload_policy_desired_pods", "stowplan_workload_policy_pods"):
        for domain, number in (("member", 3), ("host", 5)):
            labels = {"namespace": namespace, "policy": "web", "domain": domain}
            until(f"{name} {domain}", lambda n=name, v=number, at=labels: place.metric(n, **at) == v, 60)  # type: ignore[misc]


def test_an_edit_moves_pods_within_their_budget(place: Starter, namespace: str) -> None:
    """From 3:5 to 5:3, with one disruption at a time, while the scheduler is killed; not one pod more than needed."""
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1},
    }  # fmt: skip
    apply(place.plane, namespace, a_policy(3, 5, rebalance="Evict"), a_workload(8), budget)
    until_there(place, namespace, member=3, host=5)
    before = names(place, namespace)
    apply(place.plane, namespace, a_policy(5, 3, rebalance="Evict"))
    until("a pod is evicted", lambda: names(place, namespace) != before, 60, place.program.tail)
    place.kill()
    until_there(place, namespace, member=5, host=3)
    assert len(before - names(place, namespace)) == 2
    notes = [each["note"] for each in events(place, namespace) if each["reason"] == "Rebalanced"]
    assert all("WorkloadPolicy web: member" in note for note in notes)


def test_a_budget_that_allows_nothing_is_kept(place: Starter, namespace: str) -> None:
    """Until it allows one."""
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 0},
    }  # fmt: skip
    apply(place.plane, namespace, a_policy(1, 3, rebalance="Evict"), a_workload(4), budget)
    until_there(place, namespace, member=1, host=3)
    before = names(place, namespace)
    apply(place.plane, namespace, a_policy(3, 1, rebalance="Evict"))
    until(
        "it asked", lambda: "disruption budget" in place.log.read_text(errors="replace") or told(place, namespace), 60
    )
    assert names(place, namespace) == before
    change = json.dumps({"spec": {"maxUnavailable": 1}})
    place.plane.kubectl("-n", namespace, "patch", "pdb/web", "--type=merge", "--patch", change)
    until_there(place, namespace, member=3, host=1)


def told(place: Starter, namespace: str) -> bool:
    """The policy's new numbers are in its status: the scheduler has seen the edit."""
    path = f"/apis/kosmos.io/v1alpha1/namespaces/{namespace}/workloadpolicies/web"
    found = place.plane.api().must("GET", path)
    return bool(found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"])


def names(place: Starter, namespace: str) -> set[str]:
    return {pod["metadata"]["name"] for pod in pods(place.plane, namespace)}


def events(place: Starter, namespace: str) -> list[Any]:
    found: list[Any] = place.plane.api().must("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")["items"]
    return found


def test_the_seeds_own_files_as_they_stand(place: Starter) -> None:
    """One place in the member cluster, three in the host: four of six run. Scaled down, the last places go first."""
    plane = place.plane
    plane.kubectl("create", "namespace", "workload-test")
    try:
        plane.kubectl("create", "serviceaccount", "clusterlink-floater", "--namespace", "workload-test")
        for file in ("workloadpolicy.yaml", "example-clusterlink-floater-deployment-mix.yaml"):
            plane.kubectl("apply", "--filename", str(SEED / file))
        expected = {"member": 1, "host": 3}
        until("four run", lambda: where(plane, "workload-test") == expected, 90, place.program.tail)
        until("six are there", lambda: len(pods(plane, "workload-test")) == 6, 60)
        until("they have costs", lambda: sorted(costs(plane)) == [-4, -3, -2, -1], 60, lambda: str(costs(plane)))
        scale(place, "workload-test", 2, "clusterlink-floater-mix")
        until("two are left", lambda: where(plane, "workload-test") == {"host": 2}, 90, place.program.tail)
    finally:
        plane.api().must("DELETE", "/api/v1/namespaces/workload-test")
        plane.api().must("DELETE", "/api/v1/namespaces/workload-test/pods?gracePeriodSeconds=0")
        gone = "/api/v1/namespaces/workload-test"
        until("the namespace is gone", lambda: plane.api().get(gone).status == 404, 180)


def costs(plane: Cluster) -> list[int]:
    found = [pod["metadata"].get("annotations", {}).get(COST) for pod in pods(plane, "workload-test")]
    return [int(each) for each in found if each is not None]
