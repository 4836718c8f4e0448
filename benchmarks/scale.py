"""`make bench-scale`: 100,000 nodes and 1,000,000 bound pods in one process, in memory; --nodes and --pods for less.

The engine and the caches of `stowplan run` take in documents as an API server sends them, page by page. At a tenth of
the size and at all of it these are measured:

    memory            resident bytes for each node and for each pod
    take in           microseconds to decode an object and to hand it to the engine
    decision          a plain pod's whole way through the engine, with pods of one shape
    node's change     a node gets another label, and the next pod is decided on
    relist            microseconds for each object of a list in which nothing has changed

`growth` is how many times dearer it is at ten times the size.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import click
import msgspec

from benchmarks import object_templates, workload
from benchmarks.workload import CreateNodes, CreatePods, Template
from stowplan.apps.memory import resident
from stowplan.apps.run.configuration import instead_of_kube_scheduler
from stowplan.apps.run.tie_draw import TieDraw
from stowplan.engine.scheduler import Scheduler
from stowplan.kube.reflector_cache import ReflectorCache
from stowplan.kube.resources import RESOURCES
from stowplan.objects.actions import Bind
from stowplan.objects.changes import Put, Result
from stowplan.objects.meta import Object

PAGE, DECISIONS, CHANGES, WARM = 500, 300, 100, 20
SHARE = 10  # the smaller size is this part of the larger one
NOW = 1.0


class Size(msgspec.Struct):
    """What was measured at one size; times are medians in microseconds, CPU of this process."""

    nodes: int
    pods: int
    bytes_per_node: float
    bytes_per_pod: float
    resident_mb: float
    node_taken_in: float
    pod_taken_in: float
    decision: float
    node_change: float
    relisted_node: float
    relisted_pod: float


class ScaledCluster:
    """The engine and its caches, filled with documents."""

    def __init__(self, per_node: int) -> None:
        self._engine = Scheduler(instead_of_kube_scheduler().profiles, TieDraw())
        self._caches = {kind: ReflectorCache(RESOURCES[kind], _fail) for kind in ("Node", "Pod")}
        basic = workload.every()["basic"].workload_template
        self._nodes = object_templates.node_templates(next(s for s in basic if isinstance(s, CreateNodes)))
        self._pod = _as_stored(next(step for step in basic if isinstance(step, CreatePods)).pod_templates[0])
        self._bound, self._decided, self._per_node = 0, 0, per_node
        self.nodes = 0
        self.memory = {"Node": 0, "Pod": 0}

    def grow(self, nodes: int, pods: int) -> tuple[float, float]:
        """Take in objects until there are so many. Return the microseconds for a node and for a pod."""
        node_range, pod_range = range(self.nodes, nodes), range(self._bound, pods)
        self.nodes, self._bound = nodes, pods
        return (
            self._taken_in("Node", self._node_documents(node_range), len(node_range)),
            self._taken_in("Pod", self._pod_documents(pod_range), len(pod_range)),
        )

    def _taken_in(self, kind: str, documents: Iterator[bytes], count: int) -> float:
        before, seconds, cache = resident(), 0.0, self._caches[kind]
        seen: set[str] = set(cache.objects)  # not a relist: nothing of it is known
        for page in _pages(documents):
            begun = time.process_time()
            for change in cache.apply_page(page, seen):
                self._engine.handle(change, NOW)
            seconds += time.process_time() - begun
        del seen
        gc.collect()
        gc.freeze()
        self.memory[kind] += resident() - before
        return 1e6 * seconds / max(count, 1)

    def relist(self, kind: str) -> float:
        """Microseconds for each object of a list in which nothing has changed."""
        cache, seconds, seen = self._caches[kind], 0.0, set[str]()
        count = self.nodes if kind == "Node" else self._bound
        documents = (self._node_documents if kind == "Node" else self._pod_documents)(range(count))
        for page in _pages(documents):
            begun = time.process_time()
            if cache.apply_page(page, seen):
                raise RuntimeError(f"a list without changes of {kind} has changes")
            seconds += time.process_time() - begun
        begun = time.process_time()
        if cache.remove_missing(seen):
            raise RuntimeError(f"a list without changes of {kind} has removals")
        return 1e6 * (seconds + time.process_time() - begun) / max(count, 1)

    def decisions(self) -> float:
        return median(_microseconds(self._decide) for _ in range(WARM + DECISIONS))

    def node_changes(self) -> float:
        """A change of a node, and the decision after it."""
        numbers = iter(range(WARM + CHANGES))

        def change_and_decide() -> None:
            number = next(numbers)
            known = self._caches["Node"].objects[f"node-{number * 37 % self.nodes}"]
            labels = {**known.metadata.labels, "changed": str(number)}
            metadata = msgspec.structs.replace(known.metadata, labels=labels)
            self._engine.handle(Put(msgspec.structs.replace(known, metadata=metadata)), NOW)
            self._decide()

        return median(_microseconds(change_and_decide) for _ in range(WARM + CHANGES))

    def _decide(self) -> None:
        """A new pod comes, is decided on and bound."""
        self._decided += 1
        (document,) = object_templates.documents([self._pod], range(10**9 + self._decided, 10**9 + self._decided + 1))
        found: Object = RESOURCES["Pod"].decode(document.replace(b"{uid}", b"new-%d" % self._decided))
        actions = [*self._engine.handle(Put(found), NOW), *self._engine.step(NOW)]
        binds = [action for action in actions if isinstance(action, Bind)]
        if len(binds) != 1:
            raise RuntimeError(f"a plain pod was not bound: {actions}")
        self._engine.handle(Result(binds[0].id, 201), NOW)

    def _node_documents(self, numbers: range) -> Iterator[bytes]:
        for number, document in zip(numbers, object_templates.documents(self._nodes, numbers), strict=True):
            identity = b'"metadata":{"uid":"node-%d","resourceVersion":"%d",' % (number, number + 1)
            yield document.replace(b'"metadata":{', identity, 1)

    def _pod_documents(self, numbers: range) -> Iterator[bytes]:
        for number, document in zip(numbers, object_templates.documents([self._pod], numbers), strict=True):
            bound = b'"nodeName":"node-%d",' % (number // self._per_node)
            placed = document.replace(b'"spec":{', b'"spec":{' + bound, 1)
            yield placed.replace(b"{uid}", b"0b6a3c52-93b7-4a54-8f0b-%012d" % number)


def _as_stored(template: Template) -> Template:
    """The template with what an API server adds to a pod."""
    metadata = {
        **template["metadata"],
        "namespace": "default",
        "uid": "{uid}",
        "resourceVersion": "7",
        "creationTimestamp": "2026-04-02T08:15:11Z",
    }
    spec = {"schedulerName": "default-scheduler", "restartPolicy": "Always", "priority": 0, **template["spec"]}
    return {**template, "metadata": metadata, "spec": spec, "status": {"phase": "Pending", "qosClass": "Guaranteed"}}


def _pages(documents: Iterator[bytes]) -> Iterator[list[msgspec.Raw]]:
    page: list[msgspec.Raw] = []
    for document in documents:
        page.append(msgspec.Raw(document))
        if len(page) == PAGE:
            yield page
            page = []
    if page:
        yield page


def _microseconds(work: Callable[[], None]) -> float:
    begun = time.process_time_ns()
    work()
    return (time.process_time_ns() - begun) / 1e3


def _fail(problem: str) -> None:
    raise RuntimeError(problem)


def measure(nodes: int, pods: int) -> list[Size]:
    cluster, found = ScaledCluster(max(pods // nodes, 1)), list[Size]()
    for part in (SHARE, 1):
        node_taken_in, pod_taken_in = cluster.grow(nodes // part, pods // part)
        found.append(
            Size(
                nodes=nodes // part,
                pods=pods // part,
                bytes_per_node=cluster.memory["Node"] / (nodes // part),
                bytes_per_pod=cluster.memory["Pod"] / (pods // part),
                resident_mb=resident() / 1e6,
                node_taken_in=node_taken_in,
                pod_taken_in=pod_taken_in,
                decision=cluster.decisions(),
                node_change=cluster.node_changes(),
                relisted_node=cluster.relist("Node"),
                relisted_pod=cluster.relist("Pod"),
            )
        )
        click.echo(f"{nodes // part:,} nodes and {pods // part:,} pods are measured", err=True)
    return found


def table(sizes: list[Size]) -> Iterator[str]:
    small, large = sizes
    yield f"{'':24}{small.nodes:>14,}{large.nodes:>14,} nodes"
    yield f"{'':24}{small.pods:>14,}{large.pods:>14,} pods      growth"
    for field in msgspec.structs.fields(Size)[2:]:
        one, two = getattr(small, field.name), getattr(large, field.name)
        yield f"{field.name:24}{one:>14,.1f}{two:>14,.1f}{two / one if one else 0:>18.2f}"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--nodes", type=click.IntRange(100), default=100_000, show_default=True)
@click.option("--pods", type=click.IntRange(100), default=1_000_000, show_default=True)
@click.option("--json", "file", type=click.Path(path_type=Path), default="build/bench-scale.json", show_default=True)
def main(nodes: int, pods: int, file: Path) -> None:
    """Fill one process with nodes and bound pods, and measure what it holds and what each thing costs."""
    sizes = measure(nodes, pods)
    for each in table(sizes):
        click.echo(each)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(sizes), indent=2) + b"\n")
    sys.exit(0)


if __name__ == "__main__":
    main()
