"""NodeResourcesFit: the pod's requests must be free on the node; and a preference for emptier or fuller nodes.

A resource that a device class stands for is not checked on a node that has none of it in its status: DynamicResources
allocates devices there. If it is configured for the score, the devices of the class are counted.

The score adds the pod to the requests on the node (with defaults for containers that request nothing) and rates each
configured resource: LeastAllocated by what stays free, MostAllocated by what is used, RequestedToCapacityRatio by a
configured shape.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from stowplan.columns.arrays import Bools, Bytes, Ints
from stowplan.columns.devices.classes import ClassesOfResources, may_be_backed
from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.row_columns import row_columns
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.cause_texts import amount_text
from stowplan.framework.causes import Cause, Detail, NodeCause
from stowplan.framework.decision import Reject
from stowplan.framework.interfaces import Wake
from stowplan.framework.scoring import EXACT_AS_FLOAT, MAX_SCORE, int64, percent, percent_of_one, rounded
from stowplan.objects import devices, quantity, requests
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.default.device_claims import class_counts

FIXED = ("cpu", "memory", "ephemeral-storage")
PRESUMED = ("cpu", "memory")  # counted with a default for containers that request nothing
LARGE = EXACT_AS_FLOAT // MAX_SCORE
DEFAULT_RESOURCES = ({"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1})


class NodeResourcesFit:
    reads = ("DeviceClass",)
    configurable_at = ("preFilter", "preScore")
    local = "resources"
    filters_by_row = True  # while the device classes stay the same
    ignores_volumes = True

    def __init__(
        self,
        ignored_resources: Sequence[str] = (),
        ignored_resource_groups: Sequence[str] = (),
        scoring_strategy: Mapping[str, Any] | None = None,
    ) -> None:
        """`ignoredResources` and groups are not filtered; `scoringStrategy` configures the score."""
        self._ignored, self._ignored_groups = frozenset(ignored_resources), frozenset(ignored_resource_groups)
        strategy = scoring_strategy or {}
        self._kind = strategy.get("type") or "LeastAllocated"
        listed: Sequence[Mapping[str, Any]] = strategy.get("resources") or DEFAULT_RESOURCES
        self._resources = [(str(each["name"]), int(each.get("weight") or 1)) for each in listed]
        names = {name for name, _ in self._resources}
        self.scores_by_row = not any(map(may_be_backed, names))  # devices that are in use are no part of the row
        self._classes = ClassesOfResources(())  # as of the last question
        self._alike = names == set(PRESUMED) and [weight for _, weight in self._resources] == [1, 1]
        ratio = strategy.get("requestedToCapacityRatio") or {}
        self._shape: list[tuple[int, int]] = [
            (point["utilization"], 10 * point["score"]) for point in ratio.get("shape") or ()
        ]

    # -- filter

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        full = nodes.requested["pods"] >= nodes.allocatable["pods"]
        if full.any():
            yield Reject(full, "Too many pods")
        self._classes = nodes.cluster.state.devices.classes.current()
        for resource, amount in self._needed(pod):
            allocatable = nodes.allocatable[resource]
            left = allocatable - nodes.requested[resource]
            if int(left.min(initial=amount)) < amount:
                rejected = left < amount
                if self._is_backed(resource):
                    rejected &= allocatable != 0
                yield Reject(rejected, f"Insufficient {resource}", resolvable=allocatable >= amount)

    def fits(self, pod: Pod, node: OneNode) -> list[tuple[str, bool]] | None:
        found = []
        if node.requested("pods") >= node.allocatable("pods"):
            found.append(("Too many pods", True))
        for resource, amount in self._needed(pod):
            allocatable = node.allocatable(resource)
            if allocatable == 0 and self._is_backed(resource):
                continue
            if int64(allocatable - node.requested(resource)) < amount:
                found.append((f"Insufficient {resource}", allocatable >= amount))
        return found or None

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        full = nodes.requested["pods"] >= nodes.allocatable["pods"]
        if full.any():
            most = int(nodes.allocatable["pods"][full].max())
            yield NodeCause(full, Cause("too-many-pods", f"too many pods: {most} at most", {"most": most}))
        for resource, wanted in self._needed(pod):
            if self._is_backed(resource):
                continue
            allocatable = nodes.allocatable[resource]
            free = allocatable - nodes.requested[resource]
            too_small: Bools = (free < wanted) & (allocatable < wanted)
            if too_small.any():
                yield NodeCause(too_small, _too_small(resource, wanted, int(allocatable[too_small].max()), nodes))
            taken: Bools = (free < wanted) & (allocatable >= wanted)
            if taken.any():
                yield NodeCause(taken, _taken(resource, wanted, int(free[taken].max()), int(allocatable[taken].max())))

    def needs_free(self, pod: Pod) -> Iterator[tuple[str, int]]:
        """Return what the filter requires to be free on a node."""
        needed = [(resource, amount) for resource, amount in self._needed(pod) if not self._is_backed(resource)]
        return chain((("pods", 1),), needed)

    def _needed(self, pod: Pod) -> list[tuple[str, int]]:
        """Return the resources to check, the fixed ones first, the others by name."""
        request = pod.request
        needed = [(name, amount) for name in FIXED if (amount := request.get(name, 0)) > 0]
        if len(request) > len(needed):
            others = sorted(name for name in request if name not in FIXED and not self._is_ignored(name))
            needed += [(name, request[name]) for name in others if request[name] > 0]
        return needed

    def _is_backed(self, resource: str) -> bool:
        """True if a device class stands for the resource: devices may be allocated instead."""
        return resource not in FIXED and self._classes.of(resource) is not None

    def _is_ignored(self, resource: str) -> bool:
        if not requests.is_extended(resource):
            return False
        return resource in self._ignored or resource.partition("/")[0] in self._ignored_groups

    # -- score

    def score(self, pod: Pod, nodes: Nodes) -> Ints | Bytes | None:
        found = self._quick_score(pod, nodes)
        if found is not None:
            return found
        total, weights = np.zeros(len(nodes), np.int64), Weights(len(nodes))
        for resource, weight in self._resources:
            wanted = pod.shape.scored.get(resource, 0)
            if not requests.is_counted(resource) or (wanted == 0 and requests.is_scalar(resource)):
                continue
            rating, counts = self._rate(nodes, resource, wanted)
            total += rating if weight == 1 else rating * weight
            weights.add(weight, counts)
        return weights.mean(total, to_nearest=self._kind == "RequestedToCapacityRatio")

    def _quick_score(self, pod: Pod, nodes: Nodes) -> Bytes | None:
        """Return the score in few steps, for the usual strategies; None: it takes the long way."""
        if self._kind not in ("LeastAllocated", "MostAllocated") or not self._alike:
            return None
        scored, ratings = pod.shape.scored, list[Any]()
        (first, _), (second, _) = self._resources
        *columns, unusual = Amounts(first, second).on(nodes)
        if unusual.any():
            return None
        nothing = np.zeros(len(nodes))  # with the number 0 NumPy takes three times as long
        for resource, capacity, free in ((first, *columns[:2]), (second, *columns[2:])):
            wanted = scored.get(resource, 0)
            if wanted >= LARGE:
                return None
            part = free - MAX_SCORE * wanted
            np.maximum(part, nothing, out=part)
            if self._kind == "MostAllocated":
                np.subtract(MAX_SCORE * capacity, part, out=part)
            part /= capacity  # exact when truncated, see `percent`
            ratings.append(part.astype(np.uint8))
        mean: Bytes = ratings[0]
        mean += ratings[1]
        mean >>= 1
        return mean

    def rate(self, pod: Pod, node: OneNode) -> int:
        total = weights = 0
        by_shape = self._kind == "RequestedToCapacityRatio"
        for resource, weight in self._resources:
            wanted = pod.shape.scored.get(resource, 0)
            if not requests.is_counted(resource) or (wanted == 0 and requests.is_scalar(resource)):
                continue
            capacity = node.allocatable(resource)
            taken = node.presumed(resource) if resource in PRESUMED else node.requested(resource)
            rating = self._rating_of_one(int64(taken + wanted), capacity) if capacity else 0
            total += rating * weight
            weights += weight if (rating > 0 if by_shape else capacity) else 0
        if by_shape:
            mean = total / max(weights, 1)
            return math.floor(mean) + (mean - math.floor(mean) >= 0.5)
        return total // max(weights, 1)

    def _rating_of_one(self, after: int, capacity: int) -> int:
        if self._kind == "LeastAllocated":
            return percent_of_one(max(int64(capacity - after), 0), capacity)
        used = percent_of_one(min(after, capacity), capacity)
        return used if self._kind == "MostAllocated" else self._shaped_one(used)

    def _shaped_one(self, utilization: int) -> int:
        (lowest, first), last = self._shape[0], self._shape[-1][1]
        if utilization <= lowest:
            return first
        for (low, start), (high, end) in zip(self._shape, self._shape[1:], strict=False):
            if utilization <= high:
                rise = (end - start) * (utilization - low)
                return start + (abs(rise) // (high - low) if rise >= 0 else -(abs(rise) // (high - low)))
        return last

    def _rate(self, nodes: Nodes, resource: str, wanted: int) -> tuple[Ints, Bools | None]:
        """Return one resource's rating, and the nodes where it counts (None: all): those that have the resource."""
        capacity = nodes.allocatable[resource]
        taken = nodes.presumed if resource in nodes.presumed else nodes.requested
        after = taken[resource] + wanted
        devices = class_counts.counted(nodes, resource) if may_be_backed(resource) else None
        if devices is not None:
            instead = devices[0] > 0
            capacity, after = np.where(instead, devices[0], capacity), np.where(instead, devices[1] + wanted, after)
        offered: Bools | None = None if capacity.all() else capacity != 0
        if offered is None:
            rating = self._rating(after, capacity)
        else:
            rating = self._rating(after, np.where(offered, capacity, 1)) * offered
        return rating, rating > 0 if self._kind == "RequestedToCapacityRatio" else offered

    def _rating(self, after: Ints, capacity: Ints) -> Ints:
        if self._kind == "LeastAllocated":
            return percent(np.maximum(capacity - after, 0), capacity)
        used = percent(np.minimum(after, capacity), capacity)
        return used if self._kind == "MostAllocated" else self._shaped(used)

    def _shaped(self, utilization: Ints) -> Ints:
        """Return the value of the shape, linear between its points; divisions truncate, on falling lines, too."""
        rating = np.full(len(utilization), self._shape[-1][1], np.int64)
        for (low, start), (high, end) in reversed(list(zip(self._shape, self._shape[1:], strict=False))):
            rise = (end - start) * (utilization - low)
            line = start + np.sign(rise) * (np.abs(rise) // (high - low))
            rating = np.where(utilization <= high, line, rating)
        return np.where(utilization <= self._shape[0][0], self._shape[0][1], rating)

    # -- requeueing

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Pod", ("Delete", "UpdatePodScaleDown"), hint="pod_freed_resources")
        yield Wake("Node", ("Add", "UpdateNodeAllocatable"), hint="node_has_room")
        yield Wake("DeviceClass", ("Add", "Update"), hint="class_provides_resource")

    def pod_freed_resources(self, pod: Pod, old: Pod | None, new: Pod | None) -> bool:
        """True if a pod was deleted, this pod requests less, or another pod released what this pod requests."""
        if old is None:
            return False
        if new is None:
            return bool(old.node_name or old.nominated_node)
        if new.uid != pod.uid and not new.node_name:
            return False
        before, after = requests.running(old), requests.running(new)
        return any(before.get(name, 0) > after.get(name, 0) for name, wanted in pod.request.items() if wanted)

    def class_provides_resource(
        self, pod: Pod, old: devices.DeviceClass | None, new: devices.DeviceClass | None
    ) -> bool:
        """True if a device class provides a resource that the pod requests, and did not before."""
        if new is None or (old is not None and old.spec.extended_resource_name == new.spec.extended_resource_name):
            return False
        names = {new.spec.extended_resource_name, f"{devices.IMPLICIT}{new.name}" if old is None else None}
        return any(name in pod.request for name in names if name)

    def node_has_room(self, pod: Pod, old: Node | None, new: Node | None) -> bool:
        """True if the pod fits on the empty node, and the node is new or has more of what the pod requests."""
        if new is None or not self._fits_empty(pod, new):
            return False
        if old is None:
            return True
        wanted = ["pods", *(name for name, amount in pod.request.items() if amount)]
        return any(_offers(new, name) > _offers(old, name) for name in wanted)

    def _fits_empty(self, pod: Pod, node: Node) -> bool:
        return _offers(node, "pods") > 0 and all(
            need <= offered or (not offered and self._is_backed(name))
            for name, need in self._needed(pod)
            for offered in (_offers(node, name),)
        )


class Amounts:
    """What a score needs of each node: of each resource its capacity and 100 times what is free, and if one is unusual.

    These are floats. Usual amounts are so small that floats are exact, and the capacity is not 0.
    """

    def __init__(self, *resources: str) -> None:
        self._resources = resources

    def on(self, nodes: Nodes) -> list[Any]:
        return row_columns(nodes, ("amounts", *self._resources), self._of_nodes, self._of_one)

    def _of_nodes(self, nodes: Nodes) -> list[Any]:
        unusual, columns = np.zeros(len(nodes), np.bool_), list[Any]()
        for resource in self._resources:
            capacity = nodes.allocatable[resource]
            taken = (nodes.presumed if resource in PRESUMED else nodes.requested)[resource]
            unusual |= (capacity <= 0) | (capacity >= LARGE) | (taken < 0) | (taken >= LARGE)
            columns += [capacity.astype(np.float64), MAX_SCORE * (capacity.astype(np.float64) - taken)]
        return [*columns, unusual]

    def _of_one(self, node: OneNode) -> list[float]:
        unusual, values = False, list[float]()
        for resource in self._resources:
            capacity = node.allocatable(resource)
            taken = node.presumed(resource) if resource in PRESUMED else node.requested(resource)
            unusual = unusual or not (0 < capacity < LARGE and 0 <= taken < LARGE)
            values += [float(capacity), MAX_SCORE * (float(capacity) - float(taken))]
        return [*values, unusual]


def _too_small(resource: str, wanted: int, most: int, nodes: Nodes) -> Cause:
    """Even an empty node has less than the pod wants."""
    largest = int(nodes.cluster.nodes.allocatable[resource].max(initial=0))
    wants, no_node = f"the pod wants {amount_text(resource, wanted)} {resource}", largest < wanted
    if no_node and largest <= 0:
        text = f"no node has {resource}: {wants}"
    elif no_node:
        text = f"no node is big enough: {wants}, the largest has {amount_text(resource, largest)}"
    elif most <= 0:
        text = f"the node has no {resource}: {wants}"
    else:
        text = f"too small: {wants}, the node has at most {amount_text(resource, most)}"
    details: dict[str, Detail] = {"resource": resource, "wanted": amount_text(resource, wanted), "noNode": no_node}
    return Cause("too-small", text, details | {"allocatable": amount_text(resource, most)})


def _taken(resource: str, wanted: int, free: int, allocatable: int) -> Cause:
    """Other pods use what the pod wants."""
    shown = {"wanted": wanted, "free": max(free, 0), "allocatable": allocatable}
    texts: dict[str, Detail] = {name: amount_text(resource, number) for name, number in shown.items()}
    text = f"insufficient {resource}: the pod wants {texts['wanted']}, at most {texts['free']} of "
    return Cause("insufficient", f"{text}{texts['allocatable']} is free", {"resource": resource, **texts})


def _offers(node: Node, resource: str) -> int:
    return quantity.of(resource, node.status.allocatable.get(resource, "0"))


class Weights:
    """The sum of weights per node; a single number while every resource counts on every node, which is cheaper."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._everywhere = 0
        self._somewhere: Ints | None = None

    def add(self, weight: int, where: Bools | None) -> None:
        if where is None:
            self._everywhere += weight
            return
        if self._somewhere is None:
            self._somewhere = np.zeros(self._size, np.int64)
        self._somewhere += where * np.int64(weight)

    def mean(self, total: Ints, *, to_nearest: bool) -> Ints:
        """Return the weighted mean; 0 for nodes where no resource counts."""
        divisor: Ints | int = max(self._everywhere, 1)
        if self._somewhere is not None:
            divisor = np.maximum(self._somewhere + self._everywhere, 1)
        return rounded(total / divisor) if to_nearest else total // divisor
