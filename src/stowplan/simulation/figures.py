"""The figures of a run: one mapping, with the names that `summary.json` has. docs/simulation.md says what each counts.

Times are seconds. Parts are between 0 and 1, averaged over time: what pods with a node requested (`allocation`), and
what pods that were started requested (`utilisation`), of what the nodes offered. Nobody knows what a simulated
container really uses, so no figure claims to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from stowplan.simulation.capacity_use import HOUR
from stowplan.simulation.namespace_shares import NamespaceShare, jain
from stowplan.simulation.pod_outcome import PodOutcome
from stowplan.simulation.recorder import parts
from stowplan.simulation.run import Simulation

PERCENTILES = (50, 90, 95, 99, 100)
OUTCOMES = ("pending", "bound", "running", "succeeded", "failed", "evicted", "deleted")


def figures(run: Simulation) -> dict[str, Any]:
    """Return the figures of a run that has ended: `figures_of(run)["pods"]["placed"]`."""
    recorder, use = run.recorder, run.recorder.use
    new = [each for each in recorder.outcomes.values() if not each.initial]
    length = (run.cluster.time if run.settings.until is not None else recorder.last) - run.start
    return {
        "seed": run.settings.seed,
        "seconds": _rounded(length),
        "pods": {
            "arrived": len(new), "placed": sum(each.bound is not None for each in new),
            "neverPlaced": sum(each.bound is None for each in new),
            "initial": len(recorder.outcomes) - len(new),
            "atEnd": {name: recorder.counts[name] for name in OUTCOMES},
        },
        "waiting": waiting(each.waited for each in new),
        "evictions": {"pods": recorder.evictions.total(), "byReason": dict(sorted(recorder.evictions.items()))},
        "allocation": parts(use.bound_time, use.offered_time),
        "utilisation": parts(use.running_time, use.offered_time),
        "fragmentation": _mean_of(recorder.series, "fragmentation"),
        "nodes": {
            "atEnd": use.nodes, "most": use.most_nodes, "mostUsed": use.most_used_nodes,
            "meanUsed": _rounded(use.used_node_seconds / length) if length else use.used_nodes,
            "hours": _rounded(use.node_seconds / HOUR), "usedHours": _rounded(use.used_node_seconds / HOUR),
        },
        "cost": {
            "all": _rounded(use.cost), "used": _rounded(use.used_cost), "nodesWithoutPrice": len(use.unpriced),
        },
        "fairness": fairness(recorder.shares.shares, new),
        "skipped": {"problems": run.problems.count},
    }  # fmt: skip


def waiting(waits: Iterable[float | None]) -> dict[str, float | None]:
    """Return the mean and the percentiles of the waits of pods that got a node: each is the wait of some pod."""
    found = np.array([each for each in waits if each is not None])
    if not found.size:
        return {"mean": None, **{f"p{percent}": None for percent in PERCENTILES}}
    ranks = np.percentile(found, PERCENTILES, method="inverted_cdf")
    by_percent = {f"p{percent}": _rounded(float(wait)) for percent, wait in zip(PERCENTILES, ranks, strict=True)}
    return {"mean": _rounded(float(found.mean())), **by_percent}


def fairness(shares: Mapping[str, NamespaceShare], new: Iterable[PodOutcome]) -> dict[str, Any]:
    """Return what each namespace got of what it asked for, its mean wait, and Jain's index over the namespaces."""
    waits: dict[str, list[float]] = {}
    for outcome in new:
        if outcome.waited is not None:
            waits.setdefault(outcome.namespace, []).append(outcome.waited)
    told = {
        name: {
            "pods": share.pods, "satisfaction": _rounded(share.satisfaction),
            "meanWait": _rounded(sum(waits[name]) / len(waits[name])) if name in waits else None,
        }
        for name, share in sorted(shares.items())
    }  # fmt: skip
    index = jain(share.satisfaction for share in shares.values() if share.satisfaction is not None)
    return {"index": _rounded(index), "namespaces": told}


def _mean_of(series: Iterable[Mapping[str, Any]], name: str) -> dict[str, float]:
    """Return the mean of the samples of each resource."""
    found: dict[str, list[float]] = {}
    for row in series:
        for resource, part in row[name].items():
            found.setdefault(resource, []).append(part)
    return {resource: round(sum(each) / len(each), 6) for resource, each in sorted(found.items())}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
