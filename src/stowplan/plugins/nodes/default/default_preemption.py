"""DefaultPreemption: find the node where the eviction of pods of lower priority does the least harm.

The dry run, node by node: remove every pod of lower priority. If the pod passes all filters then, add back as many as
possible: first those that a disruption budget protects, then by priority. The others are the victims. If every filter
judges each node by itself, the dry run handles many nodes at once.
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
from stowplan.framework.decision import FEASIBLE, Candidate, Decision, PostFilterResult, RejectPod, counted
from stowplan.framework.interfaces import Evaluator, Wake
from stowplan.objects.disruption import Budgets, importance, started
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod

NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."
NO_VICTIMS = "No preemption victims found for incoming pod"
NO_CANDIDATE = "no candidate node for preemption"
NO_HELP = "Preemption is not helpful for scheduling"

SMALLEST_BATCH = 32  # nodes at once, if that is possible; fewer would cost the same

PodsByRow: TypeAlias = dict[int, list[PlacedPod]]
Change: TypeAlias = Callable[[Trial, PodsByRow, int], None]


class DefaultPreemption:
    reads = ("PodDisruptionBudget",)
    configurable_at = ("preEnqueue",)

    def __init__(self, min_candidate_nodes_percentage: int = 10, min_candidate_nodes_absolute: int = 100) -> None:
        """How many candidates are enough: this percentage of the nodes, and at least this many."""
        self._percentage, self._absolute = min_candidate_nodes_percentage, min_candidate_nodes_absolute

    def post_filter(self, pod: Pod, decision: Decision, evaluator: Evaluator) -> PostFilterResult:
        if pod.spec.preemption_policy != "Never" and evaluator.needs_slots():
            return PostFilterResult(with_slots=True)  # no node alone can be judged: the room is on many
        reason = self.ineligible(pod, decision, evaluator.state)
        if reason:
            return PostFilterResult((f"preemption: {reason}",))
        found, refusals = self.dry_run(pod, decision, evaluator, enough=self._enough(decision.trail.total))
        if not found:
            hopeless = f"preemption: {refusals.message(decision.trail.total)}"
            return PostFilterResult((hopeless,), clears_nomination=True)
        try:
            left = evaluator.accepted_by_extenders(found)
        except PluginError as error:
            return PostFilterResult((f"preemption: {error.problem}",))
        if not left:
            return PostFilterResult((f"preemption: {NO_CANDIDATE}",))
        return PostFilterResult(candidate=best(left)[0])

    def _enough(self, nodes: int) -> int:
        return min(max(nodes * self._percentage // 100, self._absolute), nodes)

    # -- eligibility

    def ineligible(self, pod: Pod, decision: Decision, state: ClusterState) -> str:
        """Return why the pod may not preempt, or an empty text."""
        if pod.spec.preemption_policy == "Never":
            return NEVER
        # The nomination may not be written yet.
        nominated = pod.nominated_node or state.nominated_pods.node_of(pod.uid)
        if not nominated or self._cannot_fit(nominated, decision):
            return ""
        others = Cluster(state).pods_on(nominated) if _is_live(state, nominated) else []
        terminating = any(other.priority < pod.priority and _is_preempted(other) for other in others)
        return TERMINATING if terminating else ""

    @staticmethod
    def _cannot_fit(name: str, decision: Decision) -> bool:
        """True if evictions cannot help on the nominated node."""
        if decision.refused is not None:
            return decision.refused.code == "UnschedulableAndUnresolvable"
        hopeless = zip(decision.trail.names, decision.trail.unresolvable().tolist(), strict=True)
        return next((is_hopeless for node, is_hopeless in hopeless if node == name), True)

    # -- the dry run

    def dry_run(
        self, pod: Pod, decision: Decision, evaluator: Evaluator, *, enough: int | None = None
    ) -> tuple[list[Candidate], Refusals]:
        """Return candidates (at most about `enough`, all if None), and the reasons of the other nodes."""
        rows = evaluator.nodes.rows
        if decision.refused is not None:
            rows = rows if decision.refused.code == "Unschedulable" else rows[:0]
        else:
            hopeless = decision.trail.unresolvable()
            rows = rows[(decision.trail.verdict_of != FEASIBLE) & ~hopeless]
        run = DryRun(pod, evaluator)
        if not any(priority < pod.priority for priority in evaluator.state.priorities):
            run.refusals.add((NO_VICTIMS,), len(rows))  # no pod in the cluster has a lower priority
            return [], run.refusals
        wanted = len(rows) if enough is None else enough
        found: list[Candidate] = []
        while len(rows):
            together = max(wanted - len(found), SMALLEST_BATCH) if run.nodes_are_independent else 1
            found += evaluator.with_more_victims(run.candidates_among(rows[:together]))
            rows = rows[together:]
            if len(found) >= wanted and any(each.violations == 0 for each in found):
                break
        return found, run.refusals

    # -- requeueing

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> RejectPod | None:  # noqa: ARG002
        """Do nothing: the engine gates pods whose victims are being evicted."""
        return None

    def wakes_on(self) -> Iterable[Wake]:
        return ()


class Refusals:
    """Why nodes are not candidates: how many nodes, and how many for each reason."""

    def __init__(self) -> None:
        self.nodes = 0
        self.reasons: Counter[str] = Counter()

    def add(self, reasons: Iterable[str], nodes: int) -> None:
        self.nodes += nodes
        for reason in reasons:
            self.reasons[reason] += nodes

    def message(self, nodes: int) -> str:
        """Return kube-scheduler's message for `nodes` nodes; the nodes not counted here were not evaluated."""
        return f"0/{nodes} nodes are available{counted(self.reasons + Counter({NO_HELP: nodes - self.nodes}))}"


class DryRun:
    """The evaluation of nodes without the pods of lower priority."""

    def __init__(self, pod: Pod, evaluator: Evaluator) -> None:
        self._pod, self._evaluator, self._state = pod, evaluator, evaluator.state
        self._budgets = Budgets(self._state.store.budgets_of)
        # A pod that has a slot leaves the slot's room held, and an owner of held room releases room on other nodes.
        self._coupled = self._state.holds_room
        self.refusals = Refusals()

    @property
    def nodes_are_independent(self) -> bool:
        """True if the removal of pods from one node changes nothing for the other nodes."""
        return bool(self._evaluator.local()) and not self._coupled

    def candidates_among(self, rows: Rows) -> list[Candidate]:
        """Return the candidates among these rows. Several rows must be independent of each other."""
        removable = {row: victims for row in rows.tolist() if (victims := self._lower_priority(row))}
        self.refusals.add((NO_VICTIMS,), len(rows) - len(removable))
        if not removable:
            return []
        with self._state.trial() as trial:
            alike = self.nodes_are_independent and self._evaluator.local() in ("node", "resources")
            change = self._resources if alike else self._pods
            change(trial, removable, -1)
            open_rows = self._passing(np.fromiter(removable, np.int64, len(removable)), record=True)
            return list(self._add_back({row: removable[row] for row in open_rows}, trial, change))

    def _lower_priority(self, row: int) -> list[PlacedPod]:
        """Return the pods of lower priority on a row, highest priority first."""
        mine = self._pod.priority
        pods = [placed for placed in self._state.pods_on[row].values() if placed.pod.priority < mine]
        return sorted(pods, key=lambda placed: (importance(placed.pod), placed.pod.uid))

    def _passing(self, rows: Rows, record: bool = False) -> list[int]:
        verdicts = self._evaluator.verdicts(rows)
        for verdict in verdicts if record else ():
            if verdict is not None:
                self.refusals.add(verdict.reasons, 1)
        return [row for row, verdict in zip(rows.tolist(), verdicts, strict=True) if verdict is None]

    def _add_back(self, removable: PodsByRow, trial: Trial, change: Change) -> Iterator[Candidate]:
        """Add pods back in turns, one per row and turn; those with which the pod does not fit are the victims."""
        split = {row: self._budgets.split(pods, lambda placed: placed.pod) for row, pods in removable.items()}
        turns = {row: [*violating, *others] for row, (violating, others) in split.items()}
        victims: PodsByRow = {row: [] for row in removable}
        for turn in range(max((len(pods) for pods in turns.values()), default=0)):
            added = {row: [pods[turn]] for row, pods in turns.items() if turn < len(pods)}
            change(trial, added, +1)
            passing = set(self._passing(np.fromiter(added, np.int64, len(added))))
            in_the_way = {row: pods for row, pods in added.items() if row not in passing}
            change(trial, in_the_way, -1)
            for row, pods in in_the_way.items():
                victims[row] += pods
        for row, chosen in victims.items():
            if chosen:
                violations = sum(placed in split[row][0] for placed in chosen)
                ordered = sorted((placed.pod for placed in chosen), key=importance)
                yield Candidate(self._state.table.names[row], tuple(ordered), violations)

    def _pods(self, trial: Trial, pods: PodsByRow, sign: int) -> None:
        """Remove pods, or add them back, with everything that they use."""
        for row, each in pods.items():
            for placed in each:
                if sign < 0:
                    trial.remove_pod(placed.pod.uid, as_extension=True)
                else:
                    trial.add_pod(placed.pod, self._state.table.names[row], as_extension=True)

    def _resources(self, trial: Trial, pods: PodsByRow, sign: int) -> None:
        """The same for filters that only look at resources: a few additions for all rows together."""
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
    """Return the candidates with the least harm, which kube-scheduler could pick; several are an exact tie."""
    preferences = [_preference(each) for each in candidates]
    preferred = max(preferences)
    return [each for each, preference in zip(candidates, preferences, strict=True) if preference == preferred]


def _preference(candidate: Candidate) -> tuple[float, ...]:
    """Return a key for the maximum: fewest budget violations, lowest highest priority, lowest sum of priorities, fewest
    victims, latest start of the victims with the highest priority.
    """
    priorities = [pod.priority for pod in candidate.victims]
    top = [pod for pod in candidate.victims if pod.priority == max(priorities)]
    earliest = min(started(pod) for pod in top)
    total = sum(priority + 2**31 for priority in priorities)
    return -candidate.violations, -max(priorities), -total, -len(priorities), _seconds(earliest)


def _seconds(moment: datetime) -> float:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()


def _is_preempted(pod: Pod) -> bool:
    """True if the pod is terminating because a scheduler preempted it."""
    target = pod.condition("DisruptionTarget")
    preempted = target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"
    return pod.terminating and preempted


def _is_live(state: ClusterState, name: str) -> bool:
    row = state.table.row_of.get(name)
    return row is not None and bool(state.table.live[row])
