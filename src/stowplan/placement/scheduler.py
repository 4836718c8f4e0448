"""Placements as a machine without a clock: `handle` takes changes, `step` decides, both return actions.

    put ──► due ──► deciding ──┬── nothing to write ────────────────────► settled
             ▲                 ├── misconfigured, or an error ─► saying ─► settled  (the last good decisions stay)
             │                 └── phases: create ► add ► remove ► delete ► saying ─► settled
             │                          │ refused, or never answered
             │                          ▼
             ├──────────────── backoff (what the server shows counts again)
             │
             └── settled: woken by a change that it goes by, by a toleration or a score that runs out, by somebody who
                          writes to its decisions or status, or because it has not been looked at for long

    from everywhere: deleted ─► out (its decisions are garbage, by their owner); left to others by annotation ─► settled

Time is in seconds since the epoch, since taints and scores speak of moments. While a placement's writes are under way
it is not decided again; what they will make of its decisions counts already (`placement_book`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from stowplan.columns.fleet.cluster_sets import ClusterSets
from stowplan.columns.fleet.clusters import Fleet
from stowplan.framework.pending_actions import PendingActions
from stowplan.framework.placement import decision_groups, evaluation
from stowplan.framework.placement.decision import ClusterPolicy, PlacementChoice, PlacementQuestion
from stowplan.objects.actions import Action
from stowplan.objects.changes import Change, Gone, Result
from stowplan.objects.clusters import AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding
from stowplan.objects.placements import Placement, PlacementDecision
from stowplan.placement.deadlines import PlacementDeadlines
from stowplan.placement.decision_cache import DecisionCache
from stowplan.placement.desired_state import DesiredState
from stowplan.placement.index import PlacementIndex
from stowplan.placement.writes import PlacementWrites

RESCHEDULE = 300.0


class PlacementScheduler:
    def __init__(
        self,
        policy: ClusterPolicy,
        *,
        ocm: bool = False,
        reschedule: float = RESCHEDULE,
        answer_within: float = 30.0,
    ) -> None:
        """`ocm`: as Open Cluster Management does, and no more. `reschedule`: every placement is looked at so often."""
        self.fleet = Fleet()
        self.sets = ClusterSets(self.fleet, strict=not ocm)
        self.placements: dict[str, Placement] = {}
        self.book = DecisionCache(self.fleet)
        self.decisions = 0  # how often a placement was decided
        self._policy, self._ocm, self._reschedule = policy, ocm, reschedule
        self._index = PlacementIndex(self.sets, self._reads)
        self._outbox = PendingActions(answer_within)
        self._clock = PlacementDeadlines(self.fleet)
        self._writing = PlacementWrites(self.book, self._outbox, self._settled)
        self._due: dict[str, None] = {}
        self._later: set[str] = set()  # due, once their writes are through
        self._draft = DesiredState(self.book, ocm=ocm)

    def _reads(self, placement: Placement) -> frozenset[str] | None:
        """The score objects that filters ask for."""
        found: set[str] = set()
        for plugin in self._policy.filters:
            reads = getattr(plugin, "reads", None)
            names = frozenset[str]() if reads is None else reads(placement)
            if names is None:
                return None
            found |= names
        return frozenset(found)

    # -- what comes in

    def handle(self, change: Change | Result, now: float) -> list[Action]:
        """Take in a change, or how an action went; what is to be done at once."""
        if isinstance(change, Result):
            return self._outbox.numbered(list(self._outbox.answered(change, now)), now)
        found, gone = change.object, isinstance(change, Gone)
        match found:
            case ManagedCluster():
                self._cluster(found, gone)
            case ManagedClusterSet():
                (self.sets.remove if gone else self.sets.put)(found)
                self.wake(sorted(self._index.by_set(found.name, self.placements)))
            case ManagedClusterSetBinding():
                (self.sets.remove if gone else self.sets.put)(found)
                self.wake(sorted(self._index.by_binding(found.namespace, found.name, self.placements)))
            case AddOnPlacementScore():
                self._score(found, gone, now)
            case Placement():
                self._placement(found, gone, now)
            case PlacementDecision():
                self._decision(found, gone)
        return []

    def wake(self, keys: Iterable[str]) -> None:
        """These are to be decided again; those whose writes are under way, afterwards."""
        for key in keys:
            if key in self._writing:
                self._later.add(key)
            else:
                self._due[key] = None

    def _cluster(self, cluster: ManagedCluster, gone: bool) -> None:
        old, new = self.fleet.cluster(cluster.name), None if gone else cluster
        woken = self._index.by_cluster(old, new)
        if new is None:
            self.fleet.remove(cluster.name)
        else:
            self.fleet.put(new)
        self.wake(sorted(woken))

    def _score(self, score: AddOnPlacementScore, gone: bool, now: float) -> None:
        row = self.fleet.row_of.get(score.cluster)
        old = None if row is None else self.fleet.scores(score.name).objects.get(row)
        if gone:
            self.fleet.remove_score(score)
        else:
            self.fleet.put_score(score)
            self._clock.changed(score.name, score.valid_until)
        changed = _changed(old, None if gone else score, now)
        if changed:
            self.wake(sorted(self._index.by_score(score, changed, self.fleet.cluster(score.cluster))))

    def _placement(self, placement: Placement, gone: bool, now: float) -> None:
        key, old = placement.key, self.placements.get(placement.key)
        if gone:
            self._forget(key)
            return
        self.placements[key] = placement
        news = old is not None and self._draft.heard(old, placement, now)
        if old is None or _asks(old) != _asks(placement):
            self._index.add(placement)
            self._watch(placement, now)
            self.wake((key,))
        elif news:
            self.wake((key,))

    def _watch(self, placement: Placement, now: float) -> None:
        """Scores that somebody goes by are watched for running out."""
        read = self._reads(placement) or frozenset()
        for resource in {resource for resource, _ in evaluation.coordinates(placement)} | read:
            if not self._clock.watches(resource):
                self._clock.watch(resource, now)

    def _forget(self, key: str) -> None:
        self._index.remove(key)
        self._writing.forget(key)
        self._clock.forget(key)
        self._draft.forget(key)
        self._later.discard(key)
        self.placements.pop(key, None)
        self._due.pop(key, None)

    def _decision(self, decision: PlacementDecision, gone: bool) -> None:
        news = self.book.remove(decision) if gone else self.book.put(decision)
        if news and decision.placement in self.placements:
            self.wake((decision.placement,))

    # -- time

    def next_deadline(self) -> float | None:
        """When a step is worth taking; at once, while a placement is due."""
        if self._due:
            return 0.0
        moments = (self._clock.next_deadline(), self._outbox.next_deadline())
        return min((each for each in moments if each is not None), default=None)

    def step(self, now: float) -> list[Action]:
        """Settle what is overdue, and decide one placement."""
        actions = list(self._outbox.expire(now))
        self.wake(list(self._clock.due(now)))
        for resource, clusters in self._clock.expired(now):
            self.wake(sorted(self._index.by_expiry(resource, clusters, expressions=not self._ocm)))
        key = next(iter(self._due), None)
        if key is not None:
            del self._due[key]
            actions += self._decide(key, now)
        return self._outbox.numbered(actions, now)

    # -- deciding

    def choose(self, placement: Placement, now: float) -> PlacementChoice:
        """What would become of a placement, saved or not, as things stand; nothing is changed by asking."""
        own = self.fleet.rows(self.book.clusters(placement.key))
        return evaluation.choose(PlacementQuestion(placement, self.fleet, now, own, self._ocm), self.sets, self._policy)

    def _decide(self, key: str, now: float) -> Iterator[Any]:
        placement = self.placements.get(key)
        if placement is None or placement.left_alone:
            return
        self.decisions += 1
        self.book.doubt_old(key, now)
        choice = self.choose(placement, now)
        self._index.chooses_from(key, choice.sets)
        groups, status = decision_groups.grouped(choice)
        status = status if status.failed else choice.status
        phases, refresh_at = self._draft.phases(choice, groups, status, now)
        self._clock.wake(key, min(self._again(choice, now), refresh_at))
        yield from self._writing.start(placement, phases, now)

    def _again(self, choice: PlacementChoice, now: float) -> float:
        """When to look at it again, whatever happens or not."""
        at = now + self._reschedule
        rows = np.concatenate([choice.asked.own, choice.picked])
        for plugin in self._policy.filters:
            if hasattr(plugin, "lapses"):
                at = min(at, _or_never(plugin.lapses(choice.asked, rows)))
            if hasattr(plugin, "changes_at"):
                at = min(at, _or_never(plugin.changes_at(choice.asked)))
        return at

    def _settled(self, key: str, failed: bool, now: float) -> None:
        if failed:
            self._draft.doubt(key)
            self._later.discard(key)
            self._clock.wake(key, now + self._writing.pause(key))
        elif key in self._later:
            self._later.discard(key)
            self._due[key] = None


def _asks(placement: Placement) -> tuple[Any, ...]:
    return placement.uid, placement.spec, placement.left_alone, placement.metadata.generation


def _changed(old: AddOnPlacementScore | None, new: AddOnPlacementScore | None, now: float) -> frozenset[str]:
    """The scores of which somebody who goes by them would see something else than before. Values that are no longer
    valid count, too: for whoever goes by the last known ones, and for expressions in Open Cluster Management's way.
    """
    found = set[str]()
    for moment in (now, -math.inf):
        before, after = ({} if each is None or each.valid_until < moment else each.values for each in (old, new))
        found |= {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    if (old is None) != (new is None):
        found.add("")  # there is an object, or is not: an expression may ask for that
    return frozenset(found)


def _or_never(moment: float | None) -> float:
    return math.inf if moment is None else moment
