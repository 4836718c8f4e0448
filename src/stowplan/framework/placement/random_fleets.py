"""Small random fleets with all kinds of clusters, scores and decisions, for checks of cluster plugins.

A seed gives the same fleet. With the words of a policy (`checks.words`) the fleet uses them as labels, annotations,
claims, taints, resources, namespaces and scores, and so finds by itself what the policy acts on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec
import numpy as np

from stowplan.columns.fleet.cluster_sets import ClusterSets
from stowplan.columns.fleet.clusters import Fleet
from stowplan.columns.fleet.views import Clusters, WholeFleet
from stowplan.framework.checks.words import Words
from stowplan.objects import kinds
from stowplan.objects.clusters import (
    AddOnPlacementScore,
    ManagedCluster,
    ManagedClusterSet,
    ManagedClusterSetBinding,
)
from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement, PlacementDecision

NOW = 1_780_000_000.0
EFFECTS = ("NoSelect", "PreferNoSelect", "NoSelectIfNew")
DISTINCT = 50  # of a large fleet
Drawn = TypeVar("Drawn", ManagedCluster, AddOnPlacementScore)
OF_A_FLEET: tuple[type[Object], ...] = (ManagedCluster, AddOnPlacementScore, PlacementDecision)
KEYS, VALUES, SCORES = ("region", "tier", "cloud"), ("a", "b", "c"), ("load", "price")


@dataclass(frozen=True)
class RandomFleet:
    """Clusters, their scores, decisions of placements, and the placement to decide."""

    clusters: tuple[ManagedCluster, ...]
    others: tuple[Object, ...]
    placement: Placement
    own: tuple[str, ...]  # the clusters that the placement has

    def view(self) -> Clusters:
        """Return all clusters as a policy sees them."""
        table = self.table()
        return WholeFleet(table, NOW, table.rows(self.own)).clusters

    def table(self) -> Fleet:
        return table_of((*self.clusters, *self.others), self.own)

    def with_objects(self, objects: Iterable[Object]) -> RandomFleet:
        """Return the same fleet with these clusters, scores and decisions in addition; a cluster may replace one."""
        given = list(objects)
        clusters = {each.name: each for each in (*self.clusters, *given) if isinstance(each, ManagedCluster)}
        return replace(self, clusters=tuple(clusters.values()), others=(*self.others, *given))

    def reversed(self) -> RandomFleet:
        """Return the same fleet with other row numbers."""
        return replace(self, clusters=self.clusters[::-1])


def check_objects(objects: Iterable[object]) -> None:
    """Raise TypeError for an object that a fleet has no place for, and that no policy could see."""
    for each in objects:
        if not isinstance(each, OF_A_FLEET):
            kind = type(each)
            its = f"{kind.__module__}.{kind.__name__}" if isinstance(each, Object) else repr(each)
            key = f" (of {each.key})" if isinstance(each, Object) else ""
            names = " or ".join(known.__name__ for known in OF_A_FLEET)
            raise TypeError(f"{its}{key} is nothing that a fleet has; {names} was due")


def table_of(objects: Iterable[Object], own: Iterable[str] = ()) -> Fleet:
    """Return the fleet of these clusters, scores and decisions; `own` are the clusters that the placement has."""
    table = Fleet()
    for each in objects:
        match each:
            case ManagedCluster():
                table.put(each)
            case AddOnPlacementScore():
                table.put_score(each)
            case PlacementDecision():
                table.count_decision(each.cluster_names, 1)
    table.count_decision(own, 1)
    return table


def in_one_set(fleet: Fleet, namespace: str) -> ClusterSets:
    """Return a set of all clusters that this namespace may use."""
    sets, selector = ClusterSets(fleet), {"selectorType": "LabelSelector", "labelSelector": {}}
    document = {"metadata": {"name": "all"}, "spec": {"clusterSelector": selector}}
    sets.put(kinds.convert(ManagedClusterSet, document))
    binding = {"metadata": {"name": "all", "namespace": namespace}, "spec": {"clusterSet": "all"}}
    sets.put(kinds.convert(ManagedClusterSetBinding, binding))
    return sets


def draw(seed: int, words: Words | None = None, *, clusters: int | None = None) -> RandomFleet:
    """Return a fleet of one to nine clusters, and a placement that may have some of them.

    `clusters`: so many instead, of which most are like another one, but for the name.
    """
    dice = FleetDice(np.random.default_rng(seed), words or Words())
    count = dice.number(1, 9) if clusters is None else clusters
    names = [f"c{number}" for number in range(count)]
    drawn = [kinds.convert(ManagedCluster, dice.cluster(name)) for name in names[:DISTINCT]]
    scores = [[kinds.convert(AddOnPlacementScore, each) for each in dice.scores(name)] for name in names[:DISTINCT]]
    decisions = [
        kinds.convert(PlacementDecision, dice.decision(f"other-{number}", names)) for number in range(dice.number(0, 3))
    ]
    own = tuple(name for name in names if dice.number(0, 3) == 0)
    placement = kinds.convert(Placement, dice.placement())
    return RandomFleet(
        tuple(_renamed(drawn[number % DISTINCT], name=name, uid=name) for number, name in enumerate(names)),
        (*(_renamed(each, namespace=name) for number, name in enumerate(names) for each in scores[number % DISTINCT]),
         *decisions),
        placement,
        own,
    )  # fmt: skip


def _renamed(drawn: Drawn, **names: str) -> Drawn:
    return msgspec.structs.replace(drawn, metadata=msgspec.structs.replace(drawn.metadata, **names))


class FleetDice:
    """Draws manifests."""

    def __init__(self, generator: np.random.Generator, words: Words) -> None:
        self._generator, self._words = generator, words
        self._texts, self._numbers = words.texts, words.numbers

    def number(self, low: int, high: int) -> int:
        return int(self._generator.integers(low, high, endpoint=True))

    def one_of(self, options: Sequence[Any]) -> Any:
        return options[self.number(0, len(options) - 1)]

    def pairs(self) -> dict[str, str]:
        """Labels, annotations or claims: some common ones, and words of the plugin."""
        found = {key: self.one_of(VALUES) for key in KEYS if self.number(0, 1)}
        for text, follows in zip(self._texts, (*self._texts[1:], ""), strict=False):
            if self.number(0, 1):  # the word that follows a key in the code is a likely value
                likely = follows in self._words.values and self.number(0, 1)
                found[text] = follows if likely else self.one_of((*self._words.values, *VALUES))
        return found

    def amount(self) -> int:
        """An amount of a resource. Numbers of the policy may be thousandths."""
        exact = [each for number in self._numbers for each in (number, number // 1000)]
        near = [each + step for each in exact for step in (-1, 0, 1) if each > 0]
        return int(self.one_of((*near, 0, 4, 16, 64)))

    def cluster(self, name: str) -> dict[str, Any]:
        resources = ("cpu", "memory", "nvidia.com/gpu", *self._words.resources)
        reported = {key: str(self.amount()) for key in resources if self.number(0, 3)}
        effects = [effect for effect in EFFECTS if self.number(0, 4) == 0]
        taints = [{"key": "k", "effect": effect} for effect in effects]
        taints += [{"key": text, "effect": self.one_of(EFFECTS)} for text in self._texts if self.number(0, 4) == 0]
        return {
            "metadata": {"name": name, "uid": name, "labels": self.pairs()},
            "spec": {"hubAcceptsClient": True, "taints": taints},
            "status": {
                "allocatable": reported,
                "capacity": reported,
                "clusterClaims": [{"name": key, "value": value} for key, value in self.pairs().items()],
            },
        }

    def scores(self, cluster: str) -> list[dict[str, Any]]:
        """AddOnPlacementScores; a few of them have expired."""
        names = [name for name in ("default", *self._texts) if self.number(0, 1)]
        found = []
        for name in names:
            values = [{"name": each, "value": self.number(-100, 100)} for each in (*SCORES, *self._texts)]
            until = datetime.fromtimestamp(NOW + self.one_of((-60, 60, 3600)), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            status = {"scores": values, "validUntil": until}
            found.append({"metadata": {"name": name, "namespace": cluster}, "status": status})
        return found

    def decision(self, name: str, clusters: Sequence[str]) -> dict[str, Any]:
        listed = [{"clusterName": each, "reason": ""} for each in clusters if self.number(0, 1)]
        return {"metadata": {"name": name, "namespace": "elsewhere"}, "status": {"decisions": listed}}

    def placement(self) -> dict[str, Any]:
        namespace = self.one_of(("default", *self._words.namespaces)) if self.number(0, 2) == 0 else "default"
        metadata = {"name": "drawn", "namespace": namespace, "uid": "drawn", "labels": self.pairs()}
        return {"metadata": metadata | {"annotations": self.pairs()}, "spec": {"numberOfClusters": self.number(0, 5)}}
