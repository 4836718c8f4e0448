"""A fleet as columns: a cluster is a row with a stable number.

A row belongs to a cluster's name while an object mentions the name: the cluster, a score of it, a decision for it. Then
the row is reused. `available` is true for clusters that exist and are not terminating.

Columns of labels, claims and scores are made when they are first read, and updated from then on. Each kind of column
has a version that grows with every change, so that what is computed from columns can be cached (`cached`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import numpy as np

from stowplan.columns.arrays import Bools, Codes, Floats, Ints, Rows
from stowplan.columns.fleet.scores import ResourceScores
from stowplan.columns.nodes.table import LabelColumn
from stowplan.columns.rows import NamedRows, longer
from stowplan.columns.vocabulary import Vocabulary
from stowplan.objects import quantity
from stowplan.objects.clusters import AddOnPlacementScore, ClusterTaint, ManagedCluster
from stowplan.objects.selectors import LabelRequirement, Selector

MOST_CACHED = 8192
MOST_COLUMNS = 1024  # of labels, and of claims; beyond that the oldest is dropped, and made again if it is read
LABELS, CLAIMS = "labels", "claims"
_NO_CLUSTER = ManagedCluster()
Value = TypeVar("Value")


class Fleet(NamedRows):
    def __init__(self) -> None:
        super().__init__()
        self.clusters: list[ManagedCluster | None] = [None] * self.capacity
        self.available: Bools = np.zeros(self.capacity, np.bool_)
        self.decided: Ints = np.zeros(self.capacity, np.int64)  # how many decisions list the cluster
        self.taint_code: Codes = np.zeros(self.capacity, np.int64)
        self.taints: Vocabulary[tuple[ClusterTaint, ...]] = Vocabulary(())
        self.allocatable: dict[str, Floats] = {}  # NaN for a cluster that does not report it, or no capacity
        self._quantities: dict[tuple[str, str], Ints] = {}  # by allocatable or capacity, and resource
        self.version: Ints = np.zeros(self.capacity, np.int64)  # of the cluster's object
        self._last_version = 0
        self.versions = dict.fromkeys(("members", "taints", "resources", LABELS, CLAIMS), 0)
        self._columns: dict[str, dict[str, LabelColumn]] = {LABELS: {}, CLAIMS: {}}
        self._scores: dict[str, ResourceScores] = {}
        self._scored: dict[int, int] = {}  # how many score objects a row has
        self._rank: tuple[int, Ints] | None = None
        self._cache: OrderedDict[Hashable, tuple[Hashable, Any]] = OrderedDict()

    # -- rows

    def _new(self, name: str) -> int:
        self.versions["members"] += 1
        return super()._new(name)

    def _release(self, row: int) -> None:
        """Release the row if no object mentions its name."""
        if self.clusters[row] is None and not self.decided[row] and not self._scored.get(row):
            self.free(row)
            self.versions["members"] += 1
            for scores in self._scores.values():
                scores.forget(row)

    def _grow(self) -> None:
        self.clusters += [None] * (self.capacity - len(self.clusters))
        for name in ("available", "decided", "taint_code", "version"):
            setattr(self, name, longer(getattr(self, name), self.capacity))
        for resource, column in self.allocatable.items():
            self.allocatable[resource] = longer(column, self.capacity, np.nan)
        for named, amounts in self._quantities.items():
            self._quantities[named] = longer(amounts, self.capacity)
        for kind in self._columns.values():
            for label in kind.values():
                label.codes = longer(label.codes, self.capacity)
        for scores in self._scores.values():
            scores.grow(self.capacity)

    def rank(self) -> Ints:
        """Return the index of each row's name among all names, sorted by bytes."""
        if self._rank is None or self._rank[0] != self.versions["members"]:
            order = sorted(range(self.size), key=lambda row: self.names[row].encode())
            ranks = np.zeros(self.capacity, np.int64)
            ranks[order] = np.arange(self.size)
            self._rank = self.versions["members"], ranks
        return self._rank[1]

    def rows(self, names: Iterable[str]) -> Rows:
        """Return the rows of the names that have one."""
        found = [row for name in names if (row := self.row_of.get(name)) is not None]
        return np.array(found, np.int64)

    def named(self, rows: Rows) -> list[str]:
        names = self.names
        return [names[row] for row in rows.tolist()]

    def cluster(self, name: str) -> ManagedCluster | None:
        row = self.row_of.get(name)
        return None if row is None else self.clusters[row]

    # -- changes

    def put(self, cluster: ManagedCluster) -> None:
        row = self.row(cluster.name)
        old = self.clusters[row]
        self.clusters[row] = cluster
        if old is None or not old.same_content(cluster):
            self._fill(row, old or _NO_CLUSTER, cluster)

    def remove(self, name: str) -> None:
        row = self.row_of.get(name)
        if row is None or (old := self.clusters[row]) is None:
            return
        self.clusters[row] = None
        self._fill(row, old, _NO_CLUSTER)
        self._release(row)

    def _fill(self, row: int, old: ManagedCluster, new: ManagedCluster) -> None:
        available = self.clusters[row] is not None and not new.terminating
        self.versions["members"] += int(self.available[row] != available)
        self.available[row] = available
        self._last_version += 1
        self.version[row] = self._last_version
        self._fill_values(LABELS, row, old.labels, new.labels)
        self._fill_values(CLAIMS, row, old.claims, new.claims)
        if old.spec.taints != new.spec.taints:
            self._fill_taints(row, new.spec.taints)
        if (old.status.allocatable, old.status.capacity) != (new.status.allocatable, new.status.capacity):
            self.versions["resources"] += 1
            for resource, column in self.allocatable.items():
                column[row] = _amount(new, resource)
            for (kind, resource), amounts in self._quantities.items():
                amounts[row] = _quantity(new, kind, resource)

    def _fill_values(self, kind: str, row: int, old: dict[str, str], new: dict[str, str]) -> None:
        if old == new:
            return
        self.versions[kind] += 1
        for key, column in self._columns[kind].items():
            if old.get(key) != new.get(key):
                column.put(row, new.get(key))

    def _fill_taints(self, row: int, taints: tuple[ClusterTaint, ...]) -> None:
        before = int(self.taint_code[row])
        self.versions["taints"] += 1
        self.taint_code[row] = self.taints.hold(taints) if taints else 0
        if before:
            self.taints.release(before)

    def put_score(self, score: AddOnPlacementScore) -> None:
        row = self.row(score.cluster)
        if self.scores(score.name).put(row, score) is None:
            self._scored[row] = self._scored.get(row, 0) + 1

    def remove_score(self, score: AddOnPlacementScore) -> None:
        row = self.row_of.get(score.cluster)
        if row is not None and self.scores(score.name).remove(row) is not None:
            self._scored[row] -= 1
            self._release(row)

    def count_decision(self, names: Iterable[str], by: int) -> None:
        """Add to the number of decisions that list these clusters; a negative number subtracts."""
        for name in names:
            row = self.row(name)
            self.decided[row] += by
            if not self.decided[row]:
                self._release(row)

    # -- columns

    def column(self, kind: str, key: str) -> LabelColumn:
        """Return the column of a label or a claim. It is made from the clusters when it is first read."""
        columns = self._columns[kind]
        column = columns.get(key)
        if column is None:
            if len(columns) >= MOST_COLUMNS:
                del columns[next(iter(columns))]
            column = columns[key] = LabelColumn(self.capacity)
            for row, cluster in enumerate(self.clusters):
                value = None if cluster is None else getattr(cluster, kind).get(key)
                if value is not None:
                    column.put(row, value)
        return column

    def amounts(self, resource: str) -> Floats:
        """Return what each cluster has of a resource; NaN for a cluster that does not report it."""
        column = self.allocatable.get(resource)
        if column is None:
            column = self.allocatable[resource] = np.full(self.capacity, np.nan)
            for row, cluster in enumerate(self.clusters):
                if cluster is not None:
                    column[row] = _amount(cluster, resource)
        return column

    def quantities(self, kind: str, resource: str) -> Ints:
        """Return what each cluster reports as `allocatable` or `capacity`, cpu in thousandths; 0 if nothing."""
        column = self._quantities.get((kind, resource))
        if column is None:
            column = self._quantities[kind, resource] = np.zeros(self.capacity, np.int64)
            for row, cluster in enumerate(self.clusters):
                if cluster is not None:
                    column[row] = _quantity(cluster, kind, resource)
        return column

    def scores(self, resource: str) -> ResourceScores:
        """Return the AddOnPlacementScores of this name."""
        scores = self._scores.get(resource)
        if scores is None:
            scores = self._scores[resource] = ResourceScores(self.capacity)
        return scores

    def expired_scores(self, now: float) -> int:
        """Return how many objects with scores have expired."""
        return sum(int(scores.expired(now).sum()) for scores in self._scores.values())

    def known_scores(self, resource: str) -> ResourceScores | None:
        """Return the AddOnPlacementScores of this name, if there are any: expressions may make up many names."""
        return self._scores.get(resource)

    @property
    def scores_version(self) -> int:
        """Grows with every change of any score."""
        return sum(scores.version for scores in self._scores.values())

    # -- computed values

    def cached(
        self,
        key: Hashable,
        version: Hashable,
        compute: Callable[[], Value],
        valid: Callable[[Value], bool] = lambda _: True,
    ) -> Value:
        """Return a computed value. It is computed again if its version has changed, or it is no longer valid.

        The cache drops the least recently used values first.
        """
        entry = self._cache.get(key)
        if entry is not None and entry[0] == version and valid(entry[1]):
            self._cache.move_to_end(key)
            return entry[1]  # type: ignore[no-any-return]
        found = compute()
        self._cache[key] = version, found
        if len(self._cache) > MOST_CACHED:
            self._cache.popitem(last=False)
        return found

    def matching(self, kind: str, selector: Selector | None) -> Bools:
        """Return for each row whether a selector matches its labels (or claims)."""
        version = (self.versions[kind], self.capacity)
        return self.cached((kind, selector), version, lambda: self._matching(kind, selector))

    def _matching(self, kind: str, selector: Selector | None) -> Bools:
        found = np.full(self.capacity, selector is not None)
        for requirement in selector or ():
            column = self.column(kind, requirement.key)
            found &= _matches(column, requirement)[column.codes]
        found.flags.writeable = False
        return found


def _matches(column: LabelColumn, requirement: LabelRequirement) -> Bools:
    """Return for each code of a value whether the value matches. Code 0 is the missing value."""
    key = requirement.key
    found = [requirement.matches({} if value is None else {key: value}) for value in column.values.values]
    return np.array(found, np.bool_)


def _amount(cluster: ManagedCluster, resource: str) -> float:
    status = cluster.status
    if resource not in status.allocatable or resource not in status.capacity:
        return float("nan")
    return quantity.approximate(status.allocatable[resource])


def _quantity(cluster: ManagedCluster, kind: str, resource: str) -> int:
    text = getattr(cluster.status, kind).get(resource)
    return 0 if text is None else quantity.of(resource, text)
