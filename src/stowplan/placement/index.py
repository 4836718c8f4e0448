"""Which placements a change may matter to: what each goes by, and which clusters it may choose from.

A placement that does not ask for a label, a claim, a resource or a score is not woken when one changes; nor is one that
may not choose from the sets that the cluster is in. Decisions of others wake nobody: Balance looks at them when it is
asked, as in Open Cluster Management.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from stowplan.columns.fleet.cluster_sets import ClusterSets
from stowplan.framework.placement.evaluation import coordinates
from stowplan.objects.clusters import AddOnPlacementScore, ManagedCluster
from stowplan.objects.placements import BUILT_IN, Placement

LABELS, CLAIMS, RESOURCES, WHOLE = "labels", "claims", "resources", "the whole object"
Keys = set[str]
NOBODY: Keys = set()


class PlacementIndex:
    """`reads` says which score objects a placement's expressions ask for (None: any)."""

    def __init__(self, sets: ClusterSets, reads: Callable[[Placement], frozenset[str] | None]) -> None:
        self._sets, self._reads = sets, reads
        self._in_namespace: dict[str, Keys] = {}
        self._by_part: dict[str, Keys] = {}
        self._by_score: dict[tuple[str, str], Keys] = {}
        self._by_object: dict[str, Keys] = {}  # expressions; "": any
        self._by_set: dict[str, Keys] = {}
        self._chosen_from: dict[str, tuple[str, ...]] = {}
        self._where: dict[str, list[tuple[dict[Any, Keys], Any]]] = {}

    def add(self, placement: Placement) -> None:
        """Note what a placement goes by."""
        self.remove(placement.key)
        read = self._reads(placement)
        places: list[tuple[dict[Any, Keys], Any]] = [(self._in_namespace, placement.namespace)]
        places += [(self._by_part, part) for part in parts(placement)]
        places += [(self._by_score, each) for each in coordinates(placement)]
        places += [(self._by_object, name) for name in ([""] if read is None else read)]
        for table, place in places:
            table.setdefault(place, set()).add(placement.key)
        self._where[placement.key] = places

    def remove(self, key: str) -> None:
        for table, place in self._where.pop(key, ()):
            _discard(table, place, key)
        for name in self._chosen_from.pop(key, ()):
            _discard(self._by_set, name, key)

    def chooses_from(self, key: str, sets: tuple[str, ...]) -> None:
        """Which sets a placement turned out to be about."""
        before = self._chosen_from.get(key, ())
        if before == sets:
            return
        for name in before:
            _discard(self._by_set, name, key)
        for name in sets:
            self._by_set.setdefault(name, set()).add(key)
        self._chosen_from[key] = sets

    # -- who is woken

    def by_binding(self, namespace: str, name: str, placements: dict[str, Placement]) -> Iterator[str]:
        """Those of the namespace that name the set, or none."""
        for key in self._in_namespace.get(namespace, ()):
            wanted = placements[key].spec.cluster_sets
            if not wanted or name in wanted:
                yield key

    def by_set(self, name: str, placements: dict[str, Placement]) -> Iterator[str]:
        for namespace, bindings in self._sets.bindings.items():
            if name in bindings:
                yield from self.by_binding(namespace, name, placements)

    def by_cluster(self, old: ManagedCluster | None, new: ManagedCluster | None) -> Keys:
        """A cluster came, went or changed: everybody who may choose it, if that changed; otherwise those who go by what
        did.
        """
        before, after = self._found_in(old), self._found_in(new)
        found = self._of_sets(before ^ after)
        stayed = self._of_sets(before & after)
        if old is None or new is None or not stayed:
            return found
        if old.spec.taints != new.spec.taints:
            return found | stayed
        for part, changed in (
            (LABELS, old.labels != new.labels),
            (CLAIMS, old.claims != new.claims),
            (RESOURCES, _amounts(old) != _amounts(new)),
            (WHOLE, not old.alike(new)),
        ):
            if changed:
                found |= self._by_part.get(part, NOBODY) & stayed
        return found

    def by_score(self, score: AddOnPlacementScore, names: Iterable[str], cluster: ManagedCluster | None) -> Keys:
        """Scores of these names changed, of one cluster."""
        found = self._asking(score.name)
        for name in names:
            found = found | self._by_score.get((score.name, name), NOBODY)
        return found & self._of_sets(self._found_in(cluster)) if found else found

    def by_expiry(self, resource: str, clusters: Iterable[ManagedCluster], *, expressions: bool) -> Keys:
        """The scores of these clusters are no longer valid."""
        users: Keys = set().union(*(keys for (name, _), keys in self._by_score.items() if name == resource))
        if expressions:
            users |= self._asking(resource)
        if not users:
            return users
        return users & self._of_sets(frozenset().union(*(self._found_in(each) for each in clusters)))

    def _asking(self, resource: str) -> Keys:
        """Those whose expressions ask for a score object."""
        return self._by_object.get(resource, NOBODY) | self._by_object.get("", NOBODY)

    def _found_in(self, cluster: ManagedCluster | None) -> frozenset[str]:
        """The sets from which it can be chosen."""
        return frozenset() if cluster is None or cluster.terminating else self._sets.of(cluster)

    def _of_sets(self, names: Iterable[str]) -> Keys:
        return set().union(*(self._by_set.get(name, ()) for name in names))


def parts(placement: Placement) -> Iterator[str]:
    """What of a cluster's object a placement goes by, besides its taints and sets."""
    spec = placement.spec
    selectors = [each.required_cluster_selector for each in spec.predicates]
    groups = [each.group_cluster_selector for each in spec.decision_strategy.group_strategy.decision_groups]
    spread = {each.topology_key_type for each in spec.spread_policy.spread_constraints}
    labels = [each.label_selector for each in selectors] + [each.label_selector for each in groups]
    claims = [each.claim_selector for each in selectors] + [each.claim_selector for each in groups]
    if "Label" in spread or any(each.match_labels or each.match_expressions for each in labels):
        yield LABELS
    if "Claim" in spread or any(each.match_expressions for each in claims):
        yield CLAIMS
    if any(each.cel_selector.cel_expressions for each in selectors):
        yield WHOLE
    coordinates = (config.coordinate for config in spec.prioritizer_policy.configurations)
    if any(each is not None and each.type == BUILT_IN and each.built_in.startswith("Resource") for each in coordinates):
        yield RESOURCES


def _discard(table: dict[Any, Keys], place: Any, key: str) -> None:
    keys = table.get(place)
    if keys is not None:
        keys.discard(key)
        if not keys:
            del table[place]


def _amounts(cluster: ManagedCluster) -> tuple[object, object]:
    return cluster.status.allocatable, cluster.status.capacity
