"""Runs for tests: small clusters, short streams."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stowplan.apps import profile_loader
from stowplan.simulation.clusters import documents
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.run import Simulation
from stowplan.simulation.settings import RunSettings
from stowplan.simulation.simulated_cluster import SimulatedCluster
from stowplan.simulation.stream_events import StreamEvent

NAMES = ("default-scheduler",)
HEAD = "apiVersion: simulation.stowplan.io/v1alpha1\nkind: ClusterTemplate\n"


def a_cluster_text(count: int = 2, cpu: int = 4) -> bytes:
    return (HEAD + f"nodes: [{{name: n, count: {count}, capacity: {{cpu: {cpu}, memory: 16Gi}}}}]\n").encode()


def a_cluster(text: bytes, settings: RunSettings, problems: InputProblems | None = None) -> SimulatedCluster:
    found = InputProblems() if problems is None else problems
    cluster = SimulatedCluster(settings)
    cluster.load(documents(text, "cluster.yaml", found), found)
    found.check()
    return cluster


def a_run(
    stream: Iterable[StreamEvent], text: bytes | None = None, problems: InputProblems | None = None, **settings: Any
) -> Simulation:
    """A run that has ended."""
    chosen = RunSettings(**settings)
    cluster = a_cluster(a_cluster_text() if text is None else text, chosen)
    run = Simulation(cluster, stream, profile_loader.defaults()[1], chosen, problems=problems)
    run.run()
    return run
