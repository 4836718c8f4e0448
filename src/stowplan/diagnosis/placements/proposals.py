"""Changes of the placement itself that may help it: predicates, tolerations, the number of clusters, sets, scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from stowplan.diagnosis.edits import Edit, Scale
from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.placements.hub import TriedHub
from stowplan.diagnosis.placements.parts import EXPRESSION, LABEL, PredicatePart, parts
from stowplan.diagnosis.proposals import Proposal, proposal
from stowplan.diagnosis.remedy import Operation, PatchObject
from stowplan.framework.placement.choice import PlacementChoice
from stowplan.framework.placement.hysteresis import ANNOTATION
from stowplan.objects import selector_errors
from stowplan.objects.clusters import ClusterTaint, ManagedCluster
from stowplan.objects.placements import ADD_ON, BUILT_IN
from stowplan.plugins.clusters.add_on import WHEN_MISSING
from stowplan.plugins.clusters.taint_toleration import tolerance

MOST_SPELLINGS = 2
MOST_SKEW = 1_000
CONFIGURATIONS = ("spec", "prioritizerPolicy", "configurations")


class PlacementProposals:
    """`choice` is what the placement gets now."""

    def __init__(self, hub: TriedHub, choice: PlacementChoice) -> None:
        self._hub, self._choice, self._placement = hub, choice, hub.placement

    def all(self) -> Iterator[Proposal]:
        yield from self._number()
        yield from self._sets()
        yield from self._tolerations()
        yield from self._predicates()
        yield from self._spreading()
        yield from self._prioritizers()
        yield from self._others()

    def _edit(
        self, code: str, text: str, *operations: Operation, size: float = 0.0, scale: Scale | None = None
    ) -> Edit:
        return Edit(code, text, (PatchObject("Placement", self._placement.key, operations),), size, scale)

    def _remove(self, code: str, text: str, *path: str | int) -> Proposal:
        return proposal(self._edit(code, text, Operation("remove", pointer(*path))))

    # -- how many

    def _number(self) -> Iterator[Proposal]:
        wanted = self._placement.spec.number_of_clusters
        if wanted is None:
            return
        if wanted < 0:
            yield self._remove("omit-number", "omit numberOfClusters, which selects all", "spec", "numberOfClusters")
        if wanted <= 0:
            yield proposal(self._with_number(1, 0))
        elif wanted > 1:
            yield proposal(self._with_number(1, wanted))

    def _with_number(self, number: int, before: int) -> Edit:
        verb, code = ("lower", "lower-number") if number < before else ("raise", "raise-number")
        scale = Scale(number, before, 1, lambda other: self._with_number(other, before)) if before else None
        text = f"{verb} numberOfClusters from {self._placement.spec.number_of_clusters} to {number}"
        operation = Operation("add", "/spec/numberOfClusters", number)
        return self._edit(code, text, operation, size=abs(before - number), scale=scale)

    # -- cluster sets that the placement names

    def _sets(self) -> Iterator[Proposal]:
        wanted, existing = self._placement.spec.cluster_sets, [each.name for each in self._hub.sets()]
        for name in existing:
            if wanted and name not in wanted:
                add = Operation("add", "/spec/clusterSets/-", name)
                yield proposal(self._edit("add-cluster-set", f"add the set {name} to clusterSets", add))
        for at, name in enumerate(wanted):
            for nearest in _nearest(name, existing) if name not in existing else ():
                text = f"correct the set {name} in clusterSets to {nearest}"
                operation = Operation("replace", pointer("spec", "clusterSets", at), nearest)
                yield proposal(self._edit("correct-cluster-set", text, operation))
        broken = {each.name for each in self._hub.sets() if each.problem}
        sound = [name for name in self._hub.engine.sets.eligible(self._placement) if name not in broken]
        if broken and sound:
            text = f"limit clusterSets to {', '.join(sound)}"
            yield proposal(self._edit("limit-cluster-sets", text, Operation("add", "/spec/clusterSets", sound)))

    # -- tolerations

    def _tolerations(self) -> Iterator[Proposal]:
        given = self._placement.spec.tolerations
        for at, each in enumerate(given):
            if each.operator == "Exists" and each.value:
                yield self._remove(
                    "mend-toleration", f"omit the value of toleration {at}", "spec", "tolerations", at, "value"
                )
            elif not each.key and each.operator != "Exists":
                yield self._remove(
                    "drop-toleration", f"drop toleration {at}, which has no key", "spec", "tolerations", at
                )
        for taint in untolerated(self._hub, self._hub.clusters()):
            for at, each in enumerate(given):
                if each.toleration_seconds is not None and (each.key, each.effect or taint.effect) == (
                    taint.key,
                    taint.effect,
                ):
                    text = f"tolerate {shown_taint(taint)} without tolerationSeconds"
                    yield self._remove("tolerate-longer", text, "spec", "tolerations", at, "tolerationSeconds")
            value = {"operator": "Equal", "value": taint.value} if taint.value else {"operator": "Exists"}
            document = {"key": taint.key, **value, "effect": taint.effect}
            operation = Operation("add", "/spec/tolerations/-", document)
            yield proposal(self._edit("tolerate-cluster", f"tolerate {shown_taint(taint)}", operation))

    # -- predicates

    def _predicates(self) -> Iterator[Proposal]:
        for part in parts(self._placement):
            if part.sort == EXPRESSION:
                yield self._remove("drop-expression", f"drop the expression {part.text}", *part.path)
                continue
            yield from self._corrected(part)
            yield self._remove("drop-predicate-requirement", f"drop the requirement {part.text}", *part.path)

    def _corrected(self, part: PredicatePart) -> Iterator[Proposal]:
        """The nearest spelling of a value or a key that clusters have."""
        found: dict[str, dict[str, None]] = {}
        for cluster in self._hub.clusters():
            for key, value in (cluster.labels if part.sort == LABEL else cluster.claims).items():
                found.setdefault(key, {})[value] = None
        values = part.requirement.values if part.requirement is not None and part.requirement.operator == "In" else ()
        given = self._given_values(part)
        for at, value in enumerate(given):
            if value in values and value not in found.get(part.key, {}):
                for nearest in _nearest(value, found.get(part.key, {})):
                    path = part.path if part.in_match_labels else (*part.path, "values", at)
                    text = f"correct the value of {part.key} from {value} to {nearest}"
                    yield proposal(self._edit("predicate-value", text, Operation("replace", pointer(*path), nearest)))
        if part.key not in found and part.requirement is not None and part.requirement.operator in ("In", "Exists"):
            for nearest in _nearest(part.key, found):
                yield proposal(self._renamed(part, nearest, values))

    def _given_values(self, part: PredicatePart) -> tuple[str, ...]:
        document: Any = self._hub["Placement", self._placement.key]
        for step in part.path:
            document = document[step]
        return (document,) if part.in_match_labels else tuple(document.get("values", ()))

    def _renamed(self, part: PredicatePart, key: str, values: tuple[str, ...]) -> Edit:
        text = f"correct the key {part.key} to {key}"
        if not part.in_match_labels:
            return self._edit("predicate-key", text, Operation("replace", pointer(*part.path, "key"), key))
        renamed = Operation("add", pointer(*part.path[:-1], key), values[0])
        return self._edit("predicate-key", text, renamed, Operation("remove", part.pointer))

    # -- spreading

    def _spreading(self) -> Iterator[Proposal]:
        for at, each in enumerate(self._placement.spec.spread_policy.spread_constraints):
            if not each.hard:
                continue
            most = max(len(self._choice.candidates), each.max_skew + 1)
            if each.max_skew < MOST_SKEW:
                yield proposal(self._with_skew(at, min(most, MOST_SKEW), each.max_skew))
            path = pointer("spec", "spreadPolicy", "spreadConstraints", at, "whenUnsatisfiable")
            text = f"let the spreading over {each.topology_key} be ScheduleAnyway"
            yield proposal(self._edit("spread-anyway", text, Operation("replace", path, "ScheduleAnyway")))

    def _with_skew(self, at: int, skew: int, before: int) -> Edit:
        key = self._placement.spec.spread_policy.spread_constraints[at].topology_key
        path = pointer("spec", "spreadPolicy", "spreadConstraints", at, "maxSkew")
        return self._edit(
            "raise-cluster-skew",
            f"raise maxSkew of {key} from {before} to {skew}",
            Operation("add", path, skew),
            size=skew - before,
            scale=Scale(skew, before, -1, lambda other: self._with_skew(at, other, before)),
        )

    # -- prioritizers

    def _prioritizers(self) -> Iterator[Proposal]:
        policy = self._placement.spec.prioritizer_policy
        if policy.mode not in ("", "Additive", "Exact"):
            for mode in _nearest(policy.mode, ("Additive", "Exact")) or ["Additive"]:
                operation = Operation("replace", "/spec/prioritizerPolicy/mode", mode)
                yield proposal(self._edit("correct-mode", f"correct the mode {policy.mode} to {mode}", operation))
        for at, each in enumerate(policy.configurations):
            coordinate, path = each.coordinate, (*CONFIGURATIONS, at, "scoreCoordinate")
            if coordinate is not None and coordinate.type == ADD_ON and coordinate.add_on is not None:
                yield from self._when_missing(coordinate.when_missing, coordinate.add_on.resource_name, path)
            unknown = coordinate is None or (coordinate.type == BUILT_IN and not self._is_known(coordinate.built_in))
            if coordinate is not None and unknown and each.score_coordinate is not None:
                for name in _nearest(coordinate.built_in, self._hub.policy.prioritizers):
                    field = "buildIn" if each.score_coordinate.build_in else "builtIn"
                    text = f"correct the prioritizer {coordinate.built_in} to {name}"
                    yield proposal(
                        self._edit("correct-prioritizer", text, Operation("add", pointer(*path, field), name))
                    )
            named = self._choice.status.path.startswith(f"{'.'.join(CONFIGURATIONS)}[{at}]")
            if unknown or (named and self._choice.status.failed):
                yield self._remove("drop-prioritizer", f"drop configurations[{at}]", *CONFIGURATIONS, at)

    def _is_known(self, prioritizer: str) -> bool:
        return self._hub.policy.named(prioritizer) in self._hub.policy.prioritizers

    def _when_missing(self, given: str, resource: str, path: tuple[str | int, ...]) -> Iterator[Proposal]:
        if given not in ("", *WHEN_MISSING):
            for nearest in dict.fromkeys((*_nearest(given, WHEN_MISSING), "zero")):
                text = f"correct whenMissing of {resource} from {given} to {nearest}"
                operation = Operation("replace", pointer(*path, "whenMissing"), nearest)
                yield proposal(self._edit("correct-when-missing", text, operation))
        elif given == "exclude":
            text = f"let clusters without the score {resource} count as 0 (whenMissing: zero)"
            yield proposal(
                self._edit("when-missing", text, Operation("replace", pointer(*path, "whenMissing"), "zero"))
            )

    # -- what is misconfigured besides

    def _others(self) -> Iterator[Proposal]:
        if ANNOTATION in self._placement.annotations and not self._hub.ocm:
            given = self._placement.annotations[ANNOTATION]
            yield self._remove(
                "drop-hysteresis", f"remove the annotation {ANNOTATION}={given}", "metadata", "annotations", ANNOTATION
            )
        strategy, base = (
            self._placement.spec.decision_strategy.group_strategy,
            ("spec", "decisionStrategy", "groupStrategy"),
        )
        if isinstance(strategy.clusters_per_decision_group, str):
            field = "clustersPerDecisionGroup"
            yield self._remove(
                "drop-group-size", f"remove {field} {strategy.clusters_per_decision_group}", *base, field
            )
        for at, group in enumerate(strategy.decision_groups):
            selectors, path = group.group_cluster_selector, (*base, "decisionGroups", at, "groupClusterSelector")
            for field, selector in (
                ("labelSelector", selectors.label_selector),
                ("claimSelector", selectors.claim_selector.as_labels),
            ):
                if selector_errors.problem(selector):
                    text = f"remove the invalid {field} of decision group {group.group_name}"
                    yield self._remove("drop-group-selector", text, *path, field)


def untolerated(hub: TriedHub, clusters: Iterable[ManagedCluster]) -> list[ClusterTaint]:
    """Return the distinct taints of these clusters that the placement does not tolerate; times do not count."""
    found: dict[tuple[str, str, str], ClusterTaint] = {}
    for cluster in clusters:
        for taint in not_tolerated(hub, cluster):
            found.setdefault((taint.key, taint.value, taint.effect), taint)
    return list(found.values())


def not_tolerated(hub: TriedHub, cluster: ManagedCluster) -> list[ClusterTaint]:
    held = cluster.name in hub.engine.decision_cache.clusters(hub.placement.key)
    tolerations = hub.placement.spec.tolerations
    return [taint for taint in cluster.spec.taints if not tolerance(taint, tolerations, held, hub.now)[0]]


def shown_taint(taint: ClusterTaint) -> str:
    return (
        f"the taint {taint.key}={taint.value}:{taint.effect}"
        if taint.value
        else f"the taint {taint.key}:{taint.effect}"
    )


def _nearest(word: str, known: Iterable[str]) -> list[str]:
    """Return the nearest spellings."""
    return get_close_matches(word, [each for each in known if each != word], n=MOST_SPELLINGS, cutoff=0.6)
