"""The dry run of preemption: what if the pods of lower priority were not on a node?

First remove every pod of lower priority. If the pod passes all filters then, add back as many as possible: first those
that a disruption budget protects, then by priority. The others are the victims. This is the general way, which removes
pods in a trial; `dry_run_arrays` has the same for many nodes at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypeAlias

import numpy as np

from stowplan.columns.arrays import Rows
from stowplan.columns.state import PlacedPod
from stowplan.columns.trial import Trial
from stowplan.framework.decision import Candidate, counted
from stowplan.framework.interfaces import Evaluator
from stowplan.objects.disruption import Budgets, importance
from stowplan.objects.errors import DecisionError
from stowplan.objects.pods import Pod

NO_VICTIMS = "No preemption victims found for incoming pod"
NO_HELP = "Preemption is not helpful for scheduling"

PodsByRow: TypeAlias = dict[int, list[PlacedPod]]


class Refusals:
    """Why nodes are not candidates: how many nodes, and how many for each reason. `errors`: what filters failed in."""

    def __init__(self) -> None:
        self.nodes = 0
        self.reasons: Counter[str] = Counter()
        self.errors: list[str] = []

    def add(self, reasons: Iterable[str], nodes: int) -> None:
        self.nodes += nodes
        for reason in reasons:
            self.reasons[reason] += nodes

    def error(self) -> str:
        """Return all errors in one text, as Go puts them together."""
        different = list(dict.fromkeys(self.errors))
        return different[0] if len(different) == 1 else f"[{', '.join(different)}]"

    def message(self, nodes: int) -> str:
        """Return kube-scheduler's message for `nodes` nodes; the nodes not counted here were not evaluated."""
        return f"0/{nodes} nodes are available{counted(self.reasons + Counter({NO_HELP: nodes - self.nodes}))}"


class DryRun:
    """`refusals`: where the reasons of nodes go that are no candidates."""

    def __init__(self, pod: Pod, evaluator: Evaluator, refusals: Refusals) -> None:
        self._pod, self._evaluator, self._state, self._refusals = pod, evaluator, evaluator.state, refusals
        self._budgets = Budgets(self._state.store.budgets_of)

    def candidates_among(self, rows: Rows) -> list[Candidate]:
        """Return the candidates among these rows. Several rows must be independent of each other."""
        removable = {row: victims for row in rows.tolist() if (victims := self._lower_priority(row))}
        self._refusals.add((NO_VICTIMS,), len(rows) - len(removable))
        if not removable:
            return []
        with self._state.trial() as trial:
            self._remove(trial, removable)
            open_rows = self._passing(np.fromiter(removable, np.int64, len(removable)), record=True)
            return list(self._add_back({row: removable[row] for row in open_rows}, trial))

    def _lower_priority(self, row: int) -> list[PlacedPod]:
        """Return the pods of lower priority on a row, highest priority first."""
        mine = self._pod.priority
        pods = [placed for placed in self._state.pods_on[row].values() if placed.pod.priority < mine]
        return sorted(pods, key=lambda placed: (importance(placed.pod), placed.pod.uid))

    def _passing(self, rows: Rows, record: bool = False) -> list[int]:
        try:
            verdicts = self._evaluator.verdicts(rows)
        except DecisionError as error:
            if len(rows) > 1:  # an error is one node's, and leaves the others standing
                return [row for each in rows for row in self._passing(np.array([each], np.int64), record)]
            self._refusals.errors.append(str(error))
            return []
        for verdict in verdicts if record else ():
            if verdict is not None:
                self._refusals.add(verdict.reasons, 1)
        return [row for row, verdict in zip(rows.tolist(), verdicts, strict=True) if verdict is None]

    def _add_back(self, removable: PodsByRow, trial: Trial) -> Iterator[Candidate]:
        """Add pods back in turns, one per row and turn; those with which the pod does not fit are the victims."""
        split = {row: self._budgets.split(pods, lambda placed: placed.pod) for row, pods in removable.items()}
        turns = {row: [*violating, *others] for row, (violating, others) in split.items()}
        victims: PodsByRow = {row: [] for row in removable}
        for turn in range(max((len(pods) for pods in turns.values()), default=0)):
            added = {row: [pods[turn]] for row, pods in turns.items() if turn < len(pods)}
            for row, pods in added.items():
                trial.add_pod(pods[0].pod, self._state.table.names[row], as_extension=True)
            passing = set(self._passing(np.fromiter(added, np.int64, len(added))))
            in_the_way = {row: pods for row, pods in added.items() if row not in passing}
            self._remove(trial, in_the_way)
            for row, pods in in_the_way.items():
                victims[row] += pods
        for row, chosen in victims.items():
            if chosen:
                violations = sum(placed in split[row][0] for placed in chosen)
                ordered = sorted((placed.pod for placed in chosen), key=importance)
                yield Candidate(self._state.table.names[row], tuple(ordered), violations)

    def _remove(self, trial: Trial, pods: PodsByRow) -> None:
        for each in pods.values():
            for placed in each:
                trial.remove_pod(placed.pod.uid, as_extension=True)
