"""Made-up runs for reports: a busy week, with nodes that come and go, and with names that would like to be HTML."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stowplan.simulation.report.report_run import FULL, NO_NODE, CauseHistory, FillHistory, ReportRun

WEEK = 7 * 86_400.0
HOSTILE = "</script><img src=x onerror=alert(1)>\"'&<!--"
RESOURCES = ("cpu", "memory", "nvidia.com/gpu")
CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: LeastAllocated}}
"""


def a_report_run(
    name: str = "the run", nodes: int = 12, moments: int = 20, samples: int = 200, **given: Any
) -> ReportRun:
    """A run of a week. Every percentage differs from the one before, which is the worst for the size of the page."""
    draw = np.random.default_rng(len(name) + nodes)
    at = np.linspace(0, WEEK, samples)
    busy = 0.5 - 0.4 * np.cos(at / 86_400 * 2 * math.pi)
    series = [row(float(time), float(load), nodes) for time, load in zip(at, busy, strict=True)]
    waits = sorted(draw.exponential(300, 300).round(3).tolist())
    looked = np.linspace(0, WEEK, moments).tolist()
    causes = {f"Insufficient {each}": draw.integers(0, 90, moments).tolist() for each in RESOURCES}
    parts = {each: draw.integers(0, FULL + 1, (moments, nodes), np.uint8) for each in RESOURCES}
    for rows in parts.values():
        rows[: moments // 2, : nodes // 10] = NO_NODE  # these come later
        rows[moments // 2 :, -(nodes // 10 + 1) :] = NO_NODE  # these go
    fill = FillHistory(looked, [f"node-{each}" for each in range(nodes)], {k: v.tobytes() for k, v in parts.items()})
    made: dict[str, Any] = {
        "name": name, "facts": {"Cluster": "cluster.yaml", "Seed": "1"}, "figures": figures(nodes, float(busy.mean())),
        "series": series, "waits": waits, "fill": fill, "causes": CauseHistory(looked, causes),
        "configuration": CONFIGURATION,
    }  # fmt: skip
    return ReportRun(**{**made, **given})


def row(time: float, load: float, nodes: int) -> dict[str, Any]:
    shares = dict(zip(RESOURCES, (load, load * 0.8, min(load * 1.2, 1)), strict=True))
    return {
        "at": time, "nodes": nodes, "nodesUsed": round(nodes * load), "pending": round(60 * load), "bound": 0,
        "running": round(2000 * load), "succeeded": 0, "failed": 0, "evicted": 0, "deleted": 0,
        "allocation": shares, "utilisation": shares, "fragmentation": {"cpu": load / 4, "memory": load / 9},
        "cost": time / 3600 * nodes,
    }  # fmt: skip


def figures(nodes: int, load: float) -> dict[str, Any]:
    share = {"cpu": load, "memory": load * 0.8, "nvidia.com/gpu": load, "pods": 0.1}
    return {
        "seed": 1, "seconds": WEEK,
        "pods": {"arrived": 9000, "placed": 8900, "neverPlaced": 100, "initial": 0, "atEnd": {}},
        "waiting": {"mean": 300.0, "p50": 180.0, "p90": 700.0, "p95": 900.0, "p99": 1400.0, "p100": 2000.0},
        "evictions": {"pods": 3, "byReason": {"PreemptionByScheduler": 3}},
        "allocation": share, "utilisation": share, "fragmentation": {"cpu": 0.1, "memory": 0.05},
        "nodes": {
            "atEnd": nodes, "most": nodes, "mostUsed": nodes, "meanUsed": nodes * load, "hours": 1e4, "usedHours": 9e3,
        },
        "cost": {"all": 1234.5, "used": 1000.0, "nodesWithoutPrice": 0},
        "fairness": {"index": 0.93, "namespaces": {
            "shop": {"pods": 5000, "satisfaction": 1.0, "meanWait": 1.5},
            "research": {"pods": 4000, "satisfaction": 0.5, "meanWait": 900.0},
        }},
        "skipped": {"problems": 0},
    }  # fmt: skip


def hostile_run() -> ReportRun:
    """A run whose every text would like to be HTML."""
    plain = a_report_run(nodes=3)
    told = dict(plain.figures)
    told["fairness"] = {"index": 1.0, "namespaces": {
        f"{HOSTILE}{each}": {"pods": 1, "satisfaction": 1.0, "meanWait": None} for each in "ab"
    }}  # fmt: skip
    told["allocation"] = {"cpu": 0.5, HOSTILE: 0.5}
    fill = FillHistory(
        plain.fill.moments,
        [f"{HOSTILE}{each}" for each in range(3)],
        {**plain.fill.parts, HOSTILE: plain.fill.parts["cpu"]},
    )
    causes = CauseHistory(plain.causes.moments, {f"{HOSTILE}{each}": [1] * 20 for each in range(9)})
    return a_report_run(
        HOSTILE,
        figures=told,
        fill=fill,
        causes=causes,
        facts={HOSTILE: HOSTILE},
        configuration=f"{HOSTILE}\n\0\ud800\n",
    )
