"""What nodes offer, what pods take of it, and what it costs, added up over virtual time.

Each change brings the sums up to date, so a change costs what it changes: there is no pass over nodes or pods. Amounts
are whole numbers in the units of the columns (thousandths of a CPU, bytes, pieces).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

import msgspec

from stowplan.objects import quantity
from stowplan.objects.nodes import Node
from stowplan.simulation import gpu_use
from stowplan.simulation.gpu_use import OfferedGpus

HOUR = 3600.0
PRICE = "stowplan.io/price-per-hour"  # an annotation or a label of nodes
INSTANCE_TYPE = "node.kubernetes.io/instance-type"

Prices = Callable[[Node], float | None]


def price_of(node: Node, table: Mapping[str, float]) -> float | None:
    """The price of a node for an hour: its annotation, else its label, else the table's for its name or its type.

    None if there is none, or what is there is no price.
    """
    text = node.annotations.get(PRICE, node.labels.get(PRICE))
    if text is not None:
        try:
            price = float(text)
        except ValueError:
            return None
        return price if 0 <= price < math.inf else None
    return table.get(node.name, table.get(node.labels.get(INSTANCE_TYPE, "")))


class _OfferedNode(msgspec.Struct):
    offered: dict[str, int]
    price: float | None
    pods: int = 0
    gpus: OfferedGpus = OfferedGpus()


class CapacityUse:
    """`offered`, `bound` and `running`: the amounts of all nodes, of pods that have a node, and of those that run.

    `shares_gpus`: GPUs count in thousandths.
    """

    def __init__(self, prices: Mapping[str, float], start: float, shares_gpus: bool = False) -> None:
        self._prices, self._last, self._shares_gpus = prices, start, shares_gpus
        self._nodes: dict[str, _OfferedNode] = {}
        self._pods_on: Counter[str] = Counter()
        self.offered: defaultdict[str, int] = defaultdict(int)
        self.bound: defaultdict[str, int] = defaultdict(int)
        self.running: defaultdict[str, int] = defaultdict(int)
        self.offered_time: defaultdict[str, float] = defaultdict(float)  # amounts times seconds
        self.bound_time: defaultdict[str, float] = defaultdict(float)
        self.running_time: defaultdict[str, float] = defaultdict(float)
        self.used_nodes, self.most_used_nodes, self.most_nodes = 0, 0, 0
        self.node_seconds, self.used_node_seconds = 0.0, 0.0
        self.price, self.used_price, self.cost, self.used_cost = 0.0, 0.0, 0.0, 0.0  # prices are for an hour
        self.unpriced: set[str] = set()

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return len(self._nodes)

    def advance(self, now: float) -> None:
        """Let time pass until `now`."""
        passed, self._last = now - self._last, max(now, self._last)
        if passed <= 0:
            return
        for sums, amounts in (
            (self.offered_time, self.offered), (self.bound_time, self.bound), (self.running_time, self.running),
        ):  # fmt: skip
            for name, amount in amounts.items():
                sums[name] += amount * passed
        self.node_seconds += self.nodes * passed
        self.used_node_seconds += self.used_nodes * passed
        self.cost += self.price * passed / HOUR
        self.used_cost += self.used_price * passed / HOUR

    def cost_until(self, now: float) -> float:
        """Return what all nodes cost until `now`, if nothing changes before."""
        return self.cost + self.price * (now - self._last) / HOUR

    def node_changed(self, node: Node, gone: bool) -> None:
        """Take in a node as it is now."""
        before = self._nodes.pop(node.name, None)
        if before is not None:
            self._offer(before, -1)
            if before.pods:
                self._use(before, -1)
        if gone:
            return
        offered = {name: quantity.of(name, text) for name, text in node.status.allocatable.items()}
        known = _OfferedNode(offered, price_of(node, self._prices), self._pods_on[node.name])
        if self._shares_gpus:
            known.gpus = gpu_use.of_node(node)
            known.offered = gpu_use.with_offered(offered, known.gpus)
        self._nodes[node.name] = known
        if known.price is None:
            self.unpriced.add(node.name)
        self._offer(known, 1)
        if known.pods:
            self._use(known, 1)
        self.most_nodes = max(self.most_nodes, self.nodes)

    def _offer(self, node: _OfferedNode, sign: int) -> None:
        for name, amount in node.offered.items():
            self.offered[name] += sign * amount
        self.price += sign * (node.price or 0.0)

    def _use(self, node: _OfferedNode, sign: int) -> None:
        self.used_nodes += sign
        self.used_price += sign * (node.price or 0.0)
        self.most_used_nodes = max(self.most_used_nodes, self.used_nodes)

    def gpus_of(self, node_name: str) -> OfferedGpus:
        """Return the GPUs of a node."""
        node = self._nodes.get(node_name)
        return OfferedGpus() if node is None else node.gpus

    def pod_bound(self, node_name: str, amounts: Mapping[str, int], sign: int) -> None:
        """A pod took amounts of a node, or (`sign` -1) gave them back."""
        for name, amount in amounts.items():
            self.bound[name] += sign * amount
        self.bound["pods"] += sign
        self._pods_on[node_name] += sign
        if not self._pods_on[node_name]:
            del self._pods_on[node_name]
        node = self._nodes.get(node_name)
        if node is not None:
            before, node.pods = node.pods, node.pods + sign
            if bool(before) != bool(node.pods):
                self._use(node, sign)

    def pod_running(self, amounts: Mapping[str, int], sign: int) -> None:
        """A pod started, or (`sign` -1) does not run any more."""
        for name, amount in amounts.items():
            self.running[name] += sign * amount
        self.running["pods"] += sign
