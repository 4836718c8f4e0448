"""FlavourClusterWide: spread the pods of one flavour evenly over the workers of the whole cluster, across namespaces.

A pod's flavour is the value of one of its labels. With the strategy `min` the workers with the fewest pods of that
flavour score 100, all other nodes 0. The shared tallies count the pods that are bound or assumed, without finished and
terminating ones. So each decision includes the one before, and no cache must be refreshed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from stowplan.columns.arrays import Bools, Bytes, Ints
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.tally import Tally
from stowplan.framework.config.document import flag, shown
from stowplan.framework.interfaces import Drift, Gauge
from stowplan.framework.scoring import MAX_SCORE
from stowplan.objects import selectors
from stowplan.objects.affinity import PodQuery
from stowplan.objects.errors import ConfigError
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import LabelSelector, Selector

LABEL_NAME = "flavour"
WORKER = "node-role.kubernetes.io/worker"
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
MIN, PROPORTIONAL, FEASIBLE_MIN = "min", "proportional", "feasibleMin"
STRATEGIES = (MIN, PROPORTIONAL, FEASIBLE_MIN)
MOST_FLAVOURS = 500  # with metrics; the label may have a different value on every pod
MOST_FIGURES = 2000  # of flavours by node
PODS = "Pods of a flavour on a node, bound or assumed."
SKEW = "Pods of a flavour on the worker with the most of them, minus those on the worker with the fewest."


class FlavourClusterWide:
    def __init__(
        self,
        label_name: str | None = None,
        strategy: str = MIN,
        node_selector: Mapping[str, Any] | None = None,
        count_terminating: bool = False,
        cache_ttl: float | None = None,
        cache_ttl_seconds: float | None = None,
    ) -> None:
        """`nodeSelector` selects the workers; without it the label of that role does.

        `cacheTTL`, or `cacheTTLSeconds`, is how often the counts are compared with the API's objects; 0: never.
        """
        self._label = _label(label_name)
        self._strategy = _strategy(strategy)
        self._worker_selector = _selector(node_selector)
        self._settled = not flag("countTerminating", count_terminating)
        self.recount_every = _seconds({"cacheTTL": cache_ttl, "cacheTTLSeconds": cache_ttl_seconds})

    # -- decisions

    def score(self, pod: Pod, nodes: Nodes) -> Ints | Bytes | int:
        flavour = pod.labels.get(self._label)
        if not flavour:
            return 0
        tally, all_nodes = self._tally(flavour, nodes.cluster), nodes.cluster.nodes
        counts, workers = nodes.counts_of(tally), self._workers(nodes)
        if nodes is all_nodes or self._strategy == FEASIBLE_MIN:
            compared = _among(counts, workers)
        else:
            compared = _among(all_nodes.counts_of(tally), self._workers(all_nodes))
        if not len(compared):
            return 0
        fewest = int(compared.min())
        if self._strategy == PROPORTIONAL:
            return _by_distance(counts, fewest, int(compared.max())) * workers
        best: Bytes = ((counts == fewest) & workers).view(np.uint8)
        return best * np.uint8(MAX_SCORE)

    def post_bind(self, pod: Pod, node_name: str, cluster: Cluster) -> tuple[()]:  # noqa: ARG002
        """Do nothing: an assumed pod is counted already. Configurations may list this point."""
        return ()

    def _workers(self, nodes: Nodes) -> Bools:
        """Return the nodes with the role of a worker; if no node has it, all that are not control plane."""
        if self._worker_selector is not None:
            return nodes.matching(self._worker_selector)
        worker = nodes.label(WORKER)
        if worker.anywhere:
            return worker.present
        found = np.ones(len(nodes), np.bool_)
        for role in map(nodes.label, CONTROL_PLANE):
            if role.anywhere:
                found &= ~role.present
        return found

    def _tally(self, flavour: str, cluster: Cluster) -> Tally:
        alike = PodQuery(None, selectors.from_labels({self._label: flavour}))
        return cluster.count(alike, settled=self._settled)

    # -- metrics and recounts

    def gauges(self, cluster: Cluster) -> Iterator[Gauge]:
        """Yield the pods per node and the skew. Large clusters: without zeros; very large ones: the skew only."""
        nodes, workers = cluster.nodes, self._workers(cluster.nodes)
        tallies = {flavour: self._tally(flavour, cluster) for flavour in self._flavours(cluster)}
        with_zeros = len(tallies) * len(nodes) <= MOST_FIGURES
        by_node = with_zeros or sum(len(tally.sparse()[0]) for tally in tallies.values()) <= MOST_FIGURES
        for flavour, tally in tallies.items():
            counts = nodes.counts_of(tally)
            labels = {"label": self._label, "flavour": flavour}
            if workers.any():
                yield Gauge("flavour_skew", SKEW, int(np.ptp(counts[workers])), labels)
            shown = (counts > 0) | workers if with_zeros else counts > 0
            for at in np.flatnonzero(shown).tolist() if by_node else ():
                yield Gauge("flavour_pods", PODS, int(counts[at]), {**labels, "node": nodes.names[at]})

    def recount(self, pods: Iterable[Pod], cluster: Cluster) -> Iterator[Drift]:
        """Yield the counts that differ from a count of these pods."""
        found: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for pod in pods:
            if self._counts(pod):
                found[pod.labels[self._label]][pod.node_name] += 1
        for flavour in sorted({*self._flavours(cluster), *found})[:MOST_FLAVOURS]:
            tally, recounted = self._tally(flavour, cluster), found[flavour]
            counted = Counter(dict(zip(cluster.node_names_of(tally), tally.sparse()[1].tolist(), strict=True)))
            for node in sorted(recounted.keys() | counted.keys()):
                if counted[node] != recounted[node]:
                    yield Drift(f"{self._label}={flavour} on node {node}", counted[node], recounted[node])

    def _counts(self, pod: Pod) -> bool:
        excluded = pod.finished or (self._settled and pod.terminating)
        return bool(pod.labels.get(self._label) and pod.node_name) and not excluded

    def _flavours(self, cluster: Cluster) -> list[str]:
        return sorted(filter(None, cluster.pod_label_values(self._label)))[:MOST_FLAVOURS]


def _among(counts: Ints, chosen: Bools) -> Ints:
    return counts if chosen.all() else counts[chosen]


def _by_distance(counts: Ints, fewest: int, most: int) -> Ints:
    """Return 100 for the fewest, less for more pods, and 1 for the most, as in later versions of the original."""
    if most == fewest:
        return np.full(len(counts), MAX_SCORE, np.int64)
    return np.maximum(MAX_SCORE * (most - counts) // (most - fewest), 1)


# -- arguments


def _label(name: Any) -> str:
    """Return the label; the default for an empty name, as in the original."""
    if name is None or name == "":
        return LABEL_NAME
    if not isinstance(name, str) or not selectors.is_label_key(name):
        raise ConfigError(f"labelName: found {shown(name)}, expected the key of a label")
    return name


def _strategy(name: Any) -> str:
    if name not in STRATEGIES:
        raise ConfigError(f"strategy: found {shown(name)}, expected one of {', '.join(STRATEGIES)}")
    return str(name)


def _selector(given: Any) -> Selector | None:
    if given is None:
        return None
    remedy = "give matchLabels, matchExpressions or both"
    if not isinstance(given, Mapping) or not given.keys() <= {"matchLabels", "matchExpressions"}:
        raise ConfigError(f"nodeSelector: found {shown(given)}, expected a label selector", remedy=remedy)
    try:
        selector = selectors.compile_selector(msgspec.convert(given, LabelSelector))
    except msgspec.ValidationError as error:
        raise ConfigError(f"nodeSelector: {error}", remedy=remedy) from None
    if selector is None:
        raise ConfigError("nodeSelector: one of its conditions cannot be read", remedy="see its keys and operators")
    return selector


def _seconds(spellings: Mapping[str, Any]) -> float:
    """Return the seconds of a setting with several names."""
    given = {name: value for name, value in spellings.items() if value is not None}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ConfigError(f"{name}: found {shown(value)}, expected seconds, 0 (never) or more")
    if len(set(given.values())) > 1:
        raise ConfigError(f"{' and '.join(given)} differ", remedy="they are one setting: give one of them")
    return float(next(iter(given.values()), 0.0))
