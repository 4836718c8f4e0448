"""The way of one pod, of one placement, or of one explain through the code: which modules it crosses, in which order.

    python -m tests.walk pod|placement|explain [--summary] [--calls]

    pod         submitted ─► decided ─► bound ─► seen bound, by a scheduler that has bound one like it before
    placement   put ─► decided ─► written ─► seen written, by an engine that has decided one like it before
    explain     a question about a pending pod ─► its answer, in a cluster where one like it was explained before

A reader who follows one of them opens another file at each change of module, so these switches are counted: a switch
is two consecutive calls, as `sys.setprofile` sees them, in different modules of `engine` (or `placement`). A generator
that goes on is called again. What Python writes itself, such as a dataclass's `__init__`, is in no file and is left
out, and so is what the fake server does. Versions of Python see different calls: compare figures of one version.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

import stowplan
from stowplan.apps.explain.snapshot import Snapshot
from stowplan.engine.scheduler import Scheduler
from stowplan.objects.actions import Bind, Record
from stowplan.objects.changes import Put, Result
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod, a_profile
from tests.placement.fleets import a_placement, some_clusters
from tests.placement.hub import Hub

SOURCE = f"{Path(stowplan.__file__).parent}/"
NODES = [a_node(name) for name in ("a", "b", "c")]
MOST_STEPS = 10


class Call(NamedTuple):
    module: str
    function: str


class Walk:
    """The calls below src/stowplan while something is traced, its outcome, and the packages in which switches are
    counted.
    """

    def __init__(self, *packages: str) -> None:
        self.packages, self.calls, self.ended = packages, list[Call](), ""

    def watch(self, function: Callable[..., Any], *args: Any) -> Any:
        sys.setprofile(self._saw)
        try:
            return function(*args)
        finally:
            sys.setprofile(None)

    def follow(self, engine: object) -> None:
        """Trace everything that comes into this engine from now on."""
        for name in ("handle", "step"):
            setattr(engine, name, partial(self.watch, getattr(engine, name)))

    def _saw(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            self.calls.append(Call(frame.f_globals["__name__"], frame.f_code.co_qualname))

    def summary(self) -> str:
        modules = [call.module for call in self.calls]
        ours, packages = within(modules, self.packages), " or ".join(self.packages)
        crossed = f"files crossed: {len(set(modules))}, in {len(modules)} calls"
        touched = f"modules of {packages}: {len(set(ours))}, in {len(ours)} calls"
        return f"ended: {self.ended}\n{crossed}\n{touched}\nswitches: {switches(ours)}"


def within(modules: Iterable[str], packages: Iterable[str]) -> list[str]:
    starts = tuple(f"{package}." for package in packages)
    return [module for module in modules if f"{module}.".startswith(starts)]


def switches(modules: Iterable[str]) -> int:
    return sum(one != next_one for one, next_one in pairwise(modules))


def pod() -> Walk:
    walk, scheduler = Walk("stowplan.engine"), Scheduler({"default-scheduler": a_profile()}, np.random.default_rng(0))
    for node in NODES:
        scheduler.handle(Put(node), 0.0)
    _bind(scheduler, "first")
    walk.follow(scheduler)
    walk.ended = _bind(scheduler, "second")
    return walk


def _bind(scheduler: Scheduler, name: str) -> str:
    """Return the outcome: the pod's node."""
    scheduler.handle(Put(a_pod(name, cpu="100m")), 0.0)
    bind = next(each for _ in range(MOST_STEPS) for each in scheduler.step(0.0) if isinstance(each, Bind))
    said = [each.note for each in scheduler.handle(Result(bind.id), 0.0) if isinstance(each, Record)]
    scheduler.handle(Put(a_pod(name, cpu="100m", node=bind.node_name)), 0.0)
    assert scheduler.next_deadline() is None, "something is still awaited"
    return ", ".join(said)


def placement() -> Walk:
    walk, hub = Walk("stowplan.engine", "stowplan.placement"), Hub(*some_clusters(3))
    _place(hub, "first")
    walk.follow(hub.engine)
    walk.ended = _place(hub, "second")
    return walk


def _place(hub: Hub, name: str) -> str:
    hub.put(a_placement(name, numberOfClusters=2))
    hub.settle()
    return f"{hub.condition('PlacementSatisfied', f'test/{name}')[1]}: {', '.join(hub.chosen(f'test/{name}'))}"


def explain() -> Walk:
    walk, pods = Walk("stowplan.engine"), [a_pod(name, cpu="100m") for name in ("first", "second")]
    ask = _explainer(pods)
    ask(pods[0])
    walk.ended = f"{pods[1].key} goes to {walk.watch(ask, pods[1])}"
    return walk


def _explainer(pods: list[Pod]) -> Callable[[Pod], str | None]:
    """Explain a pod as `stowplan explain` does for a pod of a dump."""
    case = Snapshot([*NODES, *pods], {"default-scheduler": a_profile()})
    return lambda pod: case.answer(pod).node


WALKS = {"pod": pod, "placement": placement, "explain": explain}


def collapsed(calls: Iterable[Call]) -> Iterator[str]:
    """Merge consecutive calls in one module into one line."""
    for module, together in groupby(calls, key=lambda call: call.module):
        names = [call.function for call in together]
        shown = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
        yield f"{module}  ({len(names)} call{'s' * (len(names) > 1)})  {shown}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walk", choices=WALKS)
    parser.add_argument("--summary", action="store_true", help="only the figures")
    parser.add_argument("--calls", action="store_true", help="every call")
    options = parser.parse_args()
    walk = WALKS[options.walk]()
    lines = ("  ".join(call) for call in walk.calls) if options.calls else collapsed(walk.calls)
    sys.stdout.writelines(f"{line}\n" for line in (*(() if options.summary else lines), walk.summary()))


if __name__ == "__main__":
    main()
