"""`stowplan place explain NAME`: which clusters a placement would get now, and what the others lack."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console
from rich.table import Table

from stowplan.apps import cluster_objects, json_output
from stowplan.apps.place import diagnosis_output
from stowplan.apps.place.configuration import load_policy
from stowplan.apps.place.explain_json import Answer, explained
from stowplan.apps.place.kinds import KINDS
from stowplan.diagnosis.placements.diagnosis import diagnose_placement
from stowplan.framework.placement.evaluation import finished
from stowplan.framework.placement.policy import ClusterPolicy
from stowplan.objects.changes import Put
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.placements import GROUP, SATISFIED, Placement
from stowplan.placement.scheduler import PlacementScheduler
from stowplan.plugins import clusters

PLACEMENT_PREFIXES = ("", "placement", "placements", f"placements.{GROUP}")
MAX_ROWS = 50


@dataclass(frozen=True)
class PlacementExplainOptions:
    """The command line."""

    name: str = ""
    namespace: str = ""  # empty: that of the context, or "default"
    files: tuple[Path, ...] = ()
    filename: Path | None = None
    config: Path | None = None
    plugin_path: tuple[Path, ...] = ()
    compatibility: str = "none"
    hysteresis: int = 0
    kubeconfig: str = ""
    context: str = ""
    output: str = "table"


def run(options: PlacementExplainOptions) -> int:
    """Explain a placement. Return 0 if it gets all clusters that it asks for, 1 if it does not."""
    if bool(options.name) == (options.filename is not None):
        given = "both NAME and --filename" if options.name else "neither NAME nor --filename"
        raise ConfigError(f"found {given}", remedy="name a placement, or a file with one")
    ocm = options.compatibility == "ocm"
    policy = load_policy(options.config, options.plugin_path, ocm=ocm).policy
    objects, namespace = _read_objects(options)
    engine = engine_of(objects, ocm=ocm, policy=policy, hysteresis=options.hysteresis)
    placement, now = _placement(options, engine, namespace), time.time()
    answer = explained(finished(lambda: engine.choose(placement, now)))
    diagnosis = diagnose_placement(placement, objects, policy, now, ocm=ocm, hysteresis=options.hysteresis)
    typed = diagnosis_output.commands(diagnosis, placement, objects, _flags(options))
    answer |= diagnosis_output.as_json(diagnosis, typed)
    if options.output == "table":
        show(
            Console(highlight=False, markup=False, emoji=False),
            answer,
            lambda console: diagnosis_output.show(console, diagnosis, typed),
        )
    else:
        about = {"apiVersion": json_output.VERSION, "kind": "PlacementExplanation"}
        json_output.echo(about | answer, options.output)
    return 0 if satisfied(answer)["status"] == "True" and not answer["error"] else 1


def engine_of(
    objects: Iterable[Object], *, ocm: bool = False, policy: ClusterPolicy | None = None, hysteresis: int = 0
) -> PlacementScheduler:
    """Return an engine that knows these objects of a hub."""
    engine = PlacementScheduler(policy or clusters.policy(ocm=ocm), ocm=ocm, hysteresis=hysteresis)
    now = time.time()
    for each in objects:
        engine.handle(Put(each), now)
    return engine


def satisfied(answer: Answer) -> Answer:
    found: Answer = next(each for each in answer["conditions"] if each["type"] == SATISFIED)
    return found


def _read_objects(options: PlacementExplainOptions) -> tuple[list[Object], str]:
    if options.files:
        return cluster_objects.from_files(options.files)[0], options.namespace or "default"
    with Console(stderr=True).status("reading the hub"):
        objects, own = cluster_objects.from_cluster(
            KINDS,
            kubeconfig=options.kubeconfig,
            context=options.context,
            on_problem=lambda problem: click.echo(f"warning: {problem}", err=True),
        )
    return objects, options.namespace or own


def _placement(options: PlacementExplainOptions, engine: PlacementScheduler, namespace: str) -> Placement:
    if options.filename is not None:
        return _unsaved(options.filename, options.namespace, namespace)
    kind, _, name = options.name.rpartition("/")
    if kind not in PLACEMENT_PREFIXES:
        raise ConfigError(f"{options.name!r} is not a placement", remedy="name a placement, and its namespace with -n")
    found = engine.placements.get(f"{namespace}/{name}")
    if found is None:
        raise ConfigError(
            f"there is no placement {namespace}/{name}", remedy="check its name, and name its namespace with -n"
        )
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


def _flags(options: PlacementExplainOptions) -> list[str]:
    """Return the flags of kubectl for the same cluster."""
    given = {"--kubeconfig": options.kubeconfig, "--context": options.context}
    return [word for flag, value in given.items() if value for word in (flag, value)]


def show(console: Console, answer: Answer, diagnosis: Callable[[Console], None] = lambda _: None) -> None:
    """Print the answer; `diagnosis` prints why the placement does not get its clusters."""
    metadata, condition = answer["placement"]["metadata"], satisfied(answer)
    if answer["error"]:
        console.print(f"{metadata['namespace']}/{metadata['name']} cannot be decided: {answer['error']}")
        return
    chosen = f"{len(answer['selected'])} of {answer['candidates']} clusters"
    console.print(
        f"{metadata['namespace']}/{metadata['name']} gets {chosen}: {condition['message']} ({condition['reason']})"
    )
    if answer["status"]["message"]:
        console.print(f"{answer['status']['code']}: {answer['status']['message']}")
    if "hysteresis" in answer:
        margin = answer["hysteresis"]["margin"]
        console.print(f"Hysteresis: another cluster must have more than {margin} points on a selected one")
    diagnosis(console)
    if answer["aggregatedScores"]:
        console.print(_ranked(answer))
    if answer["dropped"]:
        console.print(_dropped(answer))


def _ranked(answer: Answer) -> Table:
    columns = [f"{each['name']} ×{each['weight']}" for each in answer["prioritizeResults"]]
    table = Table("cluster", "total", *columns, "")
    selected = {each["clusterName"] for each in answer["selected"]}
    kept = answer.get("hysteresis", {}).get("kept", ())
    needs = {each["clusterName"]: each["needs"] for each in answer["passedOver"]}
    ordered: list[Any] = sorted(answer["aggregatedScores"], key=lambda each: each["clusterName"] not in selected)
    for each in ordered[:MAX_ROWS]:
        name = each["clusterName"]
        scores = (str(of["scores"].get(name, "")) for of in answer["prioritizeResults"])
        lacks = f"needs +{needs[name]} to enter" if name in needs else ""
        chosen = "selected, kept by hysteresis" if name in kept else "selected"
        table.add_row(name, str(each["score"]), *scores, chosen if name in selected else lacks)
    return _capped(table, len(ordered))


def _dropped(answer: Answer) -> Table:
    table = Table("cluster", "dropped by", "because")
    for each in answer["dropped"][:MAX_ROWS]:
        table.add_row(each["clusterName"], each["plugin"], each["reason"])
    return _capped(table, len(answer["dropped"]))


def _capped(table: Table, number: int) -> Table:
    if number > MAX_ROWS:
        table.caption = f"and {number - MAX_ROWS} more; -o json has all"
    return table
