"""DefaultPreemption: find the node where the eviction of pods of lower priority does the least harm.

dry_run           which pods would have to go, one node after the other: the general way, and the judge
dry_run_arrays    the same for many nodes at once, if every filter has a form for that
candidates        the nodes that were found, and which of them is the best
"""

from __future__ import annotations

from collections.abc import Iterable

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import FEASIBLE, Decision, PostFilterResult, RejectPod
from stowplan.framework.interfaces import Evaluator, Wake
from stowplan.objects.errors import DecisionError, PluginError
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.default.candidates import Candidates, best
from stowplan.plugins.nodes.default.dry_run import NO_VICTIMS, DryRun, Refusals
from stowplan.plugins.nodes.default.dry_run_arrays import ArrayDryRun

NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."
NO_CANDIDATE = "no candidate node for preemption"

SMALLEST_BATCH = 32  # nodes at once, if that is possible; fewer would cost the same
SMALLEST_ARRAYS = 256


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
        if not found and refusals.errors:
            return PostFilterResult((f"preemption: {refusals.error()}",), settles=True)
        if not found:
            hopeless = f"preemption: {refusals.message(decision.trail.total)}"
            return PostFilterResult((hopeless,), clears_nomination=True)
        try:
            left = evaluator.accepted_by_extenders(found)
        except PluginError as error:
            return PostFilterResult((f"preemption: {error.problem}",))
        if not left:
            return PostFilterResult((f"preemption: {NO_CANDIDATE}",))
        return PostFilterResult(candidate=left[int(best(left)[0])])

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
        self, pod: Pod, decision: Decision, evaluator: Evaluator, *, enough: int | None = None, by_arrays: bool = True
    ) -> tuple[Candidates, Refusals]:
        """Return candidates (`enough` of them, all if None), and the reasons of the other nodes.

        `by_arrays`: judge many nodes at once where that is possible. The answer is the same. A filter that fails on one
        node leaves the others standing: then all are judged one by one.
        """
        try:
            return self._dry_run(pod, decision, evaluator, enough, by_arrays=by_arrays)
        except DecisionError:
            return self._dry_run(pod, decision, evaluator, enough, by_arrays=False)

    def _dry_run(
        self, pod: Pod, decision: Decision, evaluator: Evaluator, enough: int | None, *, by_arrays: bool
    ) -> tuple[Candidates, Refusals]:
        rows = evaluator.nodes.rows
        if decision.refused is not None:
            rows = rows if decision.refused.code == "Unschedulable" else rows[:0]
        else:
            hopeless = decision.trail.unresolvable()
            rows = rows[(decision.trail.verdict_of != FEASIBLE) & ~hopeless]
        found, refusals = Candidates(), Refusals()
        if not any(priority < pod.priority for priority in evaluator.state.priorities):
            refusals.add((NO_VICTIMS,), len(rows))  # no pod in the cluster has a lower priority
            return found, refusals
        wanted = len(rows) if enough is None else enough
        # A pod that has a slot leaves the slot's room held, and an owner of held room releases room on other nodes.
        coupled = evaluator.state.holds_room
        what_if = evaluator.what_if() if by_arrays and not coupled else None
        run: DryRun | ArrayDryRun
        if what_if is not None:
            run, least = ArrayDryRun(pod, evaluator, what_if, refusals), SMALLEST_ARRAYS
        else:
            run = DryRun(pod, evaluator, refusals)
            least = SMALLEST_BATCH if evaluator.local() and not coupled else 0
        while len(rows) and not found.enough(wanted):
            missing = wanted - len(found)
            together = max(missing + missing // 8, least) if least else 1  # some more, as a few are no candidates
            found.add(evaluator.with_more_victims(run.candidates_among(rows[:together])))
            rows = rows[together:]
        found.end(wanted)
        return found, refusals

    # -- requeueing

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> RejectPod | None:  # noqa: ARG002
        """Do nothing: the engine gates pods whose victims are being evicted."""
        return None

    def wakes_on(self) -> Iterable[Wake]:
        return ()


def _is_preempted(pod: Pod) -> bool:
    """True if the pod is terminating because a scheduler preempted it."""
    target = pod.condition("DisruptionTarget")
    preempted = target is not None and target.status == "True" and target.reason == "PreemptionByScheduler"
    return pod.terminating and preempted


def _is_live(state: ClusterState, name: str) -> bool:
    row = state.table.row_of.get(name)
    return row is not None and bool(state.table.live[row])
