"""A simulation of an anonymised dump has the same counts as one of the original."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stowplan.simulation import (
    ClusterDump,
    InputProblems,
    RunSettings,
    SimulatedCluster,
    Simulation,
    Templates,
    cluster_from,
    figures_of,
    stream_from_csv,
)
from stowplan.testing import a_profile
from tests.simulation.dump.test_anonymised import KEY, a_drawn_cluster

COUNTS = ("pods", "waiting", "evictions", "nodes", "skipped")
STREAM = b"arrival,duration,cpu,memory,count,namespace\n" + b"".join(
    f"{7 * number},{60 + 11 * number % 50},{1 + number % 4},1Gi,2,ns-{number % 3}\n".encode() for number in range(20)
)


def counts(documents: list[dict[str, Any]], seed: int) -> dict[str, Any]:
    """Return the counts of a run of a dump with a stream of pods. Nothing of the dump is left out."""
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": documents})
    settings, problems = RunSettings(seed=seed, until=900, start_seconds=1, stop_seconds=2), InputProblems()
    cluster = SimulatedCluster(settings)
    cluster.load(cluster_from(text, "dump.json", problems), problems)
    problems.check()
    stream = stream_from_csv(STREAM, Templates(), problems)
    run = Simulation(cluster, stream, {"default-scheduler": a_profile()}, settings, problems=problems)
    run.run()
    found = figures_of(run)
    allocation = sorted(found["allocation"].values())  # the names of resources are replaced, too
    return {**{name: found[name] for name in COUNTS}, "allocation": allocation}


def as_stored(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give the ports of drawn pods the number that a server insists on."""
    for document in documents:
        if document["kind"] == "Pod":
            for port in document["spec"]["containers"][0].get("ports", ()):
                port.setdefault("containerPort", 80)
    return documents


@pytest.mark.parametrize("seed", range(3))
def test_the_simulation_of_an_anonymised_dump_has_the_same_counts(seed: int) -> None:
    dump = ClusterDump(as_stored(a_drawn_cluster(seed)))
    plain = counts(dump.plain(), seed)
    assert plain["pods"]["placed"] and plain["pods"]["initial"]
    assert counts(dump.anonymised(KEY), seed) == plain
