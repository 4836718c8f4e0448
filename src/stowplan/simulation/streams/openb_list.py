"""A pod list of OpenB as a stream: when each pod was created there, and how long it ran.

A pod arrives at its `creation_time` and runs from `scheduled_time` to `deletion_time`. One that was never scheduled is
taken to run as long as it was there. In a list without times all pods arrive at the start, in the order of the list,
and stay.
"""

from __future__ import annotations

import math

from stowplan.objects.errors import ConfigError
from stowplan.simulation import openb
from stowplan.simulation.input_problems import InputProblems
from stowplan.simulation.openb import Line
from stowplan.simulation.stream_events import Arrival

CREATED, SCHEDULED, DELETED = "creation_time", "scheduled_time", "deletion_time"


def from_openb(
    data: bytes, problems: InputProblems, *, file: str = "pods.csv", scheduler_name: str = "default-scheduler"
) -> list[Arrival]:
    """Read a pod list. A row that makes no sense goes to `problems`, with its line.

    stream = stream_from_openb(text, problems, file="openb_pod_list_default.csv")
    """
    found = []
    for line, pod in openb.pod_rows(data, file, problems):
        try:
            at, duration = _times(line)
        except ConfigError as error:
            problems.add(error)
            continue
        document = pod.as_document(scheduler_name)
        found.append(Arrival(at=at, duration=duration, document=document, file=file, place=line.place))
    return sorted(found, key=lambda event: event.at)


def _times(line: Line) -> tuple[float, float | None]:
    """Return when a pod arrives, and how long it runs; None: to the end."""
    created, scheduled, deleted = (_time(line, column) for column in (CREATED, SCHEDULED, DELETED))
    if created is None:
        if scheduled is not None or deleted is not None:
            line.refuse(f"{CREATED} is empty", "say when the pod arrived, in seconds")
        return 0.0, None
    if scheduled is not None and scheduled < created:
        line.refuse(f"{SCHEDULED} {scheduled:g} is before {CREATED} {created:g}", "a pod is scheduled after it arrived")
    begin = created if scheduled is None else scheduled
    if deleted is not None and deleted < begin:
        line.refuse(f"{DELETED} {deleted:g} is before {begin:g}, when the pod began", "a pod ends after it began")
    return created, None if deleted is None else deleted - begin


def _time(line: Line, column: str) -> float | None:
    text = line.text(column)
    if not text:
        return None
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        line.refuse(f"{column} is {text[:80]!r}", "write seconds, from 0 on")
    return found
