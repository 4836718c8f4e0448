"""What `what-if --drain` foretells is what happens: on a real control plane, with kube-scheduler and `kubectl drain`.

kube-scheduler draws among equally good nodes, and kubectl evicts all pods of a node at the same time. So there may be
more than one outcome: what happens must be one that some seed foretells. Where all seeds agree there is only that one.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from stowplan.apps.dump.command import DumpOptions
from stowplan.apps.dump.command import run as write_dump
from stowplan.apps.what_if.command import WhatIfOptions, answered
from stowplan.simulation.pod_effects import WorkloadRef
from tests.controlplane.cluster import KubectlError
from tests.controlplane.drained_workloads import drawn
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import until

pytestmark = pytest.mark.controlplane
NODES = 6
FIRST, MORE = 6, 60  # seeds: those that show whether an outcome is certain, and those that look for what happened
PATIENCE = 180.0  # seconds
BACKOFF = 11.0  # seconds; kube-scheduler tries a pod again after 10 at most
TIMEOUT = "12s"  # of a drain that budgets block; kubectl tries again after 5
DRAINS_OF_A_DRAW = 5


class Outcome(NamedTuple):
    """What a drain did, without the nodes: these may be drawn.

    left      the pods that left the node, by name, without those that have a budget: which of them may go is open
    counts    by workload: how many pods left, how many more wait than before, how many stay because of a budget
    """

    left: frozenset[str]
    counts: frozenset[tuple[str, int, int, int]]


class Story(NamedTuple):
    """An outcome, and on which nodes the pods of each workload are that were made for it."""

    outcome: Outcome
    nodes: dict[str, tuple[str, ...]]


class Namespace:
    """The workloads of a draw in a namespace of the plane."""

    def __init__(self, plane: ControlPlane, name: str, seed: int, folder: Path) -> None:
        self.plane, self.name, self._folder = plane, name, folder
        self._objects = drawn(seed)
        text = "\n---\n".join(json.dumps(each) for each in self._objects)
        plane.kubectl("-n", name, "apply", "--filename=-", input=text)
        self._protected = {each["metadata"]["name"] for each in self._objects if each["kind"] == "PodDisruptionBudget"}

    def pods(self) -> dict[str, dict[str, Any]]:
        found = self.plane.api().must("GET", f"/api/v1/namespaces/{self.name}/pods")["items"]
        return {each["metadata"]["uid"]: each for each in found}

    def settled(self, without: int = 0) -> dict[str, dict[str, Any]]:
        """Return the pods when nothing moves any more. `without`: how many bare pods are gone."""
        wanted = sum(each["spec"]["replicas"] for each in self._objects if "replicas" in each.get("spec", {}))
        wanted += NODES + 1 - without
        seen: tuple[float, object, dict[str, dict[str, Any]]] = (0.0, None, {})

        def rests() -> bool:
            nonlocal seen
            found = self.pods()
            state = {uid: (each["spec"].get("nodeName"), _phase(each)) for uid, each in found.items()}
            if state != seen[1]:
                seen = (time.monotonic(), state, found)
            whole = len(found) == wanted and all(map(_is_at_rest, found.values()))
            waits = any(not each["spec"].get("nodeName") for each in found.values())
            return whole and self._budgets_agree() and time.monotonic() - seen[0] > (BACKOFF if waits else 0)

        until("the workloads rest", rests, PATIENCE, lambda: json.dumps([_told(each) for each in seen[2].values()]))
        return seen[2]

    def _budgets_agree(self) -> bool:
        """True if the status of each budget is about the pods as they are."""
        path = f"/apis/policy/v1/namespaces/{self.name}/poddisruptionbudgets"
        pods = [each for each in self.pods().values() if _is_ready(each)]
        for budget in self.plane.api().must("GET", path)["items"]:
            healthy = sum(each["metadata"]["labels"].get("app") == budget["metadata"]["name"] for each in pods)
            status = budget.get("status", {})
            if status.get("currentHealthy") != healthy or status.get("disruptedPods"):
                return False
        return True

    def drained(self, node: str, without: int) -> dict[str, dict[str, Any]]:
        """Drain a node until nothing more can be evicted. Return the pods."""
        arguments = ("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force")
        while True:
            before = self.pods().keys()
            try:
                self.plane.kubectl(*arguments, f"--timeout={TIMEOUT}")
                return self.settled(without)
            except KubectlError:  # a budget does not let go, or not so soon
                after = self.settled(without)
                if after.keys() == before:
                    return after

    def foretold(self, node: str, seeds: range, dump: Path) -> Iterator[Story]:
        for seed in seeds:
            yield self._story(answered(WhatIfOptions(drained=(node,), files=(dump,), seed=seed)), node)

    def _story(self, answer: Any, node: str) -> Story:
        effects, counts = answer.effects, Counter[tuple[str, str]]()
        nodes: dict[str, list[str]] = {}
        left = set[str]()
        for each in (*effects.moved, *effects.replaced.values()):
            assert each.before.node_name == node, "only pods of the drained node move"
            name = _name(each.workload)
            left.add(each.before.name)
            counts[name, "left"] += 1
            counts[name, "waits"] += each.to is None
            nodes.setdefault(name, []).append(each.to or "")
        for gone in effects.gone:
            left.add(gone.pod.name)
            counts[_name(gone.workload), "left"] += 1
        for pod in effects.started:  # it waited before, and came first where there is room now
            name = self._app_of(pod.name)
            counts[name, "waits"] -= 1
            nodes.setdefault(name, []).append(pod.node_name)
        for each in answer.blocked:
            counts[self._app_of(each.pod), "stays"] += 1
        return Story(self._outcome(left, counts), {name: tuple(sorted(found)) for name, found in nodes.items()})

    def _outcome(self, left: set[str], counts: Counter[tuple[str, str]]) -> Outcome:
        names = {name for name, _ in counts}
        rows = {(name, counts[name, "left"], counts[name, "waits"], counts[name, "stays"]) for name in names}
        free = {each for each in left if self._app_of(each) not in self._protected}
        return Outcome(frozenset(free), frozenset(row for row in rows if any(row[1:])))

    def _app_of(self, pod: str) -> str:
        """The workload of a pod, by its name."""
        name = pod.rpartition("/")[2]
        return next((each for each in self._names if name.startswith(f"{each}-")), name)

    @property
    def _names(self) -> list[str]:
        return [each["metadata"]["name"] for each in self._objects if each["kind"] in ("Deployment", "StatefulSet")]

    def happened(self, node: str, before: dict[str, Any], after: dict[str, Any]) -> Story:
        counts, nodes, left = Counter[tuple[str, str]](), dict[str, list[str]](), set[str]()
        for uid in before.keys() - after.keys():
            pod = before[uid]
            assert pod["spec"].get("nodeName") == node
            left.add(pod["metadata"]["name"])
            counts[self._app_of(pod["metadata"]["name"]), "left"] += 1
        for uid in after.keys() - before.keys():
            pod = after[uid]
            name = self._app_of(pod["metadata"]["name"])
            counts[name, "waits"] += not pod["spec"].get("nodeName")
            nodes.setdefault(name, []).append(pod["spec"].get("nodeName", ""))
        for uid in before.keys() & after.keys():
            if not before[uid]["spec"].get("nodeName") and (late := after[uid]["spec"].get("nodeName")):
                name = self._app_of(after[uid]["metadata"]["name"])
                counts[name, "waits"] -= 1
                nodes.setdefault(name, []).append(late)
        for pod in after.values():
            owners = pod["metadata"].get("ownerReferences", ())
            if pod["spec"].get("nodeName") == node and not any(each["kind"] == "DaemonSet" for each in owners):
                counts[self._app_of(pod["metadata"]["name"]), "stays"] += 1
        return Story(self._outcome(left, counts), {name: tuple(sorted(found)) for name, found in nodes.items()})


def _name(workload: WorkloadRef) -> str:
    return workload.key.rpartition("/")[2]


def _phase(pod: dict[str, Any]) -> str:
    return "" if "deletionTimestamp" in pod["metadata"] else str(pod["status"].get("phase"))


def _is_at_rest(pod: dict[str, Any]) -> bool:
    if _phase(pod) == "Running":  # ready or not: a node whose lease comes late on a busy machine makes its pods unready
        return True
    conditions = pod["status"].get("conditions", ())
    return _phase(pod) == "Pending" and any(each.get("reason") == "Unschedulable" for each in conditions)


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", ())
    return _phase(pod) == "Running" and any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _told(pod: dict[str, Any]) -> list[Any]:
    return [pod["metadata"]["name"], pod["spec"].get("nodeName"), _phase(pod), pod["status"].get("conditions")]


def drains(plane: ControlPlane, number: int, folder: Path) -> tuple[int, int, int]:
    """Foretell and do so many drains. Return how many had one outcome only, and how many pods moved, and waited."""
    certain = moved = waited = 0
    draw = random.Random("which nodes")
    with plane.nodes(NODES, prefix="drained", capacity={"cpu": "4"}) as nodes, plane.start_kube_scheduler():
        for start in range(0, number, DRAINS_OF_A_DRAW):
            with plane.namespace("drained") as name:
                workloads, gone = Namespace(plane, name, start, folder), 0
                for _ in range(min(DRAINS_OF_A_DRAW, number - start)):
                    before = workloads.settled(gone)
                    node, dump = draw.choice(nodes), folder / "dump.json"
                    assert write_dump(DumpOptions(output=dump, kubeconfig=str(plane.kubeconfig()))) == 0
                    first = list(workloads.foretold(node, range(FIRST), dump))
                    gone += any(_is_bare(each) and each["spec"].get("nodeName") == node for each in before.values())
                    after = workloads.drained(node, gone)
                    found = workloads.happened(node, before, after)
                    certain += len({each.outcome for each in first}) == 1
                    moved += sum(row[1] - row[2] for row in found.outcome.counts)
                    waited += sum(row[2] for row in found.outcome.counts)
                    _check(found, first, lambda: workloads.foretold(node, range(FIRST, MORE), dump))  # noqa: B023
                    plane.kubectl("uncordon", node)
    return certain, moved, waited


def _check(found: Story, first: list[Story], more: Any) -> None:
    """What happened was foretold: the counts by a seed, and the nodes of a workload where all seeds agree."""
    likely = [each for each in first if each.outcome == found.outcome]
    likely = likely or [each for each in more() if each.outcome == found.outcome]
    assert likely, (found, first)
    for name, nodes in found.nodes.items():
        if len({each.nodes.get(name) for each in first}) == 1 and likely[0].nodes.get(name) != nodes:
            assert any(each.nodes.get(name) == nodes for each in more()), (name, found, first)


def _is_bare(pod: dict[str, Any]) -> bool:
    return bool(pod["metadata"]["name"] == "bare")


def test_three_drains_end_as_foretold(plane: ControlPlane, tmp_path: Path) -> None:
    certain, moved, _ = drains(plane, 3, tmp_path)
    assert certain and moved


@pytest.mark.full
def test_50_drains_end_as_foretold(plane: ControlPlane, tmp_path: Path) -> None:
    certain, moved, waited = drains(plane, 50, tmp_path)
    assert certain > 25 and moved > 50 and waited > 5
