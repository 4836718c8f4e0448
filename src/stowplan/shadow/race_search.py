"""Was a decision right a moment earlier, or with what the scheduler knew already? A search among changes close to it.

The watch shows bindings, not decisions. Between a decision and its binding other changes arrive that the scheduler did
not know of, and it knew its own decisions before the watch shows them. So the cluster of the decision differs from that
of the watch by some of the last changes, which are undone here, and by some of the next ones, which are made ahead:

    certain     bindings that the watch shows in another order than the queue gave (`certain_order`)
    recent      the last 1, 2, 3, 4, 6 … changes undone, or the next ones made
    single      one of them alone, those of the nodes in question first
    climbing    from the closest cluster so far: one change more, as long as that brings the decision closer to ours

What is certain of the order is never turned around. Each cluster is a trial that costs what it changes; their number is
limited. Of the changes that explain the decision only those are kept that it takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeAlias

from stowplan.objects.meta import Object
from stowplan.shadow.question import DecisionQuestion, OurAnswer
from stowplan.shadow.transitions import Key, Transition, assume

STEPS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
SINGLES = 20  # changes that are tried alone
CLIMBED_FROM = 10  # changes that are tried in one step of the climb
Chosen: TypeAlias = frozenset[Transition]


@dataclass(frozen=True)
class NearbyChanges:
    """Changes that the scheduler may have known later, or earlier, than the watch shows them; the nearest ones first.

    `certain`: those of which that is certain; they are not among the others. `number`: that of the decision's binding.
    """

    number: int
    certain: Sequence[Transition] = ()
    last: Sequence[Transition] = ()
    next: Sequence[Transition] = ()


class RaceSearch:
    def __init__(self, question: DecisionQuestion, now: OurAnswer, nearby: NearbyChanges, trials: int) -> None:
        """`now`: the answer in the cluster as the watch shows it."""
        self._question, self._nearby, self._left = question, nearby, trials
        self._answers: dict[Chosen, OurAnswer] = {frozenset(): now}
        self._nodes = {question.there, *now.best[:3]} - {""}

    def find(self) -> tuple[Transition, ...] | None:
        """Return the changes that explain the decision, in their order; None if none do."""
        for chosen in self._clusters():
            if self._left <= 0:
                return None
            if self._agrees(chosen):
                return tuple(sorted(self._needed(chosen), key=lambda each: each.number))
        return None

    # -- which clusters are tried

    def _clusters(self) -> Iterator[Chosen]:
        certain, last, following = frozenset(self._nearby.certain), self._nearby.last, self._nearby.next
        if certain:
            yield certain
        for steps in (last, [each for each in last if not each.binds], following):
            yield from (certain | frozenset(steps[:step]) for step in _steps(len(steps)))
        either = [each for pair in zip_longest(last, following) for each in pair if each is not None]
        close = sorted(either, key=lambda each: not each.nodes & self._nodes)  # stable: near ones stay first
        yield from (certain | {each} for each in close[:SINGLES])
        yield from self._climb(close)

    def _climb(self, close: Sequence[Transition]) -> Iterator[Chosen]:
        """Yield clusters with one change more than the closest one so far."""
        at, gap = self._closest()
        while True:
            for each in [each for each in close if each not in at][:CLIMBED_FROM]:
                yield at | {each}
            now, closer = self._closest()
            if closer >= gap:
                return
            at, gap = now, closer

    def _closest(self) -> tuple[Chosen, float]:
        best = min(self._answers, key=lambda each: (self._answers[each].gap, len(each)))
        return best, self._answers[best].gap

    # -- one cluster

    def _agrees(self, chosen: Chosen) -> bool:
        if chosen not in self._answers:
            self._left -= 1
            self._answers[chosen] = self._ask(chosen)
        return self._answers[chosen].agrees

    def _ask(self, chosen: Chosen) -> OurAnswer:
        """(The order of pods may be another one afterwards. Only preemption goes by it, and nothing is preempted.)"""
        state = self._question.state
        with state.trial():
            for key, (version, subject) in self._versions(chosen).items():
                assume(state, key, version, subject)
            return self._question.ask()

    def _versions(self, chosen: Iterable[Transition]) -> dict[Key, tuple[Object | None, Object]]:
        """Return each changed object as it is to be, and any version of it: the last changes undone, the next made."""
        ordered = sorted(chosen, key=lambda each: each.number)
        undone = [each for each in ordered if each.number < self._nearby.number]
        made = ordered[len(undone) :]
        found = {each.key: (each.before, each.subject) for each in reversed(undone)}
        return found | {each.key: (each.after, each.subject) for each in made}

    # -- which of the changes it takes

    def _needed(self, chosen: Chosen) -> Chosen:
        """Leave out changes, half of them at first, as long as the rest explains the decision."""
        self._left = max(self._left, 2 * len(STEPS))
        size = len(chosen) // 2
        while size and self._left > 0:
            ordered = sorted(chosen, key=lambda each: each.number)
            for start in range(0, len(ordered), size):
                fewer = chosen - frozenset(ordered[start : start + size])
                if fewer and self._left > 0 and self._agrees(fewer):
                    chosen = fewer
            size = min(size // 2, len(chosen) // 2)
        return chosen


def _steps(most: int) -> Iterator[int]:
    yield from (step for step in STEPS if step < most)
    if most:
        yield most
