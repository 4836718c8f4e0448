"""How many pods match a query, per row: what topology spreading, affinity and several policies need.

    LabelSet        one distinct (namespace, labels) of the pods on nodes; pods of DaemonSets have their own
    MatchCounter    one query and its tally; the counter and the label sets that it matches refer to each other

The first time, a query costs a look at the label sets that may match. From then on, a pod that is added or removed
costs one addition for each query that it matches. A query that nobody asked for while more pods came and went than it
would take to count anew is dropped: a pod with a thousand terms does not cost everybody's pods long after it is gone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from stowplan.columns.pods.selector_index import SelectorIndex, anchor
from stowplan.columns.tally import Tally
from stowplan.objects.affinity import PodQuery
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import Selector

MOST_COUNTERS = 16384
PATIENCE = 1024  # pods that come or go while a query is not asked for, besides two for each pod on a node
MOST_DROPPED = 8  # at once, so that no single change pays for many

Settled: TypeAlias = bool | Literal["always"]


class LabelSet:
    """One (namespace, labels) and the pods that have it: uid → (row, terminating)."""

    __slots__ = ("counters", "daemons", "labels", "members", "namespace")

    def __init__(self, namespace: str, labels: Mapping[str, str], daemons: bool) -> None:
        """`daemons`: the pods are owned by a DaemonSet."""
        self.namespace, self.daemons = namespace, daemons
        self.labels = dict(labels)
        self.members: dict[str, tuple[int, bool]] = {}
        self.counters: dict[MatchCounter, None] = {}


class MatchCounter:
    """How many pods match all of `queries`, per row.

    `settled` is how PodTopologySpread counts: terminating pods do not count, and a selector without conditions counts
    nothing. In dry runs kube-scheduler does count such pods; "always" leaves them out there, too. `asked_at` is when it
    was last asked for, by the number of pods that had come and gone.
    """

    __slots__ = ("asked_at", "queries", "sets", "settled", "tally")

    def __init__(self, queries: tuple[PodQuery, ...], settled: Settled) -> None:
        self.queries = queries
        self.settled = settled
        self.tally = Tally()
        self.sets: dict[LabelSet, None] = {}
        self.asked_at = 0

    @property
    def selector(self) -> Selector | None:
        """Conditions that every counted pod meets: those of the first query; None if a query matches nothing."""
        return None if any(query.selector is None for query in self.queries) else self.queries[0].selector

    def matches(self, labels: LabelSet) -> bool:
        asked = self.queries
        if labels.daemons and not all(query.daemons for query in asked):
            return False
        return all(query.matches(labels.namespace, labels.labels) for query in asked)

    def counts(self, terminating: bool, as_extension: bool) -> bool:
        """True if a pod counts. kube's PreFilter extensions (`as_extension`) count what its PreFilter leaves out."""
        if as_extension and self.settled != "always":
            return True
        return not self.settled or (not terminating and bool(self.selector))


class MatchCounts:
    def __init__(self) -> None:
        self._sets: dict[tuple[str, frozenset[tuple[str, str]], bool], LabelSet] = {}
        # (key, value) → the label sets with that label; (key, None) → the label sets with that key
        self._by_label: dict[tuple[str, str | None], dict[LabelSet, None]] = {}
        self._counters: OrderedDict[tuple[tuple[PodQuery, ...], Settled], MatchCounter] = OrderedDict()
        self._index: SelectorIndex[MatchCounter] = SelectorIndex()
        self._came_and_went = 0

    def __len__(self) -> int:
        return len(self._counters)

    @property
    def label_sets(self) -> int:
        return len(self._sets)

    @property
    def questions(self) -> list[tuple[tuple[PodQuery, ...], Settled]]:
        """The questions whose counts are kept up to date."""
        return list(self._counters)

    @property
    def stray_counters(self) -> int:
        """How many dropped counters a label set still refers to: none, unless there is a bug."""
        known = set(self._counters.values())
        return sum(counter not in known for labels in self._sets.values() for counter in labels.counters)

    def values(self, key: str) -> set[str]:
        """Return the values that a label has on pods on nodes."""
        return {labels.labels[key] for labels in self._by_label.get((key, None), ())}

    def ask(self, queries: tuple[PodQuery, ...], settled: Settled, capacity: int) -> tuple[MatchCounter, bool]:
        """Return the counter of these queries, which is kept up to date from now on; and if it is a new one."""
        if not queries:
            raise ValueError("a count needs at least one query")
        key = (queries, settled)
        counter = self._counters.get(key)
        if counter is not None:
            self._counters.move_to_end(key)
            counter.asked_at = self._came_and_went
            return counter, False
        counter = self._counters[key] = MatchCounter(queries, settled)
        counter.asked_at = self._came_and_went
        self._index.add(counter.selector, counter)
        for labels in self._candidates(counter.selector):
            if counter.matches(labels):
                self._join(counter, labels, capacity)
        if len(self._counters) > MOST_COUNTERS:
            self.drop(next(iter(self._counters.values())))
        return counter, True

    def drop(self, counter: MatchCounter) -> None:
        """Stop counting."""
        if self._counters.pop((counter.queries, counter.settled), None) is None:
            return
        self._index.remove(counter.selector, counter)
        for labels in counter.sets:
            del labels.counters[counter]

    def drop_unasked(self, pods: int) -> None:
        """Drop queries that nobody asked for while many pods came and went; `pods` are on nodes now."""
        patience = PATIENCE + 2 * pods
        for _ in range(MOST_DROPPED):
            oldest = next(iter(self._counters.values()), None)
            if oldest is None or self._came_and_went - oldest.asked_at <= patience:
                return
            self.drop(oldest)

    def add(self, pod: Pod, row: int, capacity: int, as_extension: bool) -> LabelSet:
        key = (pod.namespace, frozenset(pod.labels.items()), pod.of_daemon_set)
        labels = self._sets.get(key)
        if labels is None:
            labels = self._sets[key] = self._new_set(pod)
        labels.members[pod.uid] = (row, pod.terminating)
        self._came_and_went += 1
        for counter in labels.counters:
            if counter.counts(pod.terminating, as_extension):
                counter.tally.add(row, 1, capacity)
        return labels

    def remove(self, pod: Pod, labels: LabelSet, capacity: int, as_extension: bool) -> None:
        row, terminating = labels.members.pop(pod.uid)
        self._came_and_went += 1
        for counter in labels.counters:
            if counter.counts(terminating, as_extension):
                counter.tally.add(row, -1, capacity)
        if not labels.members:
            self._remove_set(labels)

    def _new_set(self, pod: Pod) -> LabelSet:
        labels = LabelSet(pod.namespace, pod.labels, pod.of_daemon_set)
        for key in _index_keys(labels):
            self._by_label.setdefault(key, {})[labels] = None
        for counter in self._index.candidates(labels.labels):
            if counter.matches(labels):
                counter.sets[labels] = None
                labels.counters[counter] = None
        return labels

    def _remove_set(self, labels: LabelSet) -> None:
        del self._sets[labels.namespace, frozenset(labels.labels.items()), labels.daemons]
        for key in _index_keys(labels):
            found = self._by_label[key]
            del found[labels]
            if not found:
                del self._by_label[key]
        for counter in labels.counters:
            del counter.sets[labels]

    def _join(self, counter: MatchCounter, labels: LabelSet, capacity: int) -> None:
        counter.sets[labels] = None
        labels.counters[counter] = None
        for row, terminating in labels.members.values():
            if counter.counts(terminating, as_extension=False):
                counter.tally.add(row, 1, capacity)

    def _candidates(self, selector: Selector | None) -> Iterator[LabelSet]:
        """Yield the label sets that may match: those that meet the selector's most selective condition."""
        if selector is None:
            return
        best = anchor(selector)
        if best is None:
            yield from list(self._sets.values())
        elif best.operator == "In":
            for value in best.values:
                yield from self._by_label.get((best.key, value), ())
        else:
            yield from self._by_label.get((best.key, None), ())


def _index_keys(labels: LabelSet) -> Iterator[tuple[str, str | None]]:
    for key, value in labels.labels.items():
        yield key, value
        yield key, None
