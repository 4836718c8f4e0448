"""CEL expressions of a predicate: the environment they are checked in, and the clusters for which all are true.

Results are cached per cluster. They are evaluated again if the cluster, or a score that they read, has changed, or if a
score has expired. An expression that fails, costs too much, or is neither true nor false does not match.

A decision may evaluate for some cost only (`CelWork`). Beyond that it ends unfinished, other placements are decided,
and then it goes on where it was. An expression that costs much is only evaluated when nothing else is due.

An expression that costs too much for a second cluster, or for one if it is not about the cluster, is set aside: it is
not evaluated, and the placement is misconfigured (not with `compatibility: ocm`). An expression that is about the
cluster is tried again after a while, and then after twice as long.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from stowplan.cel import costs, sizes
from stowplan.cel.environment import Environment
from stowplan.cel.evaluation import CelEvaluation, Run
from stowplan.cel.functions import Function
from stowplan.cel.syntax import SyntaxNode
from stowplan.cel.values import CelError, CostError, as_string
from stowplan.columns.arrays import Bools, Floats, Ints, Rows
from stowplan.columns.fleet.clusters import Fleet
from stowplan.columns.fleet.one_cluster import OneCluster
from stowplan.columns.fleet.views import WholeFleet
from stowplan.framework.placement.interfaces import UnfinishedError

MOST_PER_EXPRESSION = 1_000_000
MOST_PER_CLUSTER = 10_000_000  # of all expressions, with `compatibility: ocm`
MOST_PER_CLUSTER_OF_OURS = 2_000_000
MOST_AT_ONCE = 200_000  # until a decision ends unfinished
FIRST_TRY = 50_000  # of an expression, while other placements are due
BYTES_PER_COST = 4  # how many bytes that values take are as much work as a cost of 1
MOST_EXPLAINED = 2_000_000  # for why clusters do not match, at one moment
MOST_CACHED_TEXT, OVERHEAD = 1 << 19, 16  # characters of all compiled expressions, and what each counts besides
SET_ASIDE_FOR = 300.0  # seconds, and twice as long each time
NEVER = float("inf")
WORK_GOES_ON = "the CEL expressions are still being evaluated"


def _parse_json(text: Any) -> Any:
    """Numbers are doubles, as in Go."""
    try:
        return json.loads(as_string(text), parse_int=float, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise CelError(f"not JSON: {str(error)[:100]}") from None


def _refuse_constant(constant: str) -> Any:
    raise ValueError(constant)


VARIABLE = "managedCluster"
ENVIRONMENT = Environment(
    variables={VARIABLE: "map<string, dyn>"},
    functions={
        "scores": Function((("dyn", ("string",), "list<dyn>"),)),
        "parseJSON": Function((("string", (), "dyn"),), _parse_json, costs.by_length, sizes.of_json),
    },
)


class CompiledExpressions:
    """Expressions, compiled once. The least recently used are dropped: a program is far larger than its text."""

    def __init__(self) -> None:
        self._compiled: dict[tuple[str, ...], CelExpressions] = {}
        self._length = 0  # of all texts

    def __len__(self) -> int:
        return len(self._compiled)

    def __call__(self, expressions: tuple[str, ...]) -> CelExpressions:
        found = self._compiled.pop(expressions, None)
        if found is None:
            found = CelExpressions(expressions)
            self._length += found.length
        self._compiled[expressions] = found
        while self._length > MOST_CACHED_TEXT and len(self._compiled) > 1:
            self._length -= self._compiled.pop(next(iter(self._compiled))).length
        return found


compiled = CompiledExpressions()


class CelExpressions:
    def __init__(self, expressions: tuple[str, ...]) -> None:
        self.expressions, self.length = expressions, OVERHEAD + sum(map(len, expressions))
        programs = [ENVIRONMENT.compile(expression) for expression in expressions]
        trees = [program.tree for program in programs]
        self.resources = _resources(trees)
        self._programs = [program.run for program in programs]
        self._explained_at, self._explaining_left = -NEVER, 0
        self._costly = [CostlyExpression(not any(_reads_cluster(node) for node in tree.walk())) for tree in trees]

    def __bool__(self) -> bool:
        return bool(self._programs)

    def set_aside(self, now: float) -> str:
        """Return the expression that is not evaluated now, and why; "" if all are."""
        for index, costly in enumerate(self._costly):
            if now < costly.until:
                return f"{sizes.shown(self.expressions[index])} {costly.problem}"
        return ""

    def matches(self, fleet: WholeFleet, rows: Rows, work: CelWork) -> Bools:
        """Return for which of these clusters all expressions are true; UnfinishedError if that is too much work."""
        table = fleet.table
        results = table.cached(("cel", self.expressions, fleet.ocm), table.capacity, lambda: CelResults(table.capacity))
        outdated = results.outdated(rows, self._versions(table, rows), fleet.now)
        for row in rows[outdated].tolist():
            work.check()
            limit = MOST_PER_EXPRESSION if fleet.patient else FIRST_TRY
            matches, _, until = self.match(fleet, row, limit, work)
            results.put(row, self._versions(table, np.array([row]))[0], matches, until)
        return results.matches[rows]

    def _versions(self, table: Fleet, rows: Rows) -> Ints:
        """Return a version per cluster that changes with the cluster and with every score that is read."""
        versions = table.version[rows].copy()
        if self.resources is None:
            return versions + (table.scores_version << 32)
        for resource in self.resources:
            scores = table.known_scores(resource)
            if scores is not None:
                versions += scores.row_version[rows] << 32
        return versions

    def match(
        self, fleet: WholeFleet, row: int, limit: int = MOST_PER_EXPRESSION, work: CelWork | None = None
    ) -> tuple[bool, int, float]:
        """Return whether all expressions are true of a cluster, what the evaluation cost, and until when it holds.

        Raise UnfinishedError if one costs more than `limit`, and might yet be allowed.
        """
        scores, scope, cost = _Scores(fleet, row), _scope(fleet, row), 0
        most = MOST_PER_CLUSTER if fleet.ocm else MOST_PER_CLUSTER_OF_OURS
        for index, program in enumerate(self._programs):
            evaluation = CelEvaluation(min(limit, MOST_PER_EXPRESSION), {"scores": scores.read})
            costly = self._costly[index]
            matches = fleet.now >= costly.until and _is_true(program, scope, evaluation, costly, fleet.now)
            cost += evaluation.cost
            if work is not None:
                work.done += evaluation.cost + evaluation.taken // BYTES_PER_COST
            if cost > most:
                costly.exceed(CostError("operation cancelled: all expressions together cost too much"), fleet.now)
            if not matches or cost > most:
                until = min(scores.valid_until, costly.until) if fleet.now < costly.until else scores.valid_until
                return False, cost, until
        return True, cost, scores.valid_until

    def why(self, cluster: OneCluster) -> str:
        """Return the first expression that does not match a cluster, and why."""
        for index, expression in enumerate(self.expressions):
            problem = self._problem(cluster.fleet, cluster.row, index)
            if problem:
                return f"{expression} {problem}"
        return ""

    def _problem(self, fleet: WholeFleet, row: int, index: int) -> str:
        """Return what is wrong with an expression for a cluster. At one moment not much is evaluated for that."""
        if fleet.now < self._costly[index].until:
            return f"is set aside: {self._costly[index].problem}"
        if self._explained_at != fleet.now:
            self._explained_at, self._explaining_left = fleet.now, MOST_EXPLAINED
        if self._explaining_left <= 0:
            return "is not true"
        evaluation = CelEvaluation(MOST_PER_EXPRESSION, {"scores": _Scores(fleet, row).read})
        try:
            found = self._programs[index](_scope(fleet, row), evaluation)
        except (CelError, CostError) as error:
            return f"fails: {error}"
        except Exception as error:
            return f"fails: {type(error).__name__}"
        finally:
            self._explaining_left -= evaluation.cost
        return "" if found is True else "is false" if found is False else "is neither true nor false"


class CelWork:
    """What the expressions of a placement have cost in one decision."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        self.done = 0

    def check(self) -> None:
        if self.done > MOST_AT_ONCE:
            raise UnfinishedError(WORK_GOES_ON)


class CostlyExpression:
    """How often an expression cost too much, and until when it is set aside."""

    __slots__ = ("_pause", "constant", "exceeded", "problem", "until")

    def __init__(self, constant: bool) -> None:
        """`constant`: it is not about the cluster, so what it costs does not change."""
        self.constant, self.exceeded, self.until, self.problem = constant, 0, -NEVER, ""
        self._pause = SET_ASIDE_FOR

    def exceed(self, error: Exception, now: float) -> None:
        """Note that the expression cost too much for one cluster."""
        self.exceeded += 1
        if not self.constant and self.exceeded < 2:
            return
        self.problem = str(error) or type(error).__name__
        self.until, self.exceeded = NEVER if self.constant else now + self._pause, 0
        self._pause *= 2


def _is_true(run: Run, scope: dict[str, Any], evaluation: CelEvaluation, costly: CostlyExpression, now: float) -> bool:
    try:
        return run(scope, evaluation) is True
    except (CostError, MemoryError) as error:
        if evaluation.limit < min(evaluation.cost, MOST_PER_EXPRESSION):
            raise UnfinishedError(WORK_GOES_ON) from None
        costly.exceed(error, now)
    except Exception:  # an expression is a tenant's: whatever goes wrong, it does not match
        pass
    return False


def _scope(fleet: WholeFleet, row: int) -> dict[str, Any]:
    cluster = fleet.table.clusters[row]
    return {VARIABLE: {} if cluster is None else cluster.document}


class _Scores:
    """`managedCluster.scores(resource)`, evaluated for one cluster.

    Scores that have expired are missing (an addition of ours). `valid_until` is when the first of those read expires.
    Another cluster's scores are missing, too: an expression may make up a map with its name, and the placement's
    namespace may have no right to see that cluster.
    """

    def __init__(self, fleet: WholeFleet, row: int) -> None:
        self._fleet, self._row = fleet, row
        self._read: dict[str, list[dict[str, Any]]] = {}
        self.valid_until = NEVER

    def read(self, cluster: Any, resource: Any) -> list[dict[str, Any]]:
        if self._fleet.table.names[self._row] != _name_of(cluster):
            raise CelError(f"failed to get score: {sizes.shown(resource)}")
        if as_string(resource) not in self._read:
            self._read[resource] = self._scores(resource)
        return self._read[resource]

    def _scores(self, resource: str) -> list[dict[str, Any]]:
        known = self._fleet.table.known_scores(resource)
        found = None if known is None else known.objects.get(self._row)
        if found is None:
            raise CelError(f"failed to get score: {sizes.shown(resource)}")
        if not self._fleet.ocm:
            if found.valid_until < self._fleet.now:
                raise CelError(f"the scores of {resource} are no longer valid")
            self.valid_until = min(self.valid_until, found.valid_until)
        return [{"name": each.name, "value": each.value} for each in found.status.scores]


def _name_of(cluster: Any) -> str:
    """Return the cluster's name: an expression may pass any map as the cluster."""
    metadata = cluster.get("metadata") if isinstance(cluster, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str):
        raise CelError("failed to get cluster name")
    return name


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
