"""The six policies' arithmetic, node by node in plain Python: a judge for runs that the study did not publish.

It follows the study's rules to the letter, and shares nothing with the plugins. A node is a dictionary with its free
cpu and memory, and the free thousandths of each GPU.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, NamedTuple

from stowplan.simulation.openb import OpenBNode, OpenBPod


class Placed(NamedTuple):
    node: str
    devices: tuple[int, ...]


def typical(pods: list[OpenBPod]) -> list[tuple[OpenBPod, float]]:
    counts = Counter((pod.cpu_milli, pod.gpu_milli, pod.gpus, pod.gpu_spec) for pod in pods)
    kept, total = [], 0
    for shape, count in sorted(counts.items(), key=lambda each: (each[1], each[0]), reverse=True):
        if 100 * total >= 95 * len(pods):
            break
        kept.append((OpenBPod("", shape[0], 0, shape[2], shape[1], shape[3]), count))
        total += count
    return [(pod, count / total) for pod, count in kept]


def fits(pod: OpenBPod, node: dict[str, Any]) -> bool:
    allowed = not pod.gpus or not pod.gpu_spec or node["model"] in pod.gpu_spec.split("|")
    enough = sum(free >= pod.gpu_milli for free in node["gpus"]) >= pod.gpus
    return allowed and node["cpu"] >= pod.cpu_milli and enough


def fragmentation(node: dict[str, Any], pods: list[tuple[OpenBPod, float]]) -> float:
    found = 0.0
    for pod, frequency in pods:
        usable = pod.gpus > 0 and fits(pod, node)
        small = sum(free for free in node["gpus"] if free < pod.gpu_milli)
        found += frequency * (small if usable else sum(node["gpus"]))
    return found


def after(pod: OpenBPod, node: dict[str, Any], devices: tuple[int, ...]) -> dict[str, Any]:
    left = [free - pod.gpu_milli * (at in devices) for at, free in enumerate(node["gpus"])]
    return {**node, "cpu": node["cpu"] - pod.cpu_milli, "gpus": left}


def rated(pod: OpenBPod, node: dict[str, Any], devices: tuple[int, ...], pods: list[tuple[OpenBPod, float]]) -> int:
    gained = fragmentation(node, pods) - fragmentation(after(pod, node, devices), pods)
    return int(100 / (1 + math.exp(-gained / 1000)))


def devices_of(pod: OpenBPod, node: dict[str, Any]) -> tuple[int, ...]:
    fitting = sorted((free, at) for at, free in enumerate(node["gpus"]) if free >= pod.gpu_milli)
    return tuple(sorted(at for _, at in fitting[: pod.gpus]))


def fgd(pod: OpenBPod, node: dict[str, Any], pods: list[tuple[OpenBPod, float]]) -> tuple[int, tuple[int, ...]]:
    if pod.gpus == 1 and pod.gpu_milli < 1000:
        fitting = [at for at, free in enumerate(node["gpus"]) if free >= pod.gpu_milli]
        best = max(fitting, key=lambda at: (rated(pod, node, (at,), pods), -at))
        return rated(pod, node, (best,), pods), (best,)
    devices = devices_of(pod, node)
    return rated(pod, node, devices, pods), devices


def score(policy: str, pod: OpenBPod, node: dict[str, Any]) -> int:
    gpus: list[int] = node["gpus"]
    cpu, gpu, asked = int(node["cpu"]), sum(gpus), pod.gpus * pod.gpu_milli
    match policy:
        case "DotProd":
            product = cpu / 128000 * pod.cpu_milli / 128000 + gpu / 8000 * asked / 8000
            return int(100 * (1 - product / 2))
        case "BestFit":
            return int(100 * (1 - ((cpu - pod.cpu_milli) / 128000 + (gpu - asked) / 8000) / 2))
        case "GpuClustering" if pod.gpus:
            kind = "share" if pod.gpu_milli < 1000 else pod.gpus
            base = 75 if node["kinds"] == {kind} else 50 if kind in node["kinds"] else 0 if node["kinds"] else 25
            return base + int(25 * (8000 - gpu) / 8000)
        case "GpuPacking" if pod.gpus:
            empty = gpus.count(1000)
            if empty == len(gpus):
                return max(33 - empty, empty)
            begun = sum(gpus[at] == 1000 for at in devices_of(pod, node))
            least = gpus[devices_of(pod, node)[0]]
            return max(50 - begun, 33) if begun else max(100 - least // 10 // 10, 50)
    return 0


def replay(policy: str, nodes: list[OpenBNode], pods: list[OpenBPod], order: list[int]) -> list[Placed | None]:
    """Let pods arrive in this order. `nodes` are in their order for ties."""
    usual = typical(pods)
    state: list[dict[str, Any]] = [
        {
            "name": n.name,
            "cpu": n.cpu_milli,
            "memory": n.memory_mib,
            "gpus": [1000] * n.gpus,
            "model": n.model,
            "kinds": set[Any](),
        }
        for n in nodes
    ]
    found: list[Placed | None] = []
    for pod in (pods[at] for at in order):
        feasible = [node for node in state if fits(pod, node) and node["memory"] >= pod.memory_mib]
        if not feasible:
            found.append(None)
            continue
        by_score = [fgd(pod, n, usual)[0] if policy == "FGD" else score(policy, pod, n) for n in feasible]
        node = feasible[by_score.index(max(by_score))]
        devices = fgd(pod, node, usual)[1] if policy == "FGD" else devices_of(pod, node)
        node.update(after(pod, node, devices))
        node["memory"] -= pod.memory_mib
        if pod.gpus:
            node["kinds"].add("share" if pod.gpu_milli < 1000 else pod.gpus)
        found.append(Placed(node["name"], devices))
    return found
