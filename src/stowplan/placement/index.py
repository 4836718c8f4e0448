"""Which placements a change affects: what each decision depends on, and which clusters it may choose.

A placement that does not use a label, a claim, a resource or a score is not requeued when one changes, nor is a
placement that may not choose from the cluster's sets. Decisions of other placements requeue none: Balance reads them
when a placement is decided, as in Open Cluster Management.

What a decision reads is declared (`ClusterPolicy.reads`) by the plugins that come with Stowplan. Of all others it was
noted in the last decision (`set_noted`); a placement that has had none is queued anyway.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from typing import TypeAlias

from stowplan.columns.fleet.cluster_sets import ClusterSets
from stowplan.columns.fleet.clusters import CLAIMS, LABELS
from stowplan.columns.fleet.one_cluster import FLEET, RESOURCES, WHOLE
from stowplan.objects.clusters import AddOnPlacementScore, ManagedCluster
from stowplan.objects.placements import Placement

Keys: TypeAlias = set[str]
Table: TypeAlias = dict[Hashable, Keys]
Reads: TypeAlias = frozenset[Hashable]
NONE: Keys = set()
EVERYTHING: Reads = frozenset((LABELS, CLAIMS, WHOLE, ("scores", "")))  # what a decision may depend on


class PlacementIndex:
    """Each `by_…` method returns the keys of the affected placements, sorted."""

    def __init__(self, sets: ClusterSets) -> None:
        self._sets = sets
        self._in_namespace: Table = {}
        self._by_part: Table = {}
        self._by_score: Table = {}  # resource and score
        self._by_resource: Table = {}
        self._by_object: Table = {}  # score objects that expressions read; "": any
        self._by_set: Table = {}
        self._named_sets: dict[str, tuple[str, ...]] = {}  # the sets that a placement names
        self._sets_of: dict[str, tuple[str, ...]] = {}  # the sets that it was last decided with
        self._reads: dict[str, tuple[Reads, Reads]] = {}  # declared, and noted

    def add(self, placement: Placement, reads: Reads) -> None:
        """Index a placement by what its decision depends on."""
        self.remove(placement.key)
        self._in_namespace.setdefault(placement.namespace, set()).add(placement.key)
        self._named_sets[placement.key] = placement.spec.cluster_sets
        self._set_reads(placement.key, reads, frozenset())

    def set_noted(self, key: str, noted: Reads) -> None:
        """Index a placement by what was read in its last decision, too."""
        declared, before = self._reads[key]
        if before != noted:
            self._set_reads(key, declared, noted)

    def _set_reads(self, key: str, declared: Reads, noted: Reads) -> None:
        for table, value in self._entries(*self._reads.get(key, (frozenset(), frozenset()))):
            _discard(table, value, key)
        for table, value in self._entries(declared, noted):
            table.setdefault(value, set()).add(key)
        self._reads[key] = declared, noted

    def _entries(self, declared: Reads, noted: Reads) -> Iterator[tuple[Table, Hashable]]:
        for read in declared | noted:
            match read:
                case ("score", resource, score):
                    yield self._by_score, (resource, score)
                    yield self._by_resource, resource
                case ("scores", resource):
                    yield self._by_object, resource
                case _:
                    yield self._by_part, read

    def remove(self, key: str) -> None:
        if key in self._reads:
            self._set_reads(key, frozenset(), frozenset())
            del self._reads[key]
        _discard(self._in_namespace, key.partition("/")[0], key)
        for name in self._sets_of.pop(key, ()):
            _discard(self._by_set, name, key)
        self._named_sets.pop(key, None)

    def set_sets(self, key: str, sets: tuple[str, ...]) -> None:
        """Index a placement by the sets it was decided with."""
        before = self._sets_of.get(key, ())
        if before == sets:
            return
        for name in before:
            _discard(self._by_set, name, key)
        for name in sets:
            self._by_set.setdefault(name, set()).add(key)
        self._sets_of[key] = sets

    # -- affected placements

    def by_binding(self, namespace: str, name: str) -> list[str]:
        """A binding to a set changed: affects the placements of its namespace that name the set, or no set."""
        keys = self._in_namespace.get(namespace, NONE)
        return sorted(key for key in keys if not self._named_sets[key] or name in self._named_sets[key])

    def by_set(self, name: str) -> list[str]:
        """A set changed: affects the placements that are bound to it."""
        bound = [namespace for namespace, bindings in self._sets.bindings.items() if name in bindings]
        return sorted(key for namespace in bound for key in self.by_binding(namespace, name))

    def by_cluster(self, old: ManagedCluster | None, new: ManagedCluster | None) -> list[str]:
        """A cluster was added, deleted or changed.

        If it entered or left a set: affects all placements of that set. Otherwise: those that use what changed.
        """
        before, after = self._selectable_in(old), self._selectable_in(new)
        found = self._of_sets(before ^ after)
        others = self._of_sets(before & after)
        if self._by_part.get(FLEET) and (old is None or new is None or not old.same_content(new)):
            found |= self._by_part[FLEET]
        if old is None or new is None or not others:
            return sorted(found)
        if old.spec.taints != new.spec.taints:
            return sorted(found | others)
        for part, changed in (
            (LABELS, old.labels != new.labels),
            (CLAIMS, old.claims != new.claims),
            (RESOURCES, _amounts(old) != _amounts(new)),
            (WHOLE, not old.same_content(new)),
        ):
            if changed:
                found |= self._by_part.get(part, NONE) & others
        return sorted(found)

    def by_score(
        self,
        old: AddOnPlacementScore | None,
        new: AddOnPlacementScore | None,
        cluster: ManagedCluster | None,
        now: float,
    ) -> list[str]:
        """Scores of one cluster changed."""
        changed, score = _changed_scores(old, new, now), new or old
        if not changed or score is None:
            return []
        found = self._reading(score.name)
        for name in changed:
            found = found | self._by_score.get((score.name, name), NONE)
        return sorted(found & self._seeing((cluster,))) if found else []

    def by_expiry(self, resource: str, clusters: Iterable[ManagedCluster], *, expressions: bool) -> list[str]:
        """Scores of these clusters expired. `expressions`: expired scores are hidden from expressions, too."""
        users = self._by_resource.get(resource, NONE)
        if expressions:
            users = users | self._reading(resource)
        if not users:
            return []
        return sorted(users & self._seeing(clusters))

    def _reading(self, resource: str) -> Keys:
        """Return the placements whose expressions read a score object."""
        return self._by_object.get(resource, NONE) | self._by_object.get("", NONE)

    def _seeing(self, clusters: Iterable[ManagedCluster | None]) -> Keys:
        """Return the placements that may choose one of these clusters, or look at the whole fleet."""
        sets = frozenset().union(*(self._selectable_in(each) for each in clusters))
        return self._of_sets(sets) | self._by_part.get(FLEET, NONE)

    def _selectable_in(self, cluster: ManagedCluster | None) -> frozenset[str]:
        """Return the sets from which a cluster can be chosen."""
        return frozenset() if cluster is None or cluster.terminating else self._sets.of(cluster)

    def _of_sets(self, names: Iterable[str]) -> Keys:
        return set().union(*(self._by_set.get(name, ()) for name in names))


def resources_of(reads: Reads) -> set[str]:
    """Return the names of the AddOnPlacementScores among these reads, as far as they are known by name."""
    found = {str(read[1]) for read in reads if isinstance(read, tuple)}
    return found - {""}


def _changed_scores(old: AddOnPlacementScore | None, new: AddOnPlacementScore | None, now: float) -> frozenset[str]:
    """Return the names of the scores that changed; "" among them if the object was added or deleted.

    Values that are no longer valid count, too: whenMissing may be lastKnown, and Open Cluster Management's expressions
    read them.
    """
    found = set[str]()
    for moment in (now, -math.inf):
        before, after = ({} if each is None or each.valid_until < moment else each.values for each in (old, new))
        found |= {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if (old is None) != (new is None):
        found.add("")  # an expression may test whether the object exists
    return frozenset(found)


def _discard(table: Table, value: Hashable, key: str) -> None:
    keys = table.get(value)
    if keys is not None:
        keys.discard(key)
        if not keys:
            del table[value]


def _amounts(cluster: ManagedCluster) -> tuple[object, object]:
    return cluster.status.allocatable, cluster.status.capacity
