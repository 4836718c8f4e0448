"""Follows a run: what became of each pod, the sums over time, and samples of both for a time series.

It sees the changes that the engine sees, in the same order. A change costs what it changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from stowplan.columns.state import ClusterState
from stowplan.objects import requests
from stowplan.objects.changes import Change, Gone
from stowplan.objects.nodes import Node
from stowplan.objects.pod_parts import PodSpec
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.gpu_sharing import device_columns
from stowplan.simulation import gpu_use
from stowplan.simulation.capacity_use import CapacityUse
from stowplan.simulation.fragmentation import ArrivedShape, fragmentation
from stowplan.simulation.namespace_shares import NamespaceShares, dominant
from stowplan.simulation.pod_outcome import DISRUPTED, PodOutcome, ending, owner_of


class RunRecorder:
    """`prices`: of a node for an hour, by its name or instance type; a price that the node has itself goes first.

    `shares_gpus`: GPUs count in thousandths, as the plugin GpuSharing does.
    """

    def __init__(self, start: float, prices: Mapping[str, float], shares_gpus: bool = False) -> None:
        self.shares_gpus = shares_gpus
        self.start = self.last = start  # `last`: when a pod or a node changed last
        self.began = False  # what comes before is the cluster as it was
        self.use = CapacityUse(prices, start, shares_gpus)
        self.shares = NamespaceShares()
        self.outcomes: dict[str, PodOutcome] = {}  # of every pod of the run, by uid, in order of arrival
        self.counts: Counter[str] = Counter()  # pods by outcome
        self.evictions: Counter[str] = Counter()  # by the reason that their condition has
        self.arrived: Counter[ArrivedShape] = Counter()
        self.series: list[dict[str, Any]] = []
        self._amounts: dict[int, tuple[PodSpec, dict[str, int]]] = {}  # by the identity of the shared spec

    def changed(self, change: Change, now: float, phase: str = "") -> None:
        """Take in a change that the engine is told of. `phase`: that of a pod which is gone for the engine."""
        found, gone = change.object, isinstance(change, Gone)
        if isinstance(found, Pod):
            self._pod_changed(found, gone, now, phase)
        elif isinstance(found, Node):
            self._advance(now)
            self.use.node_changed(found, gone)

    def _advance(self, now: float) -> None:
        self.last = now
        self.use.advance(now)

    # -- pods

    def _pod_changed(self, pod: Pod, gone: bool, now: float, phase: str) -> None:
        outcome = self.outcomes.get(pod.uid)
        if outcome is None:
            if gone or pod.finished:
                return
            outcome = self._arrive(pod, now)
        if outcome.ended is not None:
            return
        if pod.node_name and not outcome.node:
            self._bound(outcome, pod, now)
        if pod.status.phase == "Running" and outcome.started is None:
            self._started(outcome, now)
        if gone or pod.finished:
            self._ended(outcome, pod, now, phase or pod.status.phase)

    def _arrive(self, pod: Pod, now: float) -> PodOutcome:
        self._advance(now)
        amounts = self._requests(pod)
        outcome = self.outcomes[pod.uid] = PodOutcome(
            pod.namespace, pod.name, pod.uid, owner_of(pod), pod.spec.priority or 0, amounts, now - self.start,
            initial=not self.began and bool(pod.node_name), share=dominant(amounts, self.use.offered),
        )  # fmt: skip
        self.counts["pending"] += 1
        self.shares.asked(pod.namespace, outcome.share, now)
        if not outcome.initial:
            gpus = pod.shape.gpus if self.shares_gpus else None
            self.arrived[ArrivedShape(tuple(sorted(amounts.items())), gpus)] += 1
        return outcome

    def _requests(self, pod: Pod) -> dict[str, int]:
        """The amounts that a pod requests. Pods of one template share their spec, and so the amounts."""
        known = self._amounts.get(id(pod.spec))
        if known is None or known[0] is not pod.spec:
            if len(self._amounts) > 10_000:
                self._amounts.clear()
            known = self._amounts[id(pod.spec)] = pod.spec, requests.incoming(pod)
        return gpu_use.with_requested(known[1], pod) if self.shares_gpus else known[1]

    def _bound(self, outcome: PodOutcome, pod: Pod, now: float) -> None:
        self._advance(now)
        node = pod.node_name
        if self.shares_gpus:
            outcome.requests = gpu_use.with_requested(outcome.requests, pod, self.use.gpus_of(node))
        outcome.node, outcome.bound = node, now - self.start
        if not outcome.initial:
            outcome.waited = outcome.bound - outcome.arrived
        self._count(outcome, "bound")
        self.use.pod_bound(node, outcome.requests, 1)
        self.shares.got(outcome.namespace, outcome.share, now)

    def _started(self, outcome: PodOutcome, now: float) -> None:
        self._advance(now)
        outcome.started = now - self.start
        self._count(outcome, "running")
        self.use.pod_running(outcome.requests, 1)

    def _ended(self, outcome: PodOutcome, pod: Pod, now: float, phase: str) -> None:
        self._advance(now)
        outcome.ended = now - self.start
        self._count(outcome, ending(pod, phase))
        if outcome.outcome == "evicted":
            reasons = (each.reason for each in pod.status.conditions if each.type == DISRUPTED)
            self.evictions[next(reasons, "")] += 1
        self.shares.asked(outcome.namespace, outcome.share, now, -1)
        if outcome.node:
            self.use.pod_bound(outcome.node, outcome.requests, -1)
            self.shares.got(outcome.namespace, outcome.share, now, -1)
        if outcome.started is not None:
            self.use.pod_running(outcome.requests, -1)

    def _count(self, outcome: PodOutcome, now_is: str) -> None:
        self.counts[outcome.outcome] -= 1
        outcome.outcome = now_is
        self.counts[now_is] += 1

    # -- the series

    def sample(self, now: float, state: ClusterState) -> None:
        """Add a row to the series. The sums stay where they are: the run may have ended before `now`."""
        use, devices = self.use, device_columns.of_state(state) if self.shares_gpus else None
        unusable = fragmentation(state.table, self.arrived, devices)
        self.series.append({
            "at": round(now - self.start, 6), "nodes": use.nodes, "nodesUsed": use.used_nodes,
            **{name: self.counts[name] for name in ("pending", "bound", "running", "succeeded", "failed", "evicted",
                                                    "deleted")},
            "allocation": parts(use.bound, use.offered), "utilisation": parts(use.running, use.offered),
            "fragmentation": {name: round(part, 6) for name, part in unusable.items()},
            "cost": round(use.cost_until(now), 6),
        })  # fmt: skip

    def end(self, now: float) -> None:
        """Bring all sums to the end of the run. Samples of a time after it, in which nothing happened, are dropped."""
        self.series = [row for row in self.series if row["at"] <= now - self.start]
        self.use.advance(now)
        self.shares.end(now)


def parts(amounts: Mapping[str, float], whole: Mapping[str, float]) -> dict[str, float]:
    """Return the part of each resource that is offered at all, in the order of names."""
    return {name: round(amounts.get(name, 0) / whole[name], 6) for name in sorted(whole) if whole[name] > 0}
