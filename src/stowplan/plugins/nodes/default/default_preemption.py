"""DefaultPreemption: find the node where evicting the least important pods would make room.

The dry run, node by node: take away every pod of lower priority; if the pod would then pass all filters, give back as
many as possible, the most important first, those whose disruption budget would be violated before the others. What
cannot be given back are the victims. Where every filter judges a node by itself alone, many nodes are tried at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeAlias

import numpy as np

from stowplan.columns.arrays import Rows
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState, PlacedPod
from stowplan.columns.trial import Trial
from stowplan.framework.interfaces import Evaluator, Wake
from stowplan.framework.verdict import FEASIBLE, Candidate, Decision, PostFilterResult, Refuse, counted
from stowplan.objects import spark
from stowplan.objects.disruption import Budgets, importance, started
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod

NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."
EXECUTORS = "not eligible due to executors that need room besides."
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CANDIDATE = "no candidate node for preemption"
NO_HELP = "Preemption is not helpful for scheduling"

SMALLEST_LOT = 32  # nodes tried at once, where that is possible; fewer would cost as much

PodsByRow: TypeAlias = dict[int, list[PlacedPod]]
Change: TypeAlias = Callable[[Trial, PodsByRow, int], None]


class DefaultPreemption:
    reads = ("PodDisruptionBudget",)
    configurable_at = ("preEnqueue",)

    def __init__(self, min_candidate_nodes_percentage: int = 10, min_candidate_nodes_absolute: int = 100) -> None:
        """How many candidates are enough: this percentage of the nodes, and at least this many."""
        self._percentage, self._absolute = min_candidate_nodes_percentage, min_candidate_nodes_absolute

    def post_filter(self, pod: Pod, decision: Decision, evaluator: Evaluator) -> PostFilterResult:
        reason = self.ineligible(pod, decision, evaluator.state)
        if reason:
            return PostFilterResult((f"preemption: {reason}",))
        found, refusals = self.dry_run(pod, decision, evaluator, enough=self._enough(decision.trail.total))
        if not found:
            hopeless = f"preemption: {refusals.message(decision.trail.total)}"
            return PostFilterResult((hopeless,), breaks_promise=True)
        try:
            left = evaluator.consulted(found)
        except PluginError as error:
            return PostFilterResult((f"preemption: {error.problem}",))
        if not left:
            return PostFilterResult((f"preemption: {NO_CANDIDATE}",))
        return PostFilterResult(candidate=best(left)[0])

    def _enough(self, nodes: int) -> int:
        return min(max(nodes * self._percentage // 100, self._absolute), nodes)

    # -- may it preempt at all?

    def ineligible(self, pod: Pod, decision: Decision, state: ClusterState) -> str:
        """Why the pod may not preempt, or nothing."""
        if pod.spec.preemption_policy == "Never":
            return NEVER
        needs = spark.executors(pod)
        if needs is not None and needs.least:
            return EXECUTORS  # room for one pod can be promised while victims leave, for a whole application it cannot
        nominated = pod.nominated_node or state.nominated_pods.node_of(
            pod.uid
        )  # it may be promised, and not written yet
        if not nominated or self._hopeless(nominated, decision):
            return ""
        there = Cluster(state).pods_on(nominated) if _is_live(state, nominated) else []
        leaving = any(other.priority < pod.priority and _leaves_for_another(other) for other in there)
        return TERMINATING if leaving else ""

    @staticmethod
    def _hopeless(name: str, decision: Decision) -> bool:
        """Is the nominated node one where evictions cannot help?"""
        if decision.refused is not None:
            return decision.refused.code == "UnschedulableAndUnresolvable"
        hopeless = zip(decision.trail.names, decision.trail.unresolvable().tolist(), strict=True)
        return next((is_hopeless for node, is_hopeless in hopeless if node == name), True)

    # -- the dry run

    def dry_run(
        self, pod: Pod, decision: Decision, evaluator: Evaluator, *, enough: int | None = None
    ) -> tuple[list[Candidate], Refusals]:
        """Candidates (up to `enough` of them, all if None) and the reasons of the nodes that are none."""
        rows = evaluator.nodes.rows
        if decision.refused is not None:
            rows = rows if decision.refused.code == "Unschedulable" else rows[:0]
        else:
            hopeless = decision.trail.unresolvable()
            rows = rows[(decision.trail.verdict_of != FEASIBLE) & ~hopeless]
        run = DryRun(pod, evaluator)
        if not any(priority < pod.priority for priority in evaluator.state.priorities):
            run.refusals.add((NO_VICTIMS,), len(rows))  # whoever is there, nobody matters less
            return [], run.refusals
        wanted = len(rows) if enough is None else enough
        found: list[Candidate] = []
        while len(rows):
            together = max(wanted - len(found), SMALLEST_LOT) if run.apart else 1
            found += evaluator.joined(run.try_rows(rows[:together]))
            rows = rows[together:]
            if len(found) >= wanted and any(each.violations == 0 for each in found):
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

    def __init__(self, pod: Pod, evaluator: Evaluator) -> None:
        self._pod, self._evaluator, self._state = pod, evaluator, evaluator.state
        self._budgets = Budgets(self._state.store.budgets_of)
        # A pod that has a slot leaves the slot's room held, and an owner of held room releases room on other nodes.
        self._coupled = self._state.holds_room
        self.refusals = Refusals()

    @property
    def apart(self) -> bool:
        """Does what is taken away from one node matter there alone?"""
        return bool(self._evaluator.local()) and not self._coupled

    def try_rows(self, rows: Rows) -> list[Candidate]:
        """The candidates among these rows, which must not bear on each other."""
        lesser = {row: victims for row in rows.tolist() if (victims := self._lesser(row))}
        self.refusals.add((NO_VICTIMS,), len(rows) - len(lesser))
        if not lesser:
            return []
        with self._state.trial() as trial:
            alike = self.apart and self._evaluator.local() in ("node", "resources")
            change = self._resources if alike else self._pods
            change(trial, lesser, -1)
            open_rows = self._passing(np.fromiter(lesser, np.int64, len(lesser)), note=True)
            return list(self._reprieve({row: lesser[row] for row in open_rows}, trial, change))

    def _lesser(self, row: int) -> list[PlacedPod]:
        """Pods of lower priority on a row, the most important first."""
        mine = self._pod.priority
        pods = [placed for placed in self._state.pods_on[row].values() if placed.pod.priority < mine]
        return sorted(pods, key=lambda placed: (importance(placed.pod), placed.pod.uid))

    def _passing(self, rows: Rows, note: bool = False) -> list[int]:
        verdicts = self._evaluator.verdicts(rows)
        for verdict in verdicts if note else ():
            if verdict is not None:
                self.refusals.add(verdict.reasons, 1)
        return [row for row, verdict in zip(rows.tolist(), verdicts, strict=True) if verdict is None]

    def _reprieve(self, lesser: PodsByRow, trial: Trial, change: Change) -> Iterator[Candidate]:
        """Give pods back in turns, one per row and turn, and keep those that do no harm."""
        split = {row: self._budgets.split(pods, lambda placed: placed.pod) for row, pods in lesser.items()}
        turns = {row: [*violating, *others] for row, (violating, others) in split.items()}
        victims: PodsByRow = {row: [] for row in lesser}
        for turn in range(max((len(pods) for pods in turns.values()), default=0)):
            tried = {row: [pods[turn]] for row, pods in turns.items() if turn < len(pods)}
            change(trial, tried, +1)
            fine = set(self._passing(np.fromiter(tried, np.int64, len(tried))))
            harmful = {row: pods for row, pods in tried.items() if row not in fine}
            change(trial, harmful, -1)
            for row, pods in harmful.items():
                victims[row] += pods
        for row, chosen in victims.items():
            if chosen:
                violations = sum(placed in split[row][0] for placed in chosen)
                ordered = sorted((placed.pod for placed in chosen), key=importance)
                yield Candidate(self._state.table.names[row], tuple(ordered), violations)

    def _pods(self, trial: Trial, pods: PodsByRow, sign: int) -> None:
        """Take pods away, or give them back, with all that they hold."""
        for row, each in pods.items():
            for placed in each:
                if sign < 0:
                    trial.remove_pod(placed.pod.uid, as_extension=True)
                else:
                    trial.add_pod(placed.pod, self._state.table.names[row], as_extension=True)

    def _resources(self, trial: Trial, pods: PodsByRow, sign: int) -> None:
        """The same where nothing but resources is looked at: a few additions for all rows together."""
        amounts: dict[str, list[int]] = {}
        for at, each in enumerate(pods.values()):
            for placed in each:
                for resource, amount in placed.shape.taken:
                    if resource not in amounts:
                        amounts[resource] = [0] * len(pods)
                    amounts[resource][at] += amount
        columns = {resource: np.array(column, np.int64) for resource, column in amounts.items()}
        trial.shift(np.fromiter(pods, np.int64, len(pods)), columns, sign)


def best(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates that kube-scheduler could pick: least harm first; more than one is an exact tie."""
    preferences = [_preference(each) for each in candidates]
    preferred = max(preferences)
    return [each for each, preference in zip(candidates, preferences, strict=True) if preference == preferred]


def _preference(candidate: Candidate) -> tuple[float, ...]:
    """Fewest budget violations, lowest top priority, lowest sum, fewest pods, latest start of the top ones."""
    priorities = [pod.priority for pod in candidate.victims]
    top = [pod for pod in candidate.victims if pod.priority == max(priorities)]
    earliest = min(started(pod) for pod in top)
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
