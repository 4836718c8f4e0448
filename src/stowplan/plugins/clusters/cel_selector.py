"""CEL expressions of a predicate: the environment they are checked in, and the clusters for which all are true.

Results are cached per cluster. They are evaluated again if the cluster, or a score that they read, has changed, or if a
score has expired. An expression that fails, costs too much, or is neither true nor false does not match. One pass over
all clusters has a limit of cost as well; the clusters beyond it do not match until the next pass.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np

from stowplan.cel import costs
from stowplan.cel.environment import CelProgram, Environment
from stowplan.cel.evaluation import CelEvaluation
from stowplan.cel.functions import Function
from stowplan.cel.syntax import SyntaxNode
from stowplan.cel.values import CelError, CostError, as_string
from stowplan.columns.arrays import Bools, Floats, Ints, Rows
from stowplan.columns.fleet.clusters import Fleet
from stowplan.columns.fleet.one_cluster import OneCluster
from stowplan.columns.fleet.views import WholeFleet

MOST_PER_EXPRESSION = 1_000_000
MOST_PER_CLUSTER = 10_000_000
MOST_PER_PASS = 20_000_000  # not with `compatibility: ocm`
NEVER = float("inf")


def _parse_json(text: Any) -> Any:
    """Numbers are doubles, as in Go."""
    try:
        return json.loads(as_string(text), parse_int=float, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise CelError(f"not JSON: {error}") from None


def _refuse_constant(constant: str) -> Any:
    raise ValueError(constant)


VARIABLE = "managedCluster"
ENVIRONMENT = Environment(
    variables={VARIABLE: "map<string, dyn>"},
    functions={
        "scores": Function((("dyn", ("string",), "list<dyn>"),)),
        "parseJSON": Function((("string", (), "dyn"),), _parse_json, costs.by_length),
    },
)


@lru_cache(maxsize=4096)
def compiled(expressions: tuple[str, ...]) -> CelExpressions:
    return CelExpressions(expressions)


class CelExpressions:
    def __init__(self, expressions: tuple[str, ...]) -> None:
        self.expressions = expressions
        self._programs = [ENVIRONMENT.compile(expression) for expression in expressions]
        trees = [program.tree for program in self._programs]
        self.resources = _resources(trees)
        self._constant = [not any(_reads_cluster(node) for node in tree.walk()) for tree in trees]
        self._too_costly: set[int] = set()  # expressions that exceed their cost for every cluster

    def __bool__(self) -> bool:
        return bool(self._programs)

    def matches(self, fleet: WholeFleet, rows: Rows) -> Bools:
        """Return for which of these clusters all expressions are true."""
        table = fleet.table
        results = table.cached(("cel", self.expressions, fleet.ocm), table.capacity, lambda: CelResults(table.capacity))
        outdated = results.outdated(rows, self._versions(table, rows), fleet.now)
        left = MOST_PER_PASS
        for row in rows[outdated].tolist():
            matches, cost, until = self.match(fleet, row) if left > 0 or fleet.ocm else (False, 0, fleet.now)
            left -= cost
            results.put(row, self._versions(table, np.array([row]))[0], matches, until)
        return results.matches[rows]

    def _versions(self, table: Fleet, rows: Rows) -> Ints:
        """Return a version per cluster that changes with the cluster and with every score that is read."""
        versions = table.version[rows].copy()
        if self.resources is None:
            return versions + (table.scores_version << 32)
        for resource in self.resources:
            versions += table.scores(resource).row_version[rows] << 32
        return versions

    def match(self, fleet: WholeFleet, row: int) -> tuple[bool, int, float]:
        """Return whether all expressions are true of a cluster, what the evaluation cost, and until when it holds."""
        scores, scope = _Scores(fleet, row), _scope(fleet, row)
        left = MOST_PER_CLUSTER
        for index, program in enumerate(self._programs):
            evaluation = CelEvaluation(MOST_PER_EXPRESSION, {"scores": scores.read})
            matches = index not in self._too_costly and self._is_true(index, program, scope, evaluation)
            left -= evaluation.cost
            if not matches or left < 0:
                return False, MOST_PER_CLUSTER - left, scores.valid_until
        return True, MOST_PER_CLUSTER - left, scores.valid_until

    def _is_true(self, index: int, program: CelProgram, scope: dict[str, Any], evaluation: CelEvaluation) -> bool:
        try:
            return program.run(scope, evaluation) is True
        except CostError:
            if self._constant[index]:
                self._too_costly.add(index)
        except (CelError, RecursionError):
            pass
        return False

    def why(self, cluster: OneCluster) -> str:
        """Return the first expression that does not match a cluster, and why."""
        for expression, program in zip(self.expressions, self._programs, strict=True):
            problem = self._problem(cluster.fleet, cluster.row, program)
            if problem:
                return f"{expression} {problem}"
        return ""

    def _problem(self, fleet: WholeFleet, row: int, program: CelProgram) -> str:
        evaluation = CelEvaluation(MOST_PER_EXPRESSION, {"scores": _Scores(fleet, row).read})
        try:
            found = program.run(_scope(fleet, row), evaluation)
        except (CelError, CostError, RecursionError) as error:
            return f"fails: {error}"
        return "" if found is True else "is false" if found is False else "is neither true nor false"


def _scope(fleet: WholeFleet, row: int) -> dict[str, Any]:
    cluster = fleet.table.clusters[row]
    return {VARIABLE: {} if cluster is None else cluster.document}


class _Scores:
    """`managedCluster.scores(resource)`, evaluated for one cluster.

    Scores that have expired are missing (an addition of ours). `valid_until` is when the first of those read expires.
    """

    def __init__(self, fleet: WholeFleet, row: int) -> None:
        self._fleet, self._row = fleet, row
        self.valid_until = NEVER

    def read(self, cluster: Any, resource: Any) -> list[dict[str, Any]]:
        row = self._row_of(cluster)
        found = None if row is None else self._fleet.table.scores(resource).objects.get(row)
        if found is None:
            raise CelError(f"failed to get score: {resource}")
        if not self._fleet.ocm:
            if found.valid_until < self._fleet.now:
                raise CelError(f"the scores of {resource} are no longer valid")
            self.valid_until = min(self.valid_until, found.valid_until)
        return [{"name": each.name, "value": each.value} for each in found.status.scores]

    def _row_of(self, cluster: Any) -> int | None:
        """Return the row by the cluster's name: an expression may pass any map as the cluster."""
        metadata = cluster.get("metadata") if isinstance(cluster, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(name, str):
            raise CelError("failed to get cluster name")
        return self._fleet.table.row_of.get(name)


class CelResults:
    """The cached results of some expressions, per row, each for a version and until a moment."""

    def __init__(self, capacity: int) -> None:
        self.matches: Bools = np.zeros(capacity, np.bool_)
        self._versions: Ints = np.full(capacity, -1, np.int64)
        self._until: Floats = np.full(capacity, NEVER)

    def outdated(self, rows: Rows, versions: Ints, now: float) -> Bools:
        found: Bools = (self._versions[rows] != versions) | (self._until[rows] < now)
        return found

    def put(self, row: int, version: int, matches: bool, until: float) -> None:
        self.matches[row], self._versions[row], self._until[row] = matches, version, until


def _resources(trees: list[SyntaxNode]) -> frozenset[str] | None:
    """Return the score objects that are read; None if their names are only known when an expression runs."""
    names: set[str] = set()
    for call in (node for tree in trees for node in tree.walk() if node.kind == "call" and node.name == "scores"):
        if call.args[0].kind != "ident" or call.args[1].kind != "const":
            return None
        names.add(call.args[1].value)
    return frozenset(names)


def _reads_cluster(node: SyntaxNode) -> bool:
    return node.kind == "ident" and node.name == VARIABLE
