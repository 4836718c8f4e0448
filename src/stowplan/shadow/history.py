"""The changes of a cluster in the order of the watch: what has happened at a moment, what just before, and what next.

    handle ─► upcoming ─► advance ─► state, past ─► forgotten

The state is that of a moment a little while ago, so that a decision is judged when the changes after it are known, too.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

from stowplan.columns.state import ClusterState
from stowplan.objects.changes import Change, Gone, Put
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.priority import with_priority
from stowplan.objects.workloads import PriorityClass
from stowplan.shadow.certain_order import CertainOrder
from stowplan.shadow.race_search import NearbyChanges
from stowplan.shadow.transitions import Key, Transition, is_newer, key_of

MOST_NEARBY = 400  # changes before a decision that are looked at, and as many after it
MOST_PAST = MOST_UPCOMING = 10_000  # changes that are looked through for them


class WatchHistory:
    def __init__(self) -> None:
        self.state, self.order = ClusterState(), CertainOrder()
        self.pods: dict[str, Pod] = {}  # as of the state's moment, by uid
        self.state.known_pods = self.pods
        self.upcoming: deque[Transition] = deque()
        self.past: deque[Transition] = deque()  # only changes that matter, and none of a list
        self.number = 0
        self._latest: dict[Key, Object] = {}  # as of the last change that was handled

    def handle(self, change: Change, now: float, *, judged: bool) -> Transition:
        """Take in a change that has arrived now."""
        found, self.number = change.object, self.number + 1
        if isinstance(found, Pod) and found.spec.priority is None:
            found = with_priority(found, self.state.store.every(PriorityClass))
        key = key_of(found)
        before = self._latest.pop(key, None)
        if isinstance(change, Put):
            self._latest[key] = found
        transition = Transition(self.number, now, before, found if isinstance(change, Put) else None, judged=judged)
        if before is None and isinstance(change, Gone):  # it was never seen
            transition.matters = False
        self.upcoming.append(transition)
        return transition

    def latest(self, uid: str) -> Pod | None:
        """Return a pod as it is after all changes that have arrived."""
        found = self._latest.get(("Pod", uid))
        return found if isinstance(found, Pod) else None

    def advance(self) -> None:
        """The next change takes place."""
        transition = self.upcoming.popleft()
        subject = transition.subject
        self.state.now = transition.at
        if isinstance(subject, Pod):
            if transition.after is None:
                self.pods.pop(subject.uid, None)
            else:
                self.pods[subject.uid] = subject
        self.state.apply(Gone(subject) if transition.after is None else Put(subject))
        if transition.matters and transition.judged:
            self.past.append(transition)
        elif transition.binds:  # to a node where it has ended already
            self.order.forget(transition.key[1])

    def forget(self, before: float) -> None:
        """Forget the changes before this time."""
        while self.past and (self.past[0].at < before or len(self.past) > MOST_PAST):
            forgotten = self.past.popleft()
            if forgotten.binds:
                self.order.forget(forgotten.key[1])

    def nearby(self, decision: Transition, window: float) -> NearbyChanges:
        """Return the changes around a decision that is next, by what is certain of the queue's order.

        A decision is later than the arrival of its pod, and it may take long until its binding is written. What the
        watch of pods showed before that arrival, the scheduler knew; another kind has another watch, which may be later
        by a window. Bindings that are certainly of earlier decisions count whenever they came.
        """
        uid, order = decision.key[1], self.order
        number, at = order.since(uid, decision.number) or (0, decision.at)
        until, last, following = decision.at + window, list[Transition](), list[Transition]()
        certain = list[Transition]()
        for each in reversed(self.past):
            if each.at < at - window:
                break
            if each.key == decision.key or (each.pod is not None and each.number < number):
                continue
            if each.binds and order.decided_first(uid, each.key[1]):
                certain.append(each)
            elif not (each.binds and order.decided_first(each.key[1], uid)) and len(last) < MOST_NEARBY:
                last.append(each)
        for each in islice(self.upcoming, 1, MOST_UPCOMING):
            if not each.matters or each.key == decision.key:
                continue
            if each.binds and order.decided_first(each.key[1], uid):
                certain.append(each)
            elif each.at <= until and self._may_be_known(each, decision):
                following.append(each)
        return NearbyChanges(decision.number, certain, last, following[:MOST_NEARBY])

    def _may_be_known(self, later: Transition, decision: Transition) -> bool:
        """True if a scheduler may have known a change when it made a decision that was shown before it.

        Of pods it knows only what it decided itself: nodes and nominations. What others changed must have happened
        before the binding was written; another kind has another watch, which may be slower here.
        """
        if later.pod is None:
            return not is_newer(later.subject, decision.subject)
        if later.binds:
            other = later.key[1]
            came = self.order.since(other, later.number)
            too_late = came is not None and came[0] > decision.number
            return not too_late and not self.order.decided_first(decision.key[1], other)
        return isinstance(later.after, Pod) and later.after.pending and bool(later.after.nominated_node)
