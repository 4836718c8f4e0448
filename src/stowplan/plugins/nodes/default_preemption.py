"""DefaultPreemption: find the node where evicting the least important pods would make room.

The dry run, node by node: take away every pod of lower priority; if the pod would then pass all filters, give back as
many as possible, the most important first, those whose disruption budget would be violated before the others. What
cannot be given back are the victims. Where every filter judges a node by itself alone, many nodes are tried at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from stowplan.columns.arrays import Rows
from stowplan.columns.state import ClusterState
from stowplan.columns.trial import Trial
from stowplan.columns.views import Cluster
from stowplan.framework.interfaces import Wake
from stowplan.framework.verdict import FEASIBLE, Candidate, Decision, PostFilterResult, Refuse, counted
from stowplan.objects import selectors
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import PodDisruptionBudget

NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_HELP = "Preemption is not helpful for scheduling"
NOT_STARTED = datetime.max.replace(tzinfo=UTC)  # a pod without a start time counts as just started


class DefaultPreemption:
    configurable_at = ("preEnqueue",)

    def __init__(self, min_candidate_nodes_percentage: int = 10, min_candidate_nodes_absolute: int = 100) -> None:
        """How many candidates are enough: this percentage of the nodes, and at least this many."""
        self._percentage, self._absolute = min_candidate_nodes_percentage, min_candidate_nodes_absolute

    def post_filter(self, pod: Pod, decision: Decision, evaluation: Any) -> PostFilterResult:
        reason = self.ineligible(pod, decision, evaluation.state)
        if reason:
            return PostFilterResult((f"preemption: {reason}",))
        found, refusals = self.dry_run(pod, decision, evaluation, enough=self._enough(len(decision.trail.names)))
        if not found:
            return PostFilterResult((f"preemption: {refusals.message(len(decision.trail.names))}",))
        return PostFilterResult(candidate=best(found)[0])

    def _enough(self, nodes: int) -> int:
        return min(max(nodes * self._percentage // 100, self._absolute), nodes)

    # -- may it preempt at all?

    def ineligible(self, pod: Pod, decision: Decision, state: ClusterState) -> str:
        """Why the pod may not preempt, or nothing."""
        if pod.spec.preemption_policy == "Never":
            return NEVER
        if not pod.nominated_node or self._hopeless(pod.nominated_node, decision):
            return ""
        there = Cluster(state).pods_on(pod.nominated_node) if _is_live(state, pod.nominated_node) else []
        leaving = any(other.priority < pod.priority and _leaves_for_another(other) for other in there)
        return TERMINATING if leaving else ""

    @staticmethod
    def _hopeless(name: str, decision: Decision) -> bool:
        """Is the nominated node one where evictions cannot help?"""
        if decision.refused is not None:
            return decision.refused.code == "UnschedulableAndUnresolvable"
        hopeless = dict(zip(decision.trail.names, decision.trail.unresolvable().tolist(), strict=True))
        return bool(hopeless.get(name, True))

    # -- the dry run

    def dry_run(
        self, pod: Pod, decision: Decision, evaluation: Any, *, enough: int | None = None
    ) -> tuple[list[Candidate], Refusals]:
        """Candidates (up to `enough` of them, all if None) and the reasons of the nodes that are none."""
        rows = evaluation.nodes.rows
        if decision.refused is not None:
            rows = rows if decision.refused.code == "Unschedulable" else rows[:0]
        else:
            hopeless = decision.trail.unresolvable()
            rows = rows[(decision.trail.verdict_of != FEASIBLE) & ~hopeless]
        run = DryRun(pod, evaluation)
        together = max(enough or len(rows), 1) if evaluation.local() else 1
        found: list[Candidate] = []
        for start in range(0, len(rows), together):
            found += run.try_rows(rows[start : start + together])
            if enough is not None and len(found) >= enough and any(each.violations == 0 for each in found):
                break
        return found, run.refusals

    # -- what wakes

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Refuse | None:  # noqa: ARG002
        """Holding back a pod whose victims are still being evicted is the engine's part."""
        return None

    def wakes_on(self) -> Iterable[Wake]:
        return ()


class Refusals:
    """Why nodes are no candidates: how many of them there are, and how often each reason was given."""

    def __init__(self) -> None:
        self.nodes = 0
        self.reasons: Counter[str] = Counter()

    def add(self, reasons: Iterable[str], nodes: int) -> None:
        self.nodes += nodes
        for reason in reasons:
            self.reasons[reason] += nodes

    def message(self, nodes: int) -> str:
        """The rest of `nodes` were not even tried."""
        return f"0/{nodes} nodes are available{counted(self.reasons + Counter({NO_HELP: nodes - self.nodes}))}"


class DryRun:
    """Trying some nodes without the pods that may be evicted there."""

    def __init__(self, pod: Pod, evaluation: Any) -> None:
        self._pod, self._evaluation, self._state = pod, evaluation, evaluation.state
        self._budgets = Budgets(self._state.store.budgets())
        self.refusals = Refusals()

    def try_rows(self, rows: Rows) -> list[Candidate]:
        """The candidates among these rows, which must not bear on each other."""
        lesser = {row: victims for row in rows.tolist() if (victims := self._lesser(row))}
        self.refusals.add((NO_VICTIMS,), len(rows) - len(lesser))
        if not lesser:
            return []
        with self._state.trial() as trial:
            for pods in lesser.values():
                for pod in pods:
                    trial.remove_pod(pod.uid, as_extension=True)
            open_rows = self._passing(np.fromiter(lesser, np.int64, len(lesser)), note=True)
            return list(self._reprieve({row: lesser[row] for row in open_rows}, trial))

    def _lesser(self, row: int) -> list[Pod]:
        """Pods of lower priority on a row, the most important first."""
        mine = self._pod.priority
        pods = [placed.pod for placed in self._state.pods_on[row].values() if placed.pod.priority < mine]
        return sorted(pods, key=importance)

    def _passing(self, rows: Rows, note: bool = False) -> list[int]:
        verdicts = self._evaluation.verdicts(rows)
        for verdict in verdicts if note else ():
            if verdict is not None:
                self.refusals.add(verdict.reasons, 1)
        return [row for row, verdict in zip(rows.tolist(), verdicts, strict=True) if verdict is None]

    def _reprieve(self, lesser: dict[int, list[Pod]], trial: Trial) -> Iterator[Candidate]:
        """Give pods back in turns, one per row and turn, and keep those that do no harm."""
        split = {row: self._budgets.split(pods) for row, pods in lesser.items()}
        turns = {row: [*violating, *others] for row, (violating, others) in split.items()}
        victims: dict[int, list[Pod]] = {row: [] for row in lesser}
        for turn in range(max((len(pods) for pods in turns.values()), default=0)):
            tried = {row: pods[turn] for row, pods in turns.items() if turn < len(pods)}
            for row, pod in tried.items():
                trial.add_pod(pod, self._state.table.names[row], as_extension=True)
            fine = set(self._passing(np.fromiter(tried, np.int64, len(tried))))
            for row, pod in tried.items():
                if row not in fine:
                    trial.remove_pod(pod.uid, as_extension=True)
                    victims[row].append(pod)
        for row, pods in victims.items():
            if pods:
                violations = sum(any(pod is each for each in split[row][0]) for pod in pods)
                yield Candidate(self._state.table.names[row], tuple(sorted(pods, key=importance)), violations)


class Budgets:
    """Disruption budgets, and which evictions they would not allow."""

    def __init__(self, budgets: Sequence[PodDisruptionBudget]) -> None:
        compiled = [(budget, selectors.compile_selector(budget.spec.selector)) for budget in budgets]
        self._budgets = [(budget, selector) for budget, selector in compiled if selector]

    def split(self, pods: Sequence[Pod]) -> tuple[list[Pod], list[Pod]]:
        """Pods (the most important first) whose eviction would violate a budget, and the others."""
        left = [budget.status.disruptions_allowed for budget, _ in self._budgets]
        violating: list[Pod] = []
        others: list[Pod] = []
        for pod in pods:
            violated = False
            for at, (budget, selector) in enumerate(self._budgets):
                if budget.namespace != pod.namespace or pod.name in budget.status.disrupted_pods:
                    continue
                if pod.labels and selectors.matches(selector, pod.labels):
                    left[at] -= 1
                    violated = violated or left[at] < 0
            (violating if violated else others).append(pod)
        return violating, others


def importance(pod: Pod) -> tuple[int, datetime]:
    """Sorts the most important pod first: higher priority, then the one that started earlier."""
    return -pod.priority, pod.status.start_time or NOT_STARTED


def best(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that kube-scheduler could pick: least harm first; more than one is an exact tie."""
    preferred = max(_preference(each) for each in candidates)
    return [each for each in candidates if _preference(each) == preferred]


def _preference(candidate: Candidate) -> tuple[float, ...]:
    """Fewest budget violations, lowest top priority, lowest sum, fewest pods, latest start among those of top priority."""
    priorities = [pod.priority for pod in candidate.victims]
    top = [pod for pod in candidate.victims if pod.priority == max(priorities)]
    earliest = min(pod.status.start_time or NOT_STARTED for pod in top)
    total = sum(priority + 2**31 for priority in priorities)
    return -candidate.violations, -max(priorities), -total, -len(priorities), _seconds(earliest)


def _seconds(moment: datetime) -> float:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()


def _leaves_for_another(pod: Pod) -> bool:
    """Is the pod on its way out because a scheduler preempted it?"""
    target = pod.condition("DisruptionTarget")
    preempted = target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"
    return pod.terminating and preempted


def _is_live(state: ClusterState, name: str) -> bool:
    row = state.table.row_of.get(name)
    return row is not None and bool(state.table.live[row])
