"""The dry run of preemption for many nodes at once, by arrays; `dry_run` says what it does.

No pod is removed: the resources in use are shifted, and filters are told what else would change
(`framework/what_if.py`). Pods are added back in turns: one pod of each node, then the next.
"""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Bools, Ints, Rows
from stowplan.columns.pods.match_counts import LabelSet
from stowplan.columns.pods.ranked_pods import RankedBlock
from stowplan.columns.shifted_resources import ShiftedResources
from stowplan.columns.state import PlacedPod
from stowplan.framework.decision import FEASIBLE
from stowplan.framework.interfaces import Evaluator
from stowplan.framework.what_if import WhatIf
from stowplan.objects.disruption import Budgets
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PodDisruptionBudget
from stowplan.plugins.nodes.default.candidates import ArrayCandidates
from stowplan.plugins.nodes.default.dry_run import NO_VICTIMS, Refusals


class ArrayDryRun:
    """`refusals`: where the reasons of nodes go that are no candidates."""

    def __init__(self, pod: Pod, evaluator: Evaluator, what_if: WhatIf, refusals: Refusals) -> None:
        self._refusals = refusals
        self._pod, self._state, self._what_if = pod, evaluator.state, what_if
        self._budgets_of: dict[LabelSet, list[PodDisruptionBudget]] = {}

    def candidates_among(self, rows: Rows) -> ArrayCandidates:
        block = self._state.ranked_pods.below(rows, self._pod.priority)
        self._refusals.add((NO_VICTIMS,), len(rows) - len(block.rows))
        begins = block.number.cumsum() - block.number
        violating, victims = np.zeros(len(block), np.bool_), np.zeros(len(block), np.bool_)
        turns = np.arange(len(block)) - begins[block.at]
        if self._state.store.every(PodDisruptionBudget):
            self._put_protected_first(block, begins, violating, turns)
        if len(block):
            with ShiftedResources(self._state.table) as resources:
                self._find_victims(resources, block, begins, turns, victims)
        return ArrayCandidates(self._state, block, victims, turns, violating)

    def _put_protected_first(self, block: RankedBlock, begins: Ints, violating: Bools, turns: Ints) -> None:
        """Mark the pods that a disruption budget protects. They are added back before the others of their row."""
        protected = np.array([bool(self._budgets(placed)) for placed in block.pods], np.bool_)
        ends = begins + block.number
        for at in np.unique(block.at[protected]).tolist():
            here = [block.pods[place] for place in range(int(begins[at]), int(ends[at]))]
            first, others = self._split(here)
            violating[[begins[at] + place for place in first]] = True
            turns[[begins[at] + place for place in (*first, *others)]] = np.arange(len(here))

    def _split(self, pods: list[PlacedPod]) -> tuple[list[int], list[int]]:
        """Return the places of the pods whose eviction would violate a budget, and the places of the others."""
        budgets = Budgets(lambda pod: self._budgets(self._state.pods[pod.uid]))
        return budgets.split(range(len(pods)), lambda place: pods[place].pod)

    def _budgets(self, placed: PlacedPod) -> list[PodDisruptionBudget]:
        found = self._budgets_of.get(placed.labels)
        if found is None:
            found = self._budgets_of[placed.labels] = self._state.store.budgets_of(placed.pod)
        return found

    def _find_victims(
        self, resources: ShiftedResources, block: RankedBlock, begins: Ints, turns: Ints, victims: Bools
    ) -> None:
        rows = block.rows
        removed, presumed = (
            {name: np.add.reduceat(amount, begins) for name, amount in each.items()}
            for each in (block.amounts, block.presumed)
        )
        resources.shift(rows, removed, presumed, -1)
        changes = self._what_if.begin(block)
        changes.gone[:] = 1
        codes, verdict_of = self._what_if.verdicts(resources, rows)
        refused = verdict_of[verdict_of != FEASIBLE]
        for code, nodes in enumerate(np.bincount(refused, minlength=len(codes.verdicts)).tolist()):
            if nodes:
                self._refusals.add(codes.verdicts[code].reasons, nodes)
        is_open = verdict_of == FEASIBLE
        order = np.lexsort((block.at, turns))  # all first turns, then all second ones
        order = order[is_open[block.at[order]]]
        for added in np.split(order, np.flatnonzero(np.diff(turns[order])) + 1):
            if not len(added):
                continue
            self._shift(resources, block, added, +1)
            changes.gone[added] = 0
            _, verdict_of = self._what_if.verdicts(resources, rows[block.at[added]], again=True)
            in_the_way = added[verdict_of != FEASIBLE]
            if len(in_the_way):
                self._shift(resources, block, in_the_way, -1)
                changes.gone[in_the_way] = 1
                victims[in_the_way] = True

    @staticmethod
    def _shift(resources: ShiftedResources, block: RankedBlock, places: Rows, sign: int) -> None:
        amounts, presumed = (
            {name: amount[places] for name, amount in each.items()} for each in (block.amounts, block.presumed)
        )
        resources.shift(block.rows[block.at[places]], amounts, presumed, sign)
