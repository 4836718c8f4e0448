"""`python -m benchmarks.ui`: what the pages cost, in the browser and in the scheduler.

    page        500 changes a second of pods at 5,000 nodes and 50,000 pods are played to the overview in Chromium. Of
                the browser's own trace: the time of script, style, layout and paint of each update, 95th percentile
    scheduler   the CPU of `stowplan run` per 1,000 pods, with three clients of its event stream and without, by turns

The changes are recorded: pods that come, get a node and go, drawn with a seed. They are told to the model that a live
cluster fills, so that the page, the events and the browser are those of `stowplan ui`; only the watch is left out.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks.ui_scheduler import compare
from benchmarks.ui_trace import Updates, recorded
from stowplan.apps import profile_loader
from stowplan.apps.explain.sources import FileSource
from stowplan.apps.logging import Log
from stowplan.apps.place.configuration import load_policy
from stowplan.apps.ui import service
from stowplan.apps.ui.access import BrowserAccess, new_token
from stowplan.apps.ui.cluster import ClusterModel, Policies
from stowplan.apps.ui.simulated_runs import SimulatedRuns
from stowplan.apps.ui.site import Site
from stowplan.objects.changes import Change, Gone, Put
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.testing import a_node, a_pod

AT_MOST_MS, AT_MOST_MORE = 25.0, 0.05
PER_SECOND, EVERY = 500, 0.05


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--nodes", type=click.IntRange(1), default=5000, show_default=True)
@click.option("--pods", type=click.IntRange(1), default=50_000, show_default=True)
@click.option("--seconds", type=click.IntRange(1), default=30, show_default=True, help="The length of the stream.")
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True, help="Of the scheduler, by turns.")
@click.option("--only", type=click.Choice(["page", "scheduler"]), help="One of the two.")
@click.option("--json", "out", type=click.Path(path_type=Path), help="Write the figures there.")
@click.option("--check", is_flag=True, help="Exit 1 if a figure is worse than it must be.")
def main(nodes: int, pods: int, seconds: int, rounds: int, only: str | None, out: Path | None, check: bool) -> None:
    """Measure the page in Chromium, and the scheduler with three event streams."""
    found: dict[str, Any] = {}
    if only != "scheduler":
        found["page"] = page_figures(nodes, pods, seconds)
        click.echo(f"page: {json.dumps(found['page'])}")
    if only != "page":
        found["scheduler"] = compare(rounds)
        click.echo(f"scheduler: {json.dumps(found['scheduler'])}")
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    slow = found.get("page", {}).get("p95", 0.0) > AT_MOST_MS
    more = found.get("scheduler", {}).get("more", 0.0) > AT_MOST_MORE
    sys.exit(1 if check and (slow or more) else 0)


def page_figures(nodes: int, pods: int, seconds: int) -> dict[str, Any]:
    """Play the stream to the overview in a browser; return the figures of its updates."""
    objects, stream = a_cluster(nodes, pods), list(changes(nodes, pods, seconds * PER_SECOND))
    with served(objects) as (model, address):
        player = threading.Thread(target=play, args=(model, stream), daemon=True)
        updates: Updates = recorded(address, player)
    told = sorted(updates.milliseconds)
    return {
        "nodes": nodes, "pods": pods, "changes": len(stream), "seconds": seconds, "updates": len(told),
        "median": round(median(told), 2), "p95": round(told[int(0.95 * (len(told) - 1))], 2),
        "most": round(told[-1], 2),
        "longTasks": sum(each > 50 for each in told),
    }  # fmt: skip


def a_cluster(nodes: int, pods: int) -> list[Object]:
    found: list[Object] = [
        a_node(f"node-{at}", cpu=64, memory="256Gi", labels={"topology.kubernetes.io/zone": f"z{at % 3}"})
        for at in range(nodes)
    ]
    draw = random.Random(1)
    return [*found, *(a_pod(f"p-{at}", cpu=1 + at % 4, node=f"node-{draw.randrange(nodes)}") for at in range(pods))]


def changes(nodes: int, pods: int, number: int) -> Iterator[Change]:
    """Yield changes by turns: a pod comes, it gets a node, an older one goes."""
    draw, waiting = random.Random(2), list[str]()
    for at in range(number):
        if at % 3 == 0:
            waiting.append(f"new-{at}")
            yield Put(a_pod(waiting[-1], cpu=1 + at % 4))
        elif at % 3 == 1 and waiting:
            name = waiting.pop(0)
            yield Put(a_pod(name, cpu=1 + int(name[4:]) % 4, node=f"node-{draw.randrange(nodes)}"))
        else:
            yield Gone(a_pod(f"p-{draw.randrange(pods)}"))


def play(model: ClusterModel, stream: list[Change]) -> None:
    """Tell the changes at their pace."""
    batch, begun = round(PER_SECOND * EVERY), time.monotonic()
    for turn, at in enumerate(range(0, len(stream), batch)):
        model.tell([_known(model, each) for each in stream[at : at + batch]])
        time.sleep(max(begun + (turn + 1) * EVERY - time.monotonic(), 0))


def _known(model: ClusterModel, change: Change) -> Change:
    """A deletion names the pod as it is known."""
    if isinstance(change, Gone) and isinstance(change.object, Pod):
        known = model.snapshot.objects.get(("Pod", change.object.key))
        return change if known is None else Gone(known)
    return change


@contextmanager
def served(objects: list[Object]) -> Iterator[tuple[ClusterModel, str]]:
    """Serve the pages of a model with these objects; it counts as live."""
    configuration, profiles = profile_loader.for_questions(None)
    policies = Policies(configuration, profiles, load_policy(None).policy)
    model = ClusterModel("the benchmark", policies, lambda: FileSource(()), is_live=True)
    model.begin(objects)
    access = BrowserAccess(new_token())
    with service.serving(Site(model, SimulatedRuns(), access), access, 0, Log(0)) as address:
        asyncio.run(model.ask(lambda found: found.version))
        yield model, address
    model.close()


if __name__ == "__main__":
    os.environ.setdefault("TMPDIR", tempfile.gettempdir())
    main()
