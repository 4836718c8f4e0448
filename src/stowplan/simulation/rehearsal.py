"""Asks an API server about the objects of a stream before the run, so that all that it refuses is named at once.

The server is an empty one. So only what is wrong with an object itself counts: whether a name is taken, or a
PriorityClass is there, shows when the time comes.
"""

from __future__ import annotations

from collections.abc import Iterable

from stowplan.embedded.errors import ApiError
from stowplan.objects.errors import ConfigError
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.simulated_cluster import SimulatedCluster
from stowplan.simulation.stream_events import AppliedObject, Arrival, StreamEvent

_WRONG_ITSELF = ("Invalid", "BadRequest")


def accepted(stream: Iterable[StreamEvent], problems: InputProblems) -> list[StreamEvent]:
    """Return the events without those whose objects no server takes, which go to `problems`."""
    cluster, found = SimulatedCluster(), []
    for event in stream:
        if isinstance(event, Arrival | AppliedObject) and (problem := _problem(cluster, event)):
            problems.add(ConfigError(problem, file=event.file, path=event.place))
        else:
            found.append(event)
    return found


def _problem(cluster: SimulatedCluster, event: Arrival | AppliedObject) -> str:
    try:
        cluster.create(event.document, dry_run=True)
    except ApiError as error:
        return error.message if error.reason in _WRONG_ITSELF else ""
    except ConfigError:
        return ""  # a kind that the cluster of the run may define
    return ""
