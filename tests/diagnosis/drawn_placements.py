"""Draws of hubs with one placement: taints, typing errors, missing bindings, expired scores, spreading."""

from __future__ import annotations

from typing import Any

from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement
from tests.diagnosis.dice import Dice
from tests.placement.fleets import NOW, a_binding, a_cluster, a_placement, a_score, a_set

REGIONS, TIERS = ("europe", "america", "asia"), ("gold", "silver")
TYPING_ERRORS = {"europe": "eurpoe", "america": "amerika", "asia": "aisa", "gold": "golden", "silver": "sliver"}
EXPRESSIONS = (
    'managedCluster.metadata.labels["tier"] == "gold"',
    'managedCluster.metadata.labels["tier"] == "bronze"',
    'managedCluster.scores("load").exists(each, each.value > 10)',
    "managedCluster.metadata.labels.exists(key, key",
)


class PlacementDice(Dice):
    # -- the hub

    def hub(self) -> list[Object]:
        sets = ["default", "edge"][: self.number(1, 2)]
        objects: list[Object] = [a_set(name) for name in sets]
        if self.often(8):
            objects.append(a_set("broken", selectorType="Label"))
            objects.append(a_binding("broken"))
        objects += [a_binding(name) for name in sets if not self.often(4)]
        for number in range(self.number(2, 7)):
            objects += self.cluster(f"c{number}", self.one_of((*sets, *sets, "")))
        return objects

    def cluster(self, name: str, of: str) -> list[Object]:
        labels = {"region": self.one_of(REGIONS)} if not self.often(6) else {}
        labels |= {"tier": self.one_of(TIERS)} if not self.often(3) else {}
        texts = ("dedicated=team-a:NoSelect", "dedicated=team-b:NoSelect", "new:NoSelectIfNew", "slow:PreferNoSelect")
        taints = [self.one_of(texts)] if self.often(3) else []
        claims = {"platform": self.one_of(("aws", "azure"))}
        found: list[Object] = [
            a_cluster(name, labels=labels, claims=claims, taints=taints, of=of, terminating=self.often(12))
        ]
        if not self.often(3):
            found.append(a_score(name, "load", self.one_of((-60, 3600, None)), free=self.number(-100, 100)))
        return found

    # -- the placement

    def placement(self) -> Placement:
        spec: dict[str, Any] = {}
        if not self.often(3):
            spec["numberOfClusters"] = self.one_of((0, 1, 1, 2, 2, 3, 4, 6, -1))
        if self.often(4):
            spec["clusterSets"] = [self.one_of(("default", "edge", "edeg"))]
        if not self.often(3):
            spec["predicates"] = [self.predicate() for _ in range(self.number(1, 2))]
        if self.often(4):
            spec["tolerations"] = [self.toleration()]
        if self.often(4):
            hard = {"topologyKey": self.one_of(("region", "tier")), "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
            spec["spreadPolicy"] = {"spreadConstraints": [hard]}
        if self.often(3):
            spec["prioritizerPolicy"] = self.prioritizers()
        return a_placement(**spec)

    def predicate(self) -> dict[str, Any]:
        selector: dict[str, Any] = {}
        if not self.often(3):
            value = self.one_of(REGIONS)
            key = "regoin" if self.often(8) else "region"
            selector["labelSelector"] = {"matchLabels": {key: TYPING_ERRORS[value] if self.often(3) else value}}
        if self.often(3):
            tier = self.one_of((*TIERS, *(TYPING_ERRORS[each] for each in TIERS)))
            operator, values = self.one_of((("In", [tier]), ("Exists", []), ("NotIn", [tier]), ("Gt", ["5"])))
            labels = selector.setdefault("labelSelector", {})
            labels["matchExpressions"] = [{"key": "tier", "operator": operator, "values": values}]
        if self.often(4):
            expression = {"key": "platform", "operator": "In", "values": [self.one_of(("aws", "azur", "gcp"))]}
            selector["claimSelector"] = {"matchExpressions": [expression]}
        if self.often(4):
            selector["celSelector"] = {"celExpressions": [self.one_of(EXPRESSIONS)]}
        return {"requiredClusterSelector": selector}

    def toleration(self) -> dict[str, Any]:
        return dict(
            self.one_of(
                (
                    {"key": "dedicated", "operator": "Equal", "value": "team-a"},
                    {"key": "dedicated", "operator": "Exists", "value": "team-a"},
                    {"key": "dedicated", "operator": "Exists", "tolerationSeconds": 60},
                    {"operator": "Equal", "value": "x"},
                )
            )
        )

    def prioritizers(self) -> dict[str, Any]:
        missing = self.one_of(("exclude", "exclude", "zero", "excluded"))
        coordinate = {"type": "AddOn", "addOn": {"resourceName": "load", "scoreName": "free"}, "whenMissing": missing}
        built_in = {"type": "BuiltIn", "builtIn": self.one_of(("Steady", "Stedy"))}
        chosen = [coordinate] if not self.often(3) else [coordinate, built_in]
        mode = self.one_of(("Additive", "Exact", "Exactly")) if self.often(3) else "Additive"
        return {"mode": mode, "configurations": [{"scoreCoordinate": each, "weight": 1} for each in chosen]}


def drawn(seed: int) -> tuple[Placement, list[Object]]:
    dice = PlacementDice(seed)
    return dice.placement(), dice.hub()


__all__ = ["NOW", "drawn"]
