"""`stowplan place explain NAME`: which clusters a placement would get as things stand, and what the others lack."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from stowplan.apps import cluster_objects, json_output
from stowplan.apps.place.explain_json import Answer, explained
from stowplan.apps.place.kinds import KINDS
from stowplan.objects.changes import Put
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.placements import GROUP, SATISFIED, Placement
from stowplan.placement.scheduler import PlacementScheduler
from stowplan.plugins import clusters

SPELLED = ("", "placement", "placements", f"placements.{GROUP}")
MOST_SHOWN = 50


@dataclass(frozen=True)
class PlacementExplainOptions:
    name: str = ""
    namespace: str = ""  # empty: the context's, or else "default"
    files: tuple[Path, ...] = ()
    filename: Path | None = None
    compatibility: str = "none"
    kubeconfig: str = ""
    context: str = ""
    output: str = "table"


def run(question: PlacementExplainOptions) -> int:
    """0 if the placement gets all it asks for, 1 if it does not."""
    if bool(question.name) == (question.filename is not None):
        raise ConfigError("found both or neither of NAME and --filename", remedy="name a placement, or give a file")
    objects, namespace = _gathered(question)
    engine = engine_of(objects, ocm=question.compatibility == "ocm")
    answer = explained(engine.choose(_placement(question, engine, namespace), time.time()))
    if question.output == "table":
        show(Console(highlight=False, markup=False), answer)
    else:
        about = {"apiVersion": json_output.VERSION, "kind": "PlacementExplanation"}
        json_output.echo(about | answer, question.output)
    return 0 if satisfied(answer)["status"] == "True" and not answer["error"] else 1


def engine_of(objects: Iterable[Object], *, ocm: bool = False) -> PlacementScheduler:
    """A hub as these objects have it."""
    engine, now = PlacementScheduler(clusters.policy(ocm=ocm), ocm=ocm), time.time()
    for each in objects:
        engine.handle(Put(each), now)
    return engine


def satisfied(answer: Answer) -> Answer:
    found: Answer = next(each for each in answer["conditions"] if each["type"] == SATISFIED)
    return found


def _gathered(question: PlacementExplainOptions) -> tuple[list[Object], str]:
    if question.files:
        return cluster_objects.from_files(question.files)[0], question.namespace or "default"
    with Console(stderr=True).status("reading the hub"):
        objects, own = cluster_objects.from_cluster(KINDS, kubeconfig=question.kubeconfig, context=question.context)
    return objects, question.namespace or own


def _placement(question: PlacementExplainOptions, engine: PlacementScheduler, namespace: str) -> Placement:
    if question.filename is not None:
        return _unsaved(question.filename, question.namespace, namespace)
    kind, _, name = question.name.rpartition("/")
    if kind not in SPELLED:
        raise ConfigError(f"{question.name!r} is no placement", remedy="give its name, and its namespace by -n")
    found = engine.placements.get(f"{namespace}/{name}")
    if found is None:
        raise ConfigError(f"there is no placement {namespace}/{name}", remedy="name it as it is, its namespace by -n")
    return found


def _unsaved(file: Path, given: str, namespace: str) -> Placement:
    if not file.exists():
        raise ConfigError("cannot be read: no such file", file=str(file))
    found = [each for each in cluster_objects.from_files((file,))[0] if isinstance(each, Placement)]
    if len(found) != 1:
        raise ConfigError(f"found {len(found)} Placements, expected one", file=str(file))
    placement = found[0]
    within = given or placement.namespace or namespace
    metadata = msgspec.structs.replace(placement.metadata, namespace=within)
    return msgspec.structs.replace(placement, metadata=metadata)


# -- for people


def show(console: Console, answer: Answer) -> None:
    named, condition = answer["placement"]["metadata"], satisfied(answer)
    if answer["error"]:
        console.print(f"{named['namespace']}/{named['name']} cannot be decided: {answer['error']}")
        return
    chosen = f"{len(answer['selected'])} of {answer['candidates']} clusters"
    console.print(f"{named['namespace']}/{named['name']} gets {chosen}: {condition['message']} ({condition['reason']})")
    if answer["status"]["message"]:
        console.print(f"{answer['status']['code']}: {answer['status']['message']}")
    if answer["aggregatedScores"]:
        console.print(_ranked(answer))
    if answer["dropped"]:
        console.print(_dropped(answer))


def _ranked(answer: Answer) -> Table:
    columns = [f"{each['name']} ×{each['weight']}" for each in answer["prioritizeResults"]]
    table = Table("cluster", "total", *columns, "")
    selected = {each["clusterName"] for each in answer["selected"]}
    needs = {each["clusterName"]: each["needs"] for each in answer["passedOver"]}
    ordered: list[Any] = sorted(answer["aggregatedScores"], key=lambda each: each["clusterName"] not in selected)
    for each in ordered[:MOST_SHOWN]:
        name = each["clusterName"]
        scores = (str(of["scores"].get(name, "")) for of in answer["prioritizeResults"])
        lacks = f"needs +{needs[name]} to enter" if name in needs else ""
        table.add_row(name, str(each["score"]), *scores, "selected" if name in selected else lacks)
    return _capped(table, len(ordered))


def _dropped(answer: Answer) -> Table:
    table = Table("cluster", "dropped by", "because")
    for each in answer["dropped"][:MOST_SHOWN]:
        table.add_row(each["clusterName"], each["plugin"], each["reason"])
    return _capped(table, len(answer["dropped"]))


def _capped(table: Table, number: int) -> Table:
    if number > MOST_SHOWN:
        table.caption = f"and {number - MOST_SHOWN} more; -o json has all"
    return table
