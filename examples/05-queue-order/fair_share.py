"""Attempt the pods of the namespace first that uses least of its share: a fair order of the queue."""

from collections.abc import Iterator, Mapping

from stowplan.plugin import Cluster, ConfigError, QueueEntry, Wake, pods_with


class FairShare:
    """`weights`: a namespace with weight 2 gets twice the pods of one with weight 1, which all others have."""

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self.weights = dict(weights or {})
        wrong = [name for name, weight in self.weights.items() if weight <= 0]
        if wrong:
            raise ConfigError(f"weights.{wrong[0]} is {self.weights[wrong[0]]:g}", remedy="choose more than 0")

    def cluster_key(self, entry: QueueEntry, cluster: Cluster) -> tuple[int, float, float]:
        """Priority comes first, then the share that the namespace has, then first in, first out."""
        namespace = entry.pod.namespace
        pods = int(cluster.nodes.count(pods_with({}, [namespace])).sum())
        return -entry.pod.priority, pods / self.weights.get(namespace, 1.0), entry.queued_at

    def reorders_on(self) -> Iterator[Wake]:
        """A pod that gets a node, or leaves one, changes the shares."""
        yield Wake("AssignedPod", ("Add", "Delete"))
