"""The scheduler of placements. It has no clock and no I/O: `handle` takes changes, `step` decides, both return actions.

    put ──► due ──► decided ──┬── create ► add ► remove ► delete ► status ──► settled
             ▲                ├── misconfigured, or an error: status ───────► settled  (the last good decisions stay)
             │                ├── nothing to write ─────────────────────────► settled
             │                │
             │                └── a write is refused, or not answered in time
             │                                     ▼
             ├───────────────────────────────── backoff ── decisions in doubt are read first ──► due
             │
             └── settled: requeued when a change affects the placement, when a toleration or a score expires, when
                          another client writes to its decisions or status, and at the latest after `reschedule` seconds

    deleted ──► forgotten, from every state (the garbage collector deletes the decisions, by their owner)
    left to another scheduler by annotation, or terminating ──► settled, without a decision

The way of one placement through the modules:

    put          `handle`: `index` notes which changes affect the placement
    due          `queue` holds the placement until `step` takes it
    decide       `framework.placement` chooses clusters and cuts them into decision groups
    plan writes  `write_plan`, with `slices` (which object lists which clusters), `decision_writes` and `status`
    write        `writes` sends one phase after the other; `decision_cache` assumes that they succeed
    settled      `handle`: the last write is answered, and `queue` may hand the placement out again

Times are seconds since the epoch, because taints and scores carry timestamps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stowplan.columns.fleet.cluster_sets import ClusterSets
from stowplan.columns.fleet.clusters import Fleet
from stowplan.framework.placement import decision_groups, evaluation
from stowplan.framework.placement.choice import ERROR, ClusterPluginStatus, PlacementChoice, PlacementQuestion
from stowplan.framework.placement.policy import ClusterPolicy
from stowplan.framework.plugin_faults import error_text
from stowplan.objects.actions import Action
from stowplan.objects.changes import Change, Gone, Result
from stowplan.objects.clusters import AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding
from stowplan.objects.errors import PluginError
from stowplan.objects.placements import Placement, PlacementDecision
from stowplan.placement.decision_cache import DecisionCache
from stowplan.placement.index import EVERYTHING, PlacementIndex, resources_of
from stowplan.placement.queue import PlacementQueue, ScoreExpiries
from stowplan.placement.status import StatusCache
from stowplan.placement.write_plan import WritePlanner
from stowplan.placement.writes import PlacementWrites

RESCHEDULE = 300.0


class PlacementScheduler:
    def __init__(
        self,
        policy: ClusterPolicy,
        *,
        ocm: bool = False,
        reschedule: float = RESCHEDULE,
        hysteresis: int = 0,
        answer_within: float = 30.0,
        report: Callable[[PluginError], None] = lambda _: None,
        report_failure: Callable[[str, str], None] = lambda _key, _problem: None,
    ) -> None:
        """`ocm`: decide as Open Cluster Management does, without our additions. `hysteresis`: by how many points scores
        may vary without effect, for placements that do not say.

        `report` is told of failed plugins; `report_failure` of anything else that failed, and of which placement.
        """
        self.fleet = Fleet()
        self.sets = ClusterSets(self.fleet, strict=not ocm)
        self.placements: dict[str, Placement] = {}
        self.decision_cache = DecisionCache(self.fleet)
        self.decisions = 0  # how often a placement was decided
        self._policy, self._ocm, self._reschedule, self._hysteresis = policy, ocm, reschedule, hysteresis
        self._report, self._report_failure = report, report_failure
        self._index = PlacementIndex(self.sets)
        self._queue = PlacementQueue()
        self._expiries = ScoreExpiries(self.fleet)
        self._statuses = StatusCache()
        self._planner = WritePlanner(self.decision_cache, self._statuses, ocm=ocm)
        self._writes = PlacementWrites(self.decision_cache, answer_within)

    # -- put: changes come in, and make placements due

    def handle(self, change: Change | Result, now: float) -> list[Action]:
        """Take in a change, or the result of an action. Return the actions that follow at once."""
        if isinstance(change, Result):
            return self._answered(change, now)
        found, gone = change.object, isinstance(change, Gone)
        match found:
            case Placement() if gone:
                self._forget(found.key)
            case Placement():
                self._put_placement(found, now)
            case PlacementDecision():
                self._put_decision(found, gone)
            case ManagedCluster():
                self._put_cluster(found, gone)
            case ManagedClusterSet():
                (self.sets.remove if gone else self.sets.put)(found)
                self._queue.add(self._index.by_set(found.name))
            case ManagedClusterSetBinding():
                (self.sets.remove if gone else self.sets.put)(found)
                self._queue.add(self._index.by_binding(found.namespace, found.name))
            case AddOnPlacementScore():
                self._put_score(found, gone, now)
        return []

    def _put_placement(self, placement: Placement, now: float) -> None:
        key, old = placement.key, self.placements.get(placement.key)
        self.placements[key] = placement
        foreign_status = old is not None and self._statuses.put(old, placement, now)
        if old is None or _decided_by(old) != _decided_by(placement):
            self._index_anew(placement, now)
            self._queue.add((key,))
        elif foreign_status:
            self._queue.add((key,))

    def _index_anew(self, placement: Placement, now: float) -> None:
        try:
            reads = self._policy.reads(placement)
        except BaseException as error:  # as in `_decide`
            self._report_failure(placement.key, error_text(error))
            reads = EVERYTHING
        self._index.add(placement, reads)
        self._expiries.watch(resources_of(reads), now)

    def adopt(self, policy: ClusterPolicy, now: float) -> None:
        """Decide by another policy from now on: every placement is decided again."""
        self._policy = policy
        self._planner.forget_all()
        for placement in self.placements.values():
            self._index_anew(placement, now)
        self._queue.add(self.placements)

    def _forget(self, key: str) -> None:
        self.placements.pop(key, None)
        self._index.remove(key)
        self._queue.forget(key)
        self._statuses.drop_assumed(key)
        self._planner.forget(key)
        self._writes.forget(key)

    def _put_decision(self, decision: PlacementDecision, gone: bool) -> None:
        foreign = self.decision_cache.remove(decision) if gone else self.decision_cache.put(decision)
        if foreign and decision.placement in self.placements:
            self._queue.add((decision.placement,))

    def _put_cluster(self, cluster: ManagedCluster, gone: bool) -> None:
        affected = self._index.by_cluster(self.fleet.cluster(cluster.name), None if gone else cluster)
        if gone:
            self.fleet.remove(cluster.name)
        else:
            self.fleet.put(cluster)
        self._queue.add(affected)

    def _put_score(self, score: AddOnPlacementScore, gone: bool, now: float) -> None:
        row = self.fleet.row_of.get(score.cluster)
        old = None if row is None else self.fleet.scores(score.name).objects.get(row)
        if gone:
            self.fleet.remove_score(score)
        else:
            self.fleet.put_score(score)
            self._expiries.changed(score.name, score.valid_until)
        self._queue.add(self._index.by_score(old, None if gone else score, self.fleet.cluster(score.cluster), now))

    def requeue(self, keys: Iterable[str]) -> None:
        """Decide these placements again; a placement with writes in progress, after these."""
        self._queue.add(keys)

    # -- due: time passes

    def next_deadline(self) -> float | None:
        """Return when the next step is due; 0.0 if a placement is due now."""
        moments = (self._queue.next_deadline(), self._expiries.next_deadline(), self._writes.next_deadline())
        return min((each for each in moments if each is not None), default=None)

    def step(self, now: float) -> list[Action]:
        """Give up writes that are overdue, and decide one placement."""
        actions: list[Action] = []
        while (overdue := self._writes.overdue(now)) is not None:
            actions += self._answered(overdue, now)
        self._queue.add_overdue(now)
        for resource, clusters in self._expiries.expired(now):
            self._queue.add(self._index.by_expiry(resource, clusters, expressions=not self._ocm))
        key = self._queue.pop()
        return actions if key is None else actions + self._decide(key, now)

    # -- decide, plan writes, write

    def choose(self, placement: Placement, now: float, *, patient: bool = True) -> PlacementChoice:
        """Return which clusters a placement would get now, and why. The placement need not exist; nothing changes.

        `patient`: no other placement is due, so that a choice may take longer.
        """
        return evaluation.choose(self._question(placement, now, patient=patient), self.sets, self._policy)

    def _question(self, placement: Placement, now: float, *, patient: bool = True) -> PlacementQuestion:
        own = self.fleet.rows(self.decision_cache.clusters(placement.key))
        return PlacementQuestion(placement, self.fleet, now, own, self._ocm, patient, self._hysteresis)

    def _decide(self, key: str, now: float) -> list[Action]:
        """Decide a placement. Return its first writes; none if it is settled.

        This is the last net: whatever goes wrong with one placement, memory and recursion included, is that placement's
        failure, and the others go on. Nothing in here waits, so an exception that would end a task or the program comes
        from a plugin, too.
        """
        placement = self.placements.get(key)
        if placement is None or placement.ignored:
            return []
        try:
            return self._decide_placement(placement, now)
        except BaseException as error:
            return self._fail(placement, error_text(error), now)

    def _fail(self, placement: Placement, problem: str, now: float) -> list[Action]:
        """Say in the placement's status that it cannot be decided. It is tried again at the next regular moment."""
        key = placement.key
        self._report_failure(key, problem)
        self._statuses.drop_assumed(key)
        self._writes.forget(key)
        self._queue.retry(key, now + self._reschedule)
        try:
            choice = PlacementChoice(self._question(placement, now))
            status = ClusterPluginStatus(ERROR, "", f"the placement cannot be decided: {problem}")
            plan = self._planner.plan_undecided(choice, status, now)
            if not plan.phases:
                return []
            self._queue.start(key)
            return self._writes.start(placement, plan.phases, now)
        except BaseException:  # not even that is possible: it was reported
            self._queue.retry(key, now + self._reschedule)
            return []

    def _decide_placement(self, placement: Placement, now: float) -> list[Action]:
        key = placement.key
        self._writes.doubt(key, self.decision_cache.drop_outdated(key, now))
        if self._writes.has_doubts(key):
            self._queue.start(key)
            self._queue.add((key,))  # due again when the reads are answered
            return self._writes.read(placement, now)
        self.decisions += 1
        current = self.decision_cache.of(key)
        choice = self.choose(placement, now, patient=self._queue.popped_last)
        if choice.unfinished:
            self._queue.add_last(key)
            return []
        self._index.set_sets(key, choice.sets)
        if self._policy.tracked:
            self._index.set_noted(key, choice.reads)
            self._expiries.watch(resources_of(choice.reads), now)
        groups, status = decision_groups.grouped(choice)
        if choice.error is not None:
            self._report(choice.error)
        if status.failed:
            plan = self._planner.plan_undecided(choice, status, now)
        else:
            plan = self._planner.plan(choice, groups, status, current, now)
        again_at = min(now + self._reschedule, choice.changes_at, plan.refresh_at)
        self._queue.add_at(key, again_at)
        if not plan.phases:
            return []
        self._queue.start(key)
        return self._writes.start(placement, plan.phases, now)

    # -- settled, or backoff

    def _answered(self, result: Result, now: float) -> list[Action]:
        """Return what follows from an answered write: events about what was written, and the next writes."""
        progress = self._writes.answered(result, now)
        if progress is None:
            return []
        if progress.retry_after is not None:
            self._statuses.drop_assumed(progress.key)
            self._queue.retry(progress.key, now + progress.retry_after)
        elif progress.done:
            self._queue.done(progress.key)
        return progress.actions


def _decided_by(placement: Placement) -> tuple[object, ...]:
    """Return what of the placement itself its decision depends on; plugins may read labels and annotations."""
    metadata = placement.metadata
    return placement.uid, placement.spec, placement.ignored, metadata.generation, metadata.labels, metadata.annotations
