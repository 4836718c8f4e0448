"""How many pods match a query, per row: what topology spreading, affinity and several policies need.

    LabelSet        one distinct (namespace, labels) of the pods on nodes; pods of DaemonSets have their own
    MatchCounter    one query and its tally; the label sets that it matches refer to it
    WeightedSum     many queries with weights, added up: what a pod with hundreds of preferred terms needs

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
MOST_LOOKS = 2048  # at label sets, to drop counters after one change
MOST_SUMMED = 16384  # queries of all sums; each new label set is compared with those that may match it

Settled: TypeAlias = bool | Literal["always"]
WeightedQueries: TypeAlias = tuple[tuple[PodQuery, int], ...]


class LabelSet:
    """One (namespace, labels) and the pods that have it: uid → (row, terminating)."""

    __slots__ = ("counters", "daemons", "labels", "members", "namespace", "sums")

    def __init__(self, namespace: str, labels: Mapping[str, str], daemons: bool) -> None:
        """`daemons`: the pods are owned by a DaemonSet."""
        self.namespace, self.daemons = namespace, daemons
        self.labels = dict(labels)
        self.members: dict[str, tuple[int, bool]] = {}
        self.counters: list[MatchCounter] = []  # a fifth of a dictionary, where there are hundreds
        self.sums: list[tuple[WeightedSum, int, int]] = []  # with the number and the weight of the queries that match


class MatchCounter:
    """How many pods match all of `queries`, per row.

    `settled` is how PodTopologySpread counts: terminating pods do not count, and a selector without conditions counts
    nothing. In dry runs kube-scheduler does count such pods; "always" leaves them out there, too. `asked_at` is when it
    was last asked for, by the number of pods that had come and gone.
    """

    __slots__ = ("asked_at", "queries", "settled", "tally")

    def __init__(self, queries: tuple[PodQuery, ...], settled: Settled) -> None:
        self.queries = queries
        self.settled = settled
        self.tally = Tally()
        self.asked_at = 0

    @property
    def selector(self) -> Selector | None:
        """Conditions that every counted pod meets: those of the first query; None if a query matches nothing."""
        return None if any(query.selector is None for query in self.queries) else self.queries[0].selector

    def matches(self, labels: LabelSet) -> bool:
        return all(_matches(query, labels) for query in self.queries)

    def counts(self, terminating: bool, as_extension: bool) -> bool:
        """True if a pod counts. kube's PreFilter extensions (`as_extension`) count what its PreFilter leaves out."""
        if as_extension and self.settled != "always":
            return True
        return not self.settled or (not terminating and bool(self.selector))


class WeightedSum:
    """How many pods match one of `queries` (twice, if a pod matches two), and the weights of those queries, per row.

    Five hundred counters take megabytes; this is two tallies.
    """

    __slots__ = ("asked_at", "parts", "pods", "queries", "weights")

    def __init__(self, queries: WeightedQueries) -> None:
        self.queries = queries
        self.parts = [WeightedQuery(self, query, weight) for query, weight in queries]
        self.pods, self.weights = Tally(), Tally()
        self.asked_at = 0

    def add(self, row: int, pods: int, weight: int, capacity: int) -> None:
        self.pods.add(row, pods, capacity)
        self.weights.add(row, weight, capacity)


class WeightedQuery:
    """One query of a sum. A sum may have the same query twice."""

    __slots__ = ("query", "sum", "weight")

    def __init__(self, whole: WeightedSum, query: PodQuery, weight: int) -> None:
        self.sum, self.query, self.weight = whole, query, weight


class MatchCounts:
    def __init__(self) -> None:
        self._sets: dict[tuple[str, frozenset[tuple[str, str]], bool], LabelSet] = {}
        # (key, value) → the label sets with that label; (key, None) → the label sets with that key
        self._by_label: dict[tuple[str, str | None], dict[LabelSet, None]] = {}
        self._counters: OrderedDict[tuple[tuple[PodQuery, ...], Settled], MatchCounter] = OrderedDict()
        self._index: SelectorIndex[MatchCounter] = SelectorIndex()
        self._sums: OrderedDict[WeightedQueries, WeightedSum] = OrderedDict()
        self._summed: SelectorIndex[WeightedQuery] = SelectorIndex()
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
        known = {*self._counters.values(), *self._sums.values()}
        return sum(
            each not in known
            for labels in self._sets.values()
            for each in (*labels.counters, *(found for found, _, _ in labels.sums))
        )

    @property
    def sums(self) -> list[WeightedQueries]:
        """The queries whose weighted sums are kept up to date."""
        return list(self._sums)

    def values(self, key: str) -> set[str]:
        """Return the values that a label has on pods on nodes."""
        return {labels.labels[key] for labels in self._by_label.get((key, None), ())}

    def members(self, query: PodQuery) -> list[str]:
        """Return the pods that match, by uid. It costs a look at the label sets that may match."""
        asked = MatchCounter((query,), settled=False)
        return [uid for labels in self._candidates(query.selector) if asked.matches(labels) for uid in labels.members]

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

    def drop(self, counter: MatchCounter) -> int:
        """Stop counting. Return how many label sets were looked at.

        They are found as they were when it began: a list of them in each counter would double what many counters need.
        """
        looked_at = 0
        if self._counters.pop((counter.queries, counter.settled), None) is None:
            return looked_at
        self._index.remove(counter.selector, counter)
        for labels in self._candidates(counter.selector):
            looked_at += 1
            if counter.matches(labels):
                labels.counters.remove(counter)  # the oldest go first, and stand in front
        return looked_at

    def weigh(self, queries: WeightedQueries, capacity: int) -> tuple[WeightedSum, bool]:
        """Return the sum of these queries, which is kept up to date from now on; and if it is a new one."""
        found = self._sums.get(queries)
        if found is not None:
            self._sums.move_to_end(queries)
            found.asked_at = self._came_and_went
            return found, False
        found = self._sums[queries] = WeightedSum(queries)
        found.asked_at = self._came_and_went
        matching: dict[LabelSet, list[WeightedQuery]] = {}
        for part in found.parts:
            self._summed.add(part.query.selector, part)
            for labels in self._candidates(part.query.selector):
                if _matches(part.query, labels):
                    matching.setdefault(labels, []).append(part)
        for labels, parts in matching.items():
            _join_sum(found, labels, parts, capacity)
        while len(self._sums) > 1 and sum(map(len, self._sums)) > MOST_SUMMED:
            self.drop_sum(next(iter(self._sums.values())))
        return found, True

    def drop_sum(self, dropped: WeightedSum) -> None:
        """Stop adding up."""
        if self._sums.pop(dropped.queries, None) is not None:
            for part in dropped.parts:
                self._summed.remove(part.query.selector, part)
            for labels in self._sets.values():
                labels.sums = [each for each in labels.sums if each[0] is not dropped]

    def drop_unasked(self, pods: int) -> None:
        """Drop queries that nobody asked for while many pods came and went; `pods` are on nodes now."""
        before = self._came_and_went - PATIENCE - 2 * pods
        looks = dropped = 0
        while looks < MOST_LOOKS and dropped < MOST_DROPPED:
            oldest = next(iter(self._counters.values()), None)
            if oldest is None or oldest.asked_at >= before:
                break
            looks, dropped = looks + self.drop(oldest), dropped + 1
        oldest_sum = next(iter(self._sums.values()), None)
        if oldest_sum is not None and oldest_sum.asked_at < before:
            self.drop_sum(oldest_sum)

    def add(self, pod: Pod, row: int, capacity: int, as_extension: bool) -> LabelSet:
        key = (pod.namespace, frozenset(pod.labels.items()), pod.of_daemon_set)
        labels = self._sets.get(key)
        if labels is None:
            labels = self._sets[key] = self._new_set(pod, capacity)
        labels.members[pod.uid] = (row, pod.terminating)
        self._came_and_went += 1
        for counter in labels.counters:
            if counter.counts(pod.terminating, as_extension):
                counter.tally.add(row, 1, capacity)
        for found, pods, weight in labels.sums:
            found.add(row, pods, weight, capacity)
        return labels

    def remove(self, pod: Pod, labels: LabelSet, capacity: int, as_extension: bool) -> None:
        row, terminating = labels.members.pop(pod.uid)
        self._came_and_went += 1
        for counter in labels.counters:
            if counter.counts(terminating, as_extension):
                counter.tally.add(row, -1, capacity)
        for found, pods, weight in labels.sums:
            found.add(row, -pods, -weight, capacity)
        if not labels.members:
            self._remove_set(labels)

    def _new_set(self, pod: Pod, capacity: int) -> LabelSet:
        labels = LabelSet(pod.namespace, pod.labels, pod.of_daemon_set)
        for key in _index_keys(labels):
            self._by_label.setdefault(key, {})[labels] = None
        for counter in self._index.candidates(labels.labels):
            if counter.matches(labels):
                labels.counters.append(counter)
        matching: dict[WeightedSum, list[WeightedQuery]] = {}
        for part in self._summed.candidates(labels.labels):
            if _matches(part.query, labels):
                matching.setdefault(part.sum, []).append(part)
        for found, parts in matching.items():
            _join_sum(found, labels, parts, capacity)
        return labels

    def _remove_set(self, labels: LabelSet) -> None:
        del self._sets[labels.namespace, frozenset(labels.labels.items()), labels.daemons]
        for key in _index_keys(labels):
            found = self._by_label[key]
            del found[labels]
            if not found:
                del self._by_label[key]

    def _join(self, counter: MatchCounter, labels: LabelSet, capacity: int) -> None:
        labels.counters.append(counter)
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
            for value in dict.fromkeys(best.values):  # a value may be named twice
                yield from self._by_label.get((best.key, value), ())
        else:
            yield from self._by_label.get((best.key, None), ())


def _join_sum(found: WeightedSum, labels: LabelSet, parts: list[WeightedQuery], capacity: int) -> None:
    """Count the pods of a label set, which these queries match, from now on."""
    weight = sum(part.weight for part in parts)
    labels.sums.append((found, len(parts), weight))
    for row, _ in labels.members.values():
        found.add(row, len(parts), weight, capacity)


def _matches(query: PodQuery, labels: LabelSet) -> bool:
    return (query.daemons or not labels.daemons) and query.matches(labels.namespace, labels.labels)


def _index_keys(labels: LabelSet) -> Iterator[tuple[str, str | None]]:
    for key, value in labels.labels.items():
        yield key, value
        yield key, None
