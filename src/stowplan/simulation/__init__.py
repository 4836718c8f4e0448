"""Clusters in virtual time: an engine and an embedded API server in one process, without HTTP and without a clock.

    from stowplan.simulation import InputProblems, RunSettings, SimulatedCluster, Simulation, Templates
    from stowplan.simulation import cluster_from, figures_of, stream_from_csv
    from stowplan.testing import a_profile

    problems = InputProblems()
    settings = RunSettings(seed=1, until=3600)
    cluster = SimulatedCluster(settings)
    cluster.load(cluster_from(dump, "dump.yaml", problems), problems)
    stream = stream_from_csv(trace, Templates(), problems, file="trace.csv")
    run = Simulation(cluster, stream, {"default-scheduler": a_profile()}, settings, problems=problems)
    run.run()
    figures_of(run)["waiting"]["p50"]

Readers take bytes, and nothing here reads a file, a clock or the environment. `stowplan simulate` is a caller.

What is in `__all__` is kept; see docs/stability.md. Everything else here may change.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stowplan.simulation.clusters import documents as cluster_from
    from stowplan.simulation.dump.cluster_dump import ClusterDump
    from stowplan.simulation.figures import figures as figures_of
    from stowplan.simulation.input_problems import InputProblems
    from stowplan.simulation.output import outcome_rows as pods_of
    from stowplan.simulation.run import Simulation
    from stowplan.simulation.settings import RunSettings
    from stowplan.simulation.simulated_cluster import SimulatedCluster
    from stowplan.simulation.stream_events import (
        AppliedObject,
        Arrival,
        DeletedObject,
        NodeCordon,
        NodeFailure,
        NodeRecovery,
        PolicyChange,
    )
    from stowplan.simulation.streams.openb_list import from_openb as stream_from_openb
    from stowplan.simulation.streams.scenario import from_yaml as stream_from_scenario
    from stowplan.simulation.streams.table import from_csv as stream_from_csv
    from stowplan.simulation.streams.table import from_jsonl as stream_from_jsonl
    from stowplan.simulation.streams.table import from_rows as stream_from_rows
    from stowplan.simulation.templates import Templates

__all__ = [
    "AppliedObject",
    "Arrival",
    "ClusterDump",
    "DeletedObject",
    "InputProblems",
    "NodeCordon",
    "NodeFailure",
    "NodeRecovery",
    "PolicyChange",
    "RunSettings",
    "SimulatedCluster",
    "Simulation",
    "Templates",
    "cluster_from",
    "figures_of",
    "pods_of",
    "stream_from_csv",
    "stream_from_jsonl",
    "stream_from_openb",
    "stream_from_rows",
    "stream_from_scenario",
]

# Where each public name is. Within its own module a reader needs no longer name than what it reads.
_PLACES = {
    "AppliedObject": "stream_events.AppliedObject",
    "Arrival": "stream_events.Arrival",
    "ClusterDump": "dump.cluster_dump.ClusterDump",
    "DeletedObject": "stream_events.DeletedObject",
    "InputProblems": "input_problems.InputProblems",
    "NodeCordon": "stream_events.NodeCordon",
    "NodeFailure": "stream_events.NodeFailure",
    "NodeRecovery": "stream_events.NodeRecovery",
    "PolicyChange": "stream_events.PolicyChange",
    "RunSettings": "settings.RunSettings",
    "SimulatedCluster": "simulated_cluster.SimulatedCluster",
    "Simulation": "run.Simulation",
    "Templates": "templates.Templates",
    "cluster_from": "clusters.documents",
    "figures_of": "figures.figures",
    "pods_of": "output.outcome_rows",
    "stream_from_csv": "streams.table.from_csv",
    "stream_from_jsonl": "streams.table.from_jsonl",
    "stream_from_openb": "streams.openb_list.from_openb",
    "stream_from_rows": "streams.table.from_rows",
    "stream_from_scenario": "streams.scenario.from_yaml",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is needed: the scheduler records with a module of this package, and needs no simulation."""
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, found = place.rpartition(".")
    return getattr(import_module(f"{__name__}.{module}"), found)
