"""`stowplan shadow` beside the real kube-scheduler: no difference but ties and races, and each race has its reason.

kube-scheduler schedules pods of mixed kinds, thousands of them with bindings side by side. Shadow has the rights of
deploy/shadow.yaml, and no others. The control: by another configuration most decisions differ.
"""

from __future__ import annotations

import json
import random
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane import mixed_pods
from tests.controlplane.flags import free_port
from tests.controlplane.plane import ControlPlane
from tests.controlplane.process import Program, until
from tests.controlplane.stowplan_process import PYTHON

pytestmark = pytest.mark.controlplane
RIGHTS = Path(__file__).parents[2] / "deploy" / "shadow.yaml"
FAST = {"clientConnection": {"qps": 5000, "burst": 5000}}  # many bindings at once
WRITERS, DELETE_EVERY = 4, 0.5  # threads, and seconds
WINDOW = "5s"  # a busy machine is slow between a decision and its binding
PACKED = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}]}
    ],
}


class ShadowProcess(Program):
    """`stowplan shadow`, which writes every judgement but ties to `file`."""

    def __init__(self, kubeconfig: Path, folder: Path, *arguments: str) -> None:
        self.evictions = 0  # of pods that it watched
        self.file, self.port = folder / "shadow.jsonl", free_port()
        arguments = ("--port", str(self.port), *arguments)
        command = [
            "-m",
            "stowplan.apps.cli",
            "shadow",
            "--kubeconfig",
            str(kubeconfig),
            "--out",
            str(self.file),
            "--window",
            WINDOW,
        ]
        super().__init__(PYTHON, [*command, *arguments], folder / "shadow.log")

    def summary(self) -> Any:
        """The last line, once there is one."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return json.loads(lines[-1]).get("summary") if lines else None

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(each.rsplit(" ", 1)[1]) for each in lines if each.startswith(f"stowplan_shadow_{name}"))

    def has_judged(self, number: int) -> bool:
        """True if so many decisions are judged, and none is left."""
        return self.metric("decisions_total") >= number and not self.metric("undue_decisions")

    def told(self) -> list[Any]:
        return [json.loads(line) for line in self.file.read_text().splitlines()[:-1]]


@pytest.fixture(scope="module")
def watcher(plane: ControlPlane) -> Iterator[Path]:
    """The kubeconfig of an account with the rights of deploy/shadow.yaml."""
    subject = {"kind": "ServiceAccount", "name": "shadow", "namespace": "default"}
    documents = [each | {"subjects": [subject]} if "subjects" in each else each
                 for each in yaml.safe_load_all(RIGHTS.read_text(encoding="utf-8"))]  # fmt: skip
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "shadow", "namespace": "default"}}
    plane.kubectl("apply", "-f", "-", input="\n---\n".join(json.dumps(each) for each in (account, *documents)))
    yield plane.service_account_kubeconfig("default", "shadow")
    plane.kubectl("delete", "-f", "-", input="\n---\n".join(json.dumps(each) for each in documents))


@contextmanager
def mixed_nodes(plane: ControlPlane, number: int) -> Iterator[list[str]]:
    """Nodes of three sizes; some are tainted."""
    sizes = ({"cpu": "8", "memory": "16Gi"}, {"cpu": "12", "memory": "48Gi"}, {"cpu": "16", "memory": "32Gi"})
    with (
        plane.nodes(number // 3, "small", capacity=sizes[0]) as small,
        plane.nodes(number // 3, "wide", capacity=sizes[1]) as wide,
        plane.nodes(number // 3, "large", capacity=sizes[2]) as large,
    ):
        for name, taint in (
            (small[0], mixed_pods.TAINT),
            (wide[0], mixed_pods.TAINT),
            (large[0], mixed_pods.SOFT_TAINT),
        ):
            plane.kubectl("taint", "nodes", name, f"{taint['key']}={taint['value']}:{taint['effect']}")
        yield [*small, *wide, *large]


def scheduled(
    plane: ControlPlane, watcher: Path, folder: Path, number: int, nodes: int, *arguments: str, size: int = 1,
    config: Mapping[str, Any] | None = None, preemption: str = "Never",
) -> ShadowProcess:  # fmt: skip
    """Let kube-scheduler schedule so many pods beside a shadow. Return it, ended."""
    with (
        mixed_nodes(plane, nodes),
        plane.having(*mixed_pods.priority_classes(preemption)),
        plane.namespace("shadowed") as namespace,
        plane.start_kube_scheduler(config),
    ):
        for each in mixed_pods.services():
            plane.api().must("POST", f"/api/v1/namespaces/{namespace}/services", each)
        with ShadowProcess(watcher, folder, *arguments) as shadow:
            shadow.wait_until(lambda: "Judging the pods" in shadow.tail())
            _create(plane, namespace, mixed_pods.pods(number, number, size))
            until("all pods were decided", lambda: _all_decided(plane, namespace), 600, shadow.tail)
            until("all are judged", lambda: shadow.has_judged(number), 300, shadow.tail)
            shadow.stop(grace=90)
            shadow.evictions = _evictions(plane, namespace)
    return shadow


def _create(plane: ControlPlane, namespace: str, found: Iterable[dict[str, Any]]) -> None:
    """Create the pods, several at a time, and delete some that have a node while others are scheduled."""
    api, path = plane.api(), f"/api/v1/namespaces/{namespace}/pods"
    draw, created = random.Random(namespace), threading.Event()

    def delete_some() -> None:
        while not created.wait(DELETE_EVERY):
            bound = [each for each in _pods(plane, namespace) if each["spec"].get("nodeName")]
            for each in draw.sample(bound, len(bound) // 100):
                api.ask("DELETE", f"{path}/{each['metadata']['name']}?gracePeriodSeconds=0")

    with ThreadPoolExecutor(WRITERS + 1) as writers:
        deleting = writers.submit(delete_some)
        list(writers.map(lambda pod: api.must("POST", path, pod), found))
        created.set()
        deleting.result()


def _pods(plane: ControlPlane, namespace: str) -> list[Any]:
    found: list[Any] = plane.api().must("GET", f"/api/v1/namespaces/{namespace}/pods?resourceVersion=0")["items"]
    return found


def _evictions(plane: ControlPlane, namespace: str) -> int:
    """Return how many pods were preempted, by the events of kube-scheduler."""
    found = plane.api().must("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    return sum(each["reason"] == "Preempted" for each in found)


def _all_decided(plane: ControlPlane, namespace: str) -> bool:
    return all(each["spec"].get("nodeName") or _reported(each) for each in _pods(plane, namespace))


def _reported(pod: Any) -> bool:
    return any(each.get("reason") == "Unschedulable" for each in pod["status"].get("conditions", ()))


def agrees(shadow: ShadowProcess, number: int, *, samples: bool = False) -> None:
    """No difference is left that is neither a tie nor a race, and each race names what it was a race with."""
    summary, told = shadow.summary(), shadow.told()
    assert shadow.code == 0, shadow.tail()
    print(json.dumps(summary))  # noqa: T201 - the counts are worth reading
    assert summary["judged"] >= number and not summary["missed"], summary
    differences = [each for each in told if each["kind"] not in ("race", "sampled")]
    assert not differences, json.dumps(differences[:3], indent=1)
    assert bool(summary["sampled"]) == samples
    races = [each for each in told if each["kind"] == "race"]
    assert len(races) == summary["races"] and all(each["explanation"] for each in races)


def test_shadow_agrees_with_kube_scheduler(plane: ControlPlane, watcher: Path, tmp_path: Path) -> None:
    """As it is installed: its requests are throttled, so bindings come long after decisions."""
    agrees(scheduled(plane, watcher, tmp_path, 300, 12), 300)


@pytest.mark.full
def test_shadow_agrees_on_3_000_pods(plane: ControlPlane, watcher: Path, tmp_path: Path) -> None:
    agrees(scheduled(plane, watcher, tmp_path, 3_000, 60, config=FAST), 3_000)


@pytest.mark.full
def test_shadow_agrees_where_not_all_nodes_are_looked_at(plane: ControlPlane, watcher: Path, tmp_path: Path) -> None:
    """With 150 nodes kube-scheduler looks at 100 that are feasible."""
    agrees(scheduled(plane, watcher, tmp_path, 300, 150), 300, samples=True)


@pytest.mark.full
def test_shadow_agrees_where_pods_wait_and_are_preempted(plane: ControlPlane, watcher: Path, tmp_path: Path) -> None:
    """Several times as many pods as fit."""
    shadow = scheduled(plane, watcher, tmp_path, 200, 6, size=40, preemption="PreemptLowerPriority")
    agrees(shadow, 200)
    assert shadow.evictions


def test_another_configuration_differs(plane: ControlPlane, watcher: Path, tmp_path: Path) -> None:
    """What finds no difference above finds many here: nodes are to be filled one after the other."""
    config = tmp_path / "packed.json"
    config.write_text(json.dumps(PACKED))
    options = ("--config", str(config), "--fail-on-difference")
    shadow = scheduled(plane, watcher, tmp_path, 100, 6, *options, size=10)
    assert shadow.code == 1
    differences = [each for each in shadow.told() if each["kind"] == "different"]
    assert len(differences) > 30, shadow.summary()
    assert all(
        each["totals"]["there"] is None or each["totals"]["there"] < each["totals"]["here"] for each in differences
    )
    assert Counter(each["pod"] for each in differences).most_common(1)[0][1] == 1
