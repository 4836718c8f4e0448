"""Terms between pods mended or relaxed: a spelling corrected, an affinity or anti-affinity term removed, one spreading
constraint made weaker.

Terms of one pod depend on each other, so the plugin is asked about the pod without them: each term alone, then two and
three of them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.diagnosis.case import IMPOSSIBLE, Case, Offer
from stowplan.diagnosis.edits import Edit, Scale
from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.remedies import spellings
from stowplan.diagnosis.remedy import Operation, PatchObject
from stowplan.plugins.nodes.default.inter_pod_affinity import InterPodAffinity
from stowplan.plugins.nodes.default.pod_topology_spread import HARD, SOFT, PodTopologySpread

DROP_AFFINITY, DROP_ANTI_AFFINITY = "drop-affinity-term", "drop-anti-affinity-term"
MAX_SKEW, SCHEDULE_ANYWAY, OWN_CONSTRAINT = "raise-max-skew", "schedule-anyway", "own-spreading"
HONOR_TAINTS, HONOR_NODE_AFFINITY = "honor-taints", "honor-node-affinity"
MOST_TERMS = 10  # of which sets are tried; the others are left as they are
TOGETHER = 3
ANY_SKEW = 2**31 - 1
HONOR = "Honor"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True)
class Relaxation:
    """A term made weaker as far as it goes (`operations`), and the edit for a node, which may be smaller."""

    operations: tuple[Operation, ...]
    edit: Callable[[int, Sequence[Operation]], Edit]


def offers(case: Case) -> Iterator[Offer]:
    for enabled in case.profile.filters:
        rejected = case.rejects(enabled.name)
        if rejected is None:
            continue
        if isinstance(enabled.plugin, InterPodAffinity):
            yield from _sets(case, enabled.name, rejected, _single(spellings.of_affinity(case)))
            yield from _sets(case, enabled.name, rejected, list(_affinity_terms(case)))
        elif isinstance(enabled.plugin, PodTopologySpread):
            yield from _sets(case, enabled.name, rejected, _single(spellings.of_spreading(case, HARD)))
            yield from _sets(case, enabled.name, rejected, list(_skews(case, enabled.name)))
            yield from _sets(case, enabled.name, rejected, list(_honoring(case)))
            yield from _sets(case, enabled.name, rejected, list(_soft(case)))
            yield from _own_constraints(case, enabled.name, rejected)


def every_edit(case: Case) -> Iterator[Edit]:
    """Yield every term removed, and every constraint made soft, whether or not that alone opens a node."""
    for enabled in case.profile.filters:
        if isinstance(enabled.plugin, InterPodAffinity) and case.rejects(enabled.name) is not None:
            yield from (each.edit(0, ()) for each in _affinity_terms(case))
        elif isinstance(enabled.plugin, PodTopologySpread) and case.rejects(enabled.name) is not None:
            yield from (each.edit(0, ()) for each in _soft(case))


def _single(edits: Iterable[Edit]) -> list[Relaxation]:
    """Return edits of the pod that cannot be smaller."""
    return [_fixed(edit) for edit in edits]


def _fixed(edit: Edit) -> Relaxation:
    operations = tuple(each for change in edit.changes if isinstance(change, PatchObject) for each in change.operations)
    return Relaxation(operations, lambda _at, _others: edit)


def _sets(case: Case, plugin: str, rejected: Bools, relaxations: list[Relaxation]) -> Iterator[Offer]:
    """Yield an offer for each set of relaxations that helps where no smaller set does."""
    unhelped = rejected.copy()
    for size in range(1, min(len(relaxations), TOGETHER) + 1):
        helped = np.zeros(len(rejected), np.bool_)
        for chosen in combinations(relaxations[:MOST_TERMS], size):
            operations = [operation for each in chosen for operation in each.operations]
            accepted = case.accepted(plugin, case.patched(*operations)) & unhelped
            if accepted.any():
                helped |= accepted
                yield Offer(plugin, case.steps(rejected, size, accepted), _editor(chosen))
        unhelped &= ~helped
        if not unhelped.any():
            return


def _editor(chosen: Sequence[Relaxation]) -> Callable[[int], list[Edit]]:
    def edits(at: int) -> list[Edit]:
        found = []
        for each in chosen:
            others = [operation for other in chosen if other is not each for operation in other.operations]
            found.append(each.edit(at, others))
        return found

    return edits


# -- affinity


def _affinity_terms(case: Case) -> Iterator[Relaxation]:
    affinity = case.pod.spec.affinity
    for field, terms, code in (
        ("podAffinity", affinity.pod_affinity.required, DROP_AFFINITY),
        ("podAntiAffinity", affinity.pod_anti_affinity.required, DROP_ANTI_AFFINITY),
    ):
        for at, term in enumerate(terms):
            operation = Operation("remove", pointer("spec", "affinity", field, _REQUIRED, at))
            name = "affinity" if field == "podAffinity" else "anti-affinity"
            text = f"remove the required {name} term for {term.topology_key}"
            yield _fixed(case.edit(code, text, operation))


# -- spreading


def _skews(case: Case, plugin: str) -> Iterator[Relaxation]:
    for place, constraint in enumerate(case.pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable == HARD:
            edit = _SkewEdit(case, plugin, place, constraint.max_skew, constraint.topology_key)
            yield Relaxation((edit.operation(ANY_SKEW),), edit.smallest)


@dataclass(frozen=True)
class _SkewEdit:
    case: Case
    plugin: str
    place: int
    max_skew: int
    key: str

    def operation(self, skew: int) -> Operation:
        return Operation("replace", pointer("spec", "topologySpreadConstraints", self.place, "maxSkew"), skew)

    def smallest(self, at: int, others: Sequence[Operation]) -> Edit:
        """Return the smallest maxSkew with which the plugin accepts the node, beside the other operations."""

        def enough(skew: int) -> bool:
            return bool(self.case.accepted(self.plugin, self.case.patched(*others, self.operation(skew)))[at])

        low, high = self.max_skew, self.max_skew + 1
        while high < ANY_SKEW and not enough(high):
            low, high = high, min(high * 2, ANY_SKEW)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if enough(middle) else (middle, high)
        return self.at(high)

    def at(self, skew: int) -> Edit:
        text = f"raise maxSkew for {self.key} from {self.max_skew} to {skew}"
        scale = Scale(skew, self.max_skew, -1, self.at)
        changes = (PatchObject("Pod", self.case.pod.key, (self.operation(skew),)),)
        return Edit(MAX_SKEW, text, changes, size=float(skew - self.max_skew), scale=scale)


def _honoring(case: Case) -> Iterator[Relaxation]:
    """Yield constraints that no longer count domains of nodes that the pod cannot use anyway."""
    for place, constraint in enumerate(case.pod.spec.topology_spread_constraints):
        path = ("spec", "topologySpreadConstraints", place)
        for field, value, code, why in (
            ("nodeTaintsPolicy", constraint.node_taints_policy, HONOR_TAINTS, "whose taints it does not tolerate"),
            ("nodeAffinityPolicy", constraint.node_affinity_policy, HONOR_NODE_AFFINITY, "that its affinity rules out"),
        ):
            default = "Ignore" if field == "nodeTaintsPolicy" else HONOR
            if constraint.when_unsatisfiable == HARD and (value or default) != HONOR:
                operation = Operation("add", pointer(*path, field), HONOR)
                text = (
                    f"set {field} of the spreading over {constraint.topology_key} to {HONOR}: nodes {why} do not count"
                )
                yield _fixed(case.edit(code, text, operation))


def _soft(case: Case) -> Iterator[Relaxation]:
    for place, constraint in enumerate(case.pod.spec.topology_spread_constraints):
        if constraint.when_unsatisfiable == HARD:
            path = pointer("spec", "topologySpreadConstraints", place, "whenUnsatisfiable")
            operation = Operation("replace", path, SOFT)
            text = f"set whenUnsatisfiable of the spreading over {constraint.topology_key} to {SOFT}"
            yield _fixed(case.edit(SCHEDULE_ANYWAY, text, operation))


def _own_constraints(case: Case, plugin: str, rejected: Bools) -> Iterator[Offer]:
    """Yield the offer of soft constraints for a pod that has none, instead of the scheduler's own hard ones."""
    if case.pod.spec.topology_spread_constraints:
        return
    enabled = next(each for each in case.profile.filters if each.name == plugin)
    defaults = getattr(enabled.plugin, "_defaults_of", {}).get(HARD, ())
    if not defaults:
        return
    constraint = {
        "maxSkew": defaults[0].max_skew,
        "topologyKey": defaults[0].topology_key,
        "whenUnsatisfiable": SOFT,
        "labelSelector": {"matchLabels": dict(case.pod.labels)},
    }
    operation = Operation("add", "/spec/topologySpreadConstraints", [constraint])
    edit = case.edit(OWN_CONSTRAINT, "give the pod a spreading of its own that is not required", operation)
    accepted = case.accepted(plugin, case.patched(operation))
    steps = case.steps(rejected, 1, accepted)
    if (steps[rejected] < IMPOSSIBLE).any():
        yield Offer(plugin, steps, lambda _: [edit])
