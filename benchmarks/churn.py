"""Does anything stay behind? A million pods with labels of their own come and go; the process must not grow.

Runs in a process of its own (`python -m benchmarks.churn PODS`), because memory that other benchmarks gave back to the
allocator would hide a leak. A few thousand pods are alive at a time, each with an image and so a shape of its own;
every fourth is asked about by a label that only it has, every twentieth is decided, so that counters and cached answers
come and go as well.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections import deque
from pathlib import Path

from benchmarks import object_templates
from benchmarks.figures import Comparison
from stowplan.apps import profile_loader
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.evaluation import schedule_one
from stowplan.objects import selectors
from stowplan.objects.affinity import PodQuery
from stowplan.objects.changes import Put
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

NODES, ALIVE, ASKED_EVERY, DECIDED_EVERY = 500, 4000, 4, 20
WARM_UP, WARM_UP_QUICK = 100_000, 70_000  # both fill the bounded stores of counters and of answers, which is no leak


def run(pods: int) -> list[Comparison]:
    command = [sys.executable, "-m", "benchmarks.churn", str(pods)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, int] = json.loads(done.stdout)
    left = f"left behind: {found['pods_left']} pods, {found['label_sets_left']} label sets"
    return [
        Comparison(
            workload="churn-memory",
            case=f"{found['warm_up']:,} pods, then to the end",
            nodes=NODES,
            pods=pods,
            unit="bytes of RSS",
            value=found["end"],
            against=found["warm"],
            ratio=found["end"] / found["warm"],
            note=left,
        )
    ]


def churn(pods: int) -> dict[str, int]:
    warm_up = WARM_UP if pods > WARM_UP else WARM_UP_QUICK
    state, alive, warm = _cluster(), deque[Pod](), 0
    profile = profile_loader.defaults()[1]["default-scheduler"]
    for number, pod in enumerate(object_templates.pods([_template()], pods, "default", "churn")):
        state.add_pod(pod, f"node-{number % NODES}")
        alive.append(pod)
        if number % ASKED_EVERY == 0:
            _ask(state, pod)
        if number % DECIDED_EVERY == 0:
            schedule_one(pod, state, profile)
        if len(alive) > ALIVE:
            state.remove_pod(alive.popleft().uid)
        if number == warm_up:
            warm = resident()
    end = resident()
    for pod in alive:
        state.remove_pod(pod.uid)
    left = {"pods_left": len(state.pods), "label_sets_left": state.match_counts.label_sets}
    return {"warm_up": warm_up, "warm": warm, "end": end, **left}


def _cluster() -> ClusterState:
    state = ClusterState()
    node = {"metadata": {"generateName": "node-"}, "status": {"allocatable": {"cpu": "64", "memory": "256Gi"}}}
    for made in object_templates.each(Node, [node], NODES):
        state.apply(Put(made))
    return state


def _ask(state: ClusterState, pod: Pod) -> None:
    alone = selectors.from_labels({"statefulset.kubernetes.io/pod-name": pod.name})
    alike = selectors.from_labels({"app": "churn"})
    for selector in (alone, alike):
        Cluster(state).count(PodQuery(frozenset(("default",)), selector))


def _template() -> dict[str, object]:
    labels = {"app": "churn", "statefulset.kubernetes.io/pod-name": "pod-{index}"}
    amounts = {"cpu": "100m", "memory": "500Mi"}
    container = {"name": "main", "image": "registry.example/main:{index}", "resources": {"requests": amounts}}
    return {"metadata": {"generateName": "pod-", "labels": labels}, "spec": {"containers": [container]}}


def resident() -> int:
    """This process's memory in bytes, as the kernel sees it."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    print(json.dumps(churn(int(sys.argv[1]))))
