"""CEL expressions of a predicate: which clusters they are all true of.

What they answered about a cluster is kept, and asked again only if the cluster, or a score that they read, has changed
since, or a score has run out of time. An expression that fails, costs too much, or is neither true nor false does not
hold. Of all clusters together a pass may cost so much and no more, whatever an expression does: beyond that, clusters
count as not matching until they are asked about again.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from stowplan.cel import evaluation, syntax
from stowplan.cel.syntax import SyntaxNode
from stowplan.cel.values import CelError, CostError
from stowplan.columns.arrays import Bools, Floats, Ints, Rows
from stowplan.columns.fleet.clusters import Fleet
from stowplan.framework.placement.decision import PlacementQuestion

MOST_PER_EXPRESSION = 1_000_000
MOST_PER_CLUSTER = 10_000_000
MOST_PER_PASS = 20_000_000  # not with `compatibility: ocm`
NEVER = float("inf")


@lru_cache(maxsize=4096)
def compiled(expressions: tuple[str, ...]) -> CelExpressions:
    return CelExpressions(expressions)


class CelExpressions:
    def __init__(self, expressions: tuple[str, ...]) -> None:
        self.expressions = expressions
        trees = [syntax.parse(expression) for expression in expressions]
        self.resources = _resources(trees)
        self._apart = [not any(_names(tree, "managedCluster")) for tree in trees]
        self._programs = [evaluation.build(tree) for tree in trees]
        self._hopeless: set[int] = set()  # expressions that cost too much whatever the cluster

    def __bool__(self) -> bool:
        return bool(self._programs)

    def holds(self, asked: PlacementQuestion, rows: Rows) -> Bools:
        """Are they true of these clusters?"""
        fleet = asked.fleet
        question = ("cel", self.expressions, asked.ocm)
        answers = fleet.kept(question, fleet.capacity, lambda: CelResults(fleet.capacity))
        stale = answers.stale(rows, self._stamps(fleet, rows), asked.now)
        left = MOST_PER_PASS
        for row in rows[stale].tolist():
            fine, cost, until = self.match(asked, row) if left > 0 or asked.ocm else (False, 0, asked.now)
            left -= cost
            answers.note(row, self._stamps(fleet, np.array([row]))[0], fine, until)
        return answers.fine[rows]

    def _stamps(self, fleet: Fleet, rows: Rows) -> Ints:
        """What the answers rest on: the version of the cluster and of all scores that are read."""
        stamps = fleet.version[rows].copy()
        if self.resources is None:
            return stamps + (fleet.scores_version << 32)
        for resource in self.resources:
            stamps += fleet.scores(resource).row_version[rows] << 32
        return stamps

    def match(self, asked: PlacementQuestion, row: int) -> tuple[bool, int, float]:
        """Are they true of this cluster; what it cost to find out; until when that stands."""
        cluster, reader = asked.fleet.clusters[row], _Scores(asked, row)
        scope = {"managedCluster": {} if cluster is None else cluster.document}
        left = MOST_PER_CLUSTER
        for index, program in enumerate(self._programs):
            meter = evaluation.Meter(MOST_PER_EXPRESSION, reader.read)
            fine = index not in self._hopeless and self._run(index, program, scope, meter)
            left -= meter.cost
            if not fine or left < 0:
                return False, MOST_PER_CLUSTER - left, reader.until
        return True, MOST_PER_CLUSTER - left, reader.until

    def _run(self, index: int, program: evaluation.Run, scope: dict[str, Any], meter: evaluation.Meter) -> bool:
        try:
            return program(scope, meter) is True
        except CostError:
            if self._apart[index]:
                self._hopeless.add(index)
        except (CelError, RecursionError):
            pass
        return False

    def why(self, asked: PlacementQuestion, row: int) -> str:
        for expression, program in zip(self.expressions, self._programs, strict=True):
            problem = self._problem(asked, row, program)
            if problem:
                return f"{expression} {problem}"
        return ""

    def _problem(self, asked: PlacementQuestion, row: int, program: evaluation.Run) -> str:
        cluster = asked.fleet.clusters[row]
        scope = {"managedCluster": {} if cluster is None else cluster.document}
        try:
            found = program(scope, evaluation.Meter(MOST_PER_EXPRESSION, _Scores(asked, row).read))
        except (CelError, CostError, RecursionError) as error:
            return f"fails: {error}"
        return "" if found is True else "is false" if found is False else "is neither true nor false"


class _Scores:
    """`managedCluster.scores(resource)` for one cluster. Scores that are no longer valid are not there (an addition of
    ours); `until` is when that will be so of the first of those that were read.
    """

    def __init__(self, asked: PlacementQuestion, row: int) -> None:
        self._asked, self._row = asked, row
        self.until = NEVER

    def read(self, cluster: Any, resource: Any) -> list[dict[str, Any]]:
        row = self._row_of(cluster)
        found = None if row is None else self._asked.fleet.scores(resource).objects.get(row)
        if found is None:
            raise CelError(f"failed to get score: {resource}")
        if not self._asked.ocm:
            if found.valid_until < self._asked.now:
                raise CelError(f"the scores of {resource} are no longer valid")
            self.until = min(self.until, found.valid_until)
        return [{"name": each.name, "value": each.value} for each in found.status.scores]

    def _row_of(self, cluster: Any) -> int | None:
        """Expressions may only make up a cluster, so it is looked up by its name."""
        metadata = cluster.get("metadata") if isinstance(cluster, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(name, str):
            raise CelError("failed to get cluster name")
        return self._asked.fleet.row_of.get(name)


class CelResults:
    """What expressions answered, per row: resting on what, and good until when."""

    def __init__(self, capacity: int) -> None:
        self.fine: Bools = np.zeros(capacity, np.bool_)
        self._stamps: Ints = np.full(capacity, -1, np.int64)
        self._until: Floats = np.full(capacity, NEVER)

    def stale(self, rows: Rows, stamps: Ints, now: float) -> Bools:
        found: Bools = (self._stamps[rows] != stamps) | (self._until[rows] < now)
        return found

    def note(self, row: int, stamp: int, fine: bool, until: float) -> None:
        self.fine[row], self._stamps[row], self._until[row] = fine, stamp, until


def _resources(trees: list[SyntaxNode]) -> frozenset[str] | None:
    """The score objects that are read; None if that is only known when it runs."""
    names: set[str] = set()
    for call in (node for tree in trees for node in _nodes(tree) if node.kind == "call" and node.name == "scores"):
        if call.args[0].kind != "ident" or call.args[1].kind != "const":
            return None
        names.add(call.args[1].value)
    return frozenset(names)


def _nodes(tree: SyntaxNode) -> Iterator[SyntaxNode]:
    yield tree
    for each in tree.args:
        yield from _nodes(each)


def _names(tree: SyntaxNode, name: str) -> Iterator[bool]:
    return (True for node in _nodes(tree) if node.kind == "ident" and node.name == name)
