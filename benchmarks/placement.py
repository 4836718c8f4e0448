"""Placements over a fleet, in memory: 10,000 placements over 1,000 clusters from nothing, then one score changes.

As in Open Cluster Management's own benchmark each placement wants ten clusters by an add-on score, cpu and Balance, in
mode Exact; a hundred placements go by each of a hundred scores. Whatever the engine wants written succeeds at once, and
is shown to it again. Memory (5,000 clusters, 1,000 placements) is measured in a process of its own:
`python -m benchmarks.placement`.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Iterable, Iterator
from time import perf_counter
from typing import Any

from benchmarks.figures import Comparison
from stowplan.objects import kinds
from stowplan.objects.actions import Action, Record
from stowplan.objects.changes import Put, Result
from stowplan.objects.clusters import (
    SET_LABEL,
    AddOnPlacementScore,
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
)
from stowplan.objects.placements import Placement
from stowplan.placement.scheduler import PlacementScheduler
from stowplan.plugins import clusters as policies

NAME, MEMORY = "placement", "placement-memory"
NOW = 1_780_000_000.0
SCORES, WANTED = 100, 10
SIZE, QUICK = (1000, 10_000), (200, 1000)
LARGE = (5000, 1000)
GIGABYTE = 1 << 30


def run(quick: bool) -> Iterator[Comparison]:
    clusters, placements = QUICK if quick else SIZE
    engine = built(clusters, placements)
    start = perf_counter()
    settle(engine)
    whole, decided = perf_counter() - start, engine.decisions
    changes = list(_one_by_one(engine, clusters))
    part, requeued = min(seconds for seconds, _ in changes), changes[0][1]
    share = 100 * requeued / placements
    per_second = f"{decided / whole:,.0f} decisions per second from nothing"
    yield Comparison(
        workload=NAME,
        case=f"one score changes ({requeued} placements) against a full pass, per 1 %",
        nodes=clusters,
        pods=placements,
        unit="ms",
        value=1000 * part / share,
        against=1000 * whole,
        ratio=part / share / whole,
        pods_per_s=decided / whole,
        note=per_second,
    )
    if not quick:
        yield memory()


def memory() -> Comparison:
    command = [sys.executable, "-m", "benchmarks.placement"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    taken: int = json.loads(done.stdout)["bytes"]
    return Comparison(
        workload=MEMORY,
        case="the whole process against 1 GB",
        nodes=LARGE[0],
        pods=LARGE[1],
        unit="bytes of RSS",
        value=taken,
        against=GIGABYTE,
        ratio=taken / GIGABYTE,
    )


def built(clusters: int, placements: int) -> PlacementScheduler:
    """A fleet that is known, and placements that are not decided yet."""
    engine = PlacementScheduler(policies.policy())
    for kind, document in (*_bound(), *_fleet(clusters), *(_placement(number) for number in range(placements))):
        engine.handle(Put(kinds.convert(kind, document)), NOW)
    return engine


def settle(engine: PlacementScheduler, now: float = NOW) -> None:
    while engine.next_deadline() == 0.0:
        perform(engine, engine.step(now), now)


def perform(engine: PlacementScheduler, actions: Iterable[Action], now: float) -> None:
    waiting = [action for action in actions if not isinstance(action, Record)]
    while waiting:
        action: Any = waiting.pop()
        shown = engine.decision_cache.get(action.key)
        if shown is not None:
            engine.handle(Put(shown), now)
        more = engine.handle(Result(action.id), now)
        waiting += [each for each in more if not isinstance(each, Record)]


def _one_by_one(engine: PlacementScheduler, clusters: int) -> Iterator[tuple[float, int]]:
    """One score of one cluster changes, and again; seconds, and how many placements were decided."""
    for turn in range(5):
        document = _scores(turn % clusters)
        document["status"]["scores"][7]["value"] = 100 - turn
        score, before, start = kinds.convert(AddOnPlacementScore, document), engine.decisions, perf_counter()
        engine.handle(Put(score), NOW)
        settle(engine)
        yield perf_counter() - start, engine.decisions - before


def _bound() -> Iterator[tuple[type, dict[str, Any]]]:
    yield ManagedClusterSet, {"metadata": {"name": "fleet"}}
    metadata = {"name": "fleet", "namespace": "test"}
    yield ManagedClusterSetBinding, {"metadata": metadata, "spec": {"clusterSet": "fleet"}}


def _fleet(clusters: int) -> Iterator[tuple[type, dict[str, Any]]]:
    for number in range(clusters):
        amounts = {"cpu": str(8 + number * 37 % 500), "memory": f"{16 + number * 53 % 900}Gi"}
        yield (
            ManagedCluster,
            {
                "metadata": {"name": f"cluster-{number}", "labels": {SET_LABEL: "fleet", "zone": f"zone-{number % 9}"}},
                "status": {"allocatable": amounts, "capacity": amounts},
            },
        )
        yield AddOnPlacementScore, _scores(number)


def _scores(number: int) -> dict[str, Any]:
    values = [{"name": f"score-{score}", "value": (number * 31 + score * 17) % 201 - 100} for score in range(SCORES)]
    return {"metadata": {"name": "measured", "namespace": f"cluster-{number}"}, "status": {"scores": values}}


def _placement(number: int) -> tuple[type, dict[str, Any]]:
    add_on = {"resourceName": "measured", "scoreName": f"score-{number % SCORES}"}
    coordinates = (
        {"type": "AddOn", "addOn": add_on},
        {"type": "BuiltIn", "builtIn": "ResourceAllocatableCPU"},
        {"type": "BuiltIn", "builtIn": "Balance"},
    )
    policy = {"mode": "Exact", "configurations": [{"scoreCoordinate": each, "weight": 1} for each in coordinates]}
    metadata = {"name": f"placement-{number}", "namespace": "test", "uid": str(number), "generation": 1}
    return Placement, {"metadata": metadata, "spec": {"numberOfClusters": WANTED, "prioritizerPolicy": policy}}


if __name__ == "__main__":
    settle(built(*LARGE))
    print(json.dumps({"bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
