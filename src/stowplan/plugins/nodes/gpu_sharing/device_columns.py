"""The GPUs of all nodes as columns: what each has free, which model it is, how much memory it has.

    free      thousandths, one row per node and one column per GPU; 0 where a node has fewer GPUs than others
    number    how many GPUs the node has
    model     a number for the model, see `codes_of`
    memory    MiB of each GPU; 0 where the node does not say
    kinds     which kinds of GPU pods are on the node: bit 0 for shares, bit n for pods with n whole GPUs

A row is computed again when it is looked at and its node or the pods there changed. It depends on nothing else but
`assigned`, so that trials need no part of their own here. A pod's GPUs are, the first that is known: those that were
assigned when it was reserved, those of its annotation, or those that it would get now.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.rows import longer
from stowplan.columns.state import ClusterState, PlacedPod
from stowplan.objects import quantity
from stowplan.objects.gpu_requests import COUNT, INDEX, MODELS, MOST_DEVICES, RESOURCE, WHOLE, GpuRequest, indexes
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

KEY = "GPUs"
PRODUCT, MEMORY = "nvidia.com/gpu.product", "nvidia.com/gpu.memory"  # labels of NVIDIA's GPU feature discovery
PRUNE_ABOVE = 1024  # assignments, before those of pods that are gone are looked for


def of_state(state: ClusterState) -> DeviceColumns:
    """Return the columns of a cluster, brought up to date."""
    columns: DeviceColumns | None = state.table.row_columns.get(KEY)
    if columns is None:
        columns = state.table.row_columns[KEY] = DeviceColumns(state)
    columns.refresh()
    return columns


def assignments_of(state: ClusterState) -> DeviceColumns:
    """Return the same columns, for questions about one pod: what pods took of rows may be out of date."""
    columns: DeviceColumns | None = state.table.row_columns.get(KEY)
    if columns is None or columns.misses_nodes():
        return of_state(state)
    return columns


class DeviceColumns:
    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self.assigned: dict[str, tuple[str, tuple[int, ...]]] = {}  # node and GPUs of pods, until they are seen bound
        self.free: Ints = np.zeros((0, 1), np.int64)
        self.number: Ints = np.zeros(0, np.int64)
        self.model: Ints = np.zeros(0, np.int64)
        self.memory: Ints = np.zeros(0, np.int64)
        self.kinds: Ints = np.zeros(0, np.int64)
        self._codes: dict[str, int] = {"": 0}  # of the models
        self._allowed: dict[tuple[frozenset[str], ...], Bools] = {}  # by the number of a model, of the last constraints
        self._clock = self._nodes_clock = -1
        self._prune_above = PRUNE_ABOVE

    # -- questions

    def codes_of(self, models: Iterable[str]) -> list[int]:
        """Return the numbers of those of these models that some node has had."""
        return [self._codes[name] for name in models if name in self._codes]

    def is_allowed(self, models: frozenset[str], model: Ints) -> Bools:
        """Return where a pod with this constraint may go, by the column of models."""
        if not models:
            return np.ones(len(model), np.bool_)
        return np.isin(model, self.codes_of(models))

    def allowed(self, constraints: tuple[frozenset[str], ...], model: Ints) -> Bools:
        """Return the same for many constraints: a row per node and a column per constraint."""
        by_code = self._allowed.get(constraints)
        if by_code is None or len(by_code) != len(self._codes):
            codes = np.arange(len(self._codes))
            by_code = np.stack([self.is_allowed(each, codes) for each in constraints], axis=1)
            self._allowed = {constraints: by_code}
        found: Bools = by_code[model]
        return found

    def free_without(self, pod: Pod, node_name: str) -> list[int]:
        """Return what the GPUs of a node have free besides this pod, which is there or is not."""
        row = self._state.table.row_of[node_name]
        others = [placed for uid, placed in self._state.pods_on[row].items() if uid != pod.uid]
        free, _ = self._counted(row, others)
        return free

    def assigned_to(self, pod: Pod, node_name: str) -> tuple[int, ...] | None:
        """Return the GPUs that were assigned to a pod on this node."""
        at, devices = self.assigned.get(pod.uid, ("", ()))
        return devices if at == node_name else None

    # -- changes

    def assign(self, pod: Pod, node_name: str, devices: tuple[int, ...]) -> None:
        self.assigned[pod.uid] = node_name, devices
        self._touch(node_name)
        if len(self.assigned) > self._prune_above:
            self.assigned = {uid: found for uid, found in self.assigned.items() if uid in self._state.pods}
            self._prune_above = max(PRUNE_ABOVE, 2 * len(self.assigned))

    def release(self, pod: Pod) -> None:
        node_name, _ = self.assigned.pop(pod.uid, ("", ()))
        if node_name:
            self._touch(node_name)

    def _touch(self, node_name: str) -> None:
        row = self._state.table.row_of.get(node_name)
        if row is not None:
            self._state.table.touch(row)

    # -- keeping the columns

    def misses_nodes(self) -> bool:
        """True if a node changed since the columns were brought up to date."""
        return self._nodes_clock != self._state.table.node_clock

    def refresh(self) -> None:
        table = self._state.table
        if self._clock == table.clock:
            return
        if len(self.number) < table.capacity:
            self._grow(table.capacity)
        few = table.few_changed_since(self._clock) if self._clock >= 0 else None
        for row in table.changed_since(self._clock).tolist() if few is None else few:
            if table.node_version[row] > self._clock:
                self._put_node(row)
            free, self.kinds[row] = self._counted(row, self._state.pods_on[row].values())
            self.free[row, : len(free)] = free
        self._clock, self._nodes_clock = table.clock, table.node_clock

    def _grow(self, capacity: int) -> None:
        for name in ("number", "model", "memory", "kinds"):
            setattr(self, name, longer(getattr(self, name), capacity))
        self._shape(capacity, self.free.shape[1])

    def _shape(self, capacity: int, width: int) -> None:
        before = self.free
        self.free = np.zeros((capacity, width), np.int64)
        self.free[: before.shape[0], : before.shape[1]] = before

    def _put_node(self, row: int) -> None:
        node = self._state.table.nodes[row]
        assert node is not None, "rows without a node are not looked at"
        number = min(offered(node), MOST_DEVICES)
        if number > self.free.shape[1]:
            self._shape(len(self.number), number)
        model = node.labels.get(MODELS) or node.labels.get(PRODUCT) or ""
        self.free[row] = 0
        self.number[row] = number
        self.model[row] = self._codes.setdefault(model, len(self._codes))
        self.memory[row] = memory_of(node)

    def _counted(self, row: int, pods: Iterable[PlacedPod]) -> tuple[list[int], int]:
        """What the GPUs of a row have free, and the kinds of the pods there."""
        number, memory = int(self.number[row]), int(self.memory[row])
        name = self._state.table.names[row]
        free, kinds, undecided = [WHOLE] * number, 0, list[tuple[str, GpuRequest]]()
        for placed in pods:
            asked = placed.shape.gpus
            if asked is None or asked.problem:
                continue
            kinds |= 1 << asked.kind
            devices = self._devices_of(placed.pod, name)
            if devices is None:
                undecided.append((placed.pod.uid, asked))
            else:
                take(free, devices, milli_on(asked, memory))
        for _, asked in sorted(undecided, key=lambda each: each[0]):
            take(free, tightest(free, asked.count, milli_on(asked, memory)) or (), milli_on(asked, memory))
        return free, kinds

    def _devices_of(self, pod: Pod, node_name: str) -> tuple[int, ...] | None:
        text = pod.annotations.get(INDEX) if pod.node_name else None
        known = None if text is None else indexes(text)
        if known is not None:
            return known
        at, devices = self.assigned.get(pod.uid, ("", ()))
        return devices if at == node_name else None


def milli_on(asked: GpuRequest, memory: int) -> int:
    """Return the thousandths of each GPU that a pod takes where GPUs have so much memory; too many where none fits."""
    if not asked.memory:
        return asked.milli
    return -(-asked.memory * WHOLE // memory) if memory else WHOLE + 1


def tightest(free: list[int], count: int, milli: int) -> tuple[int, ...] | None:
    """Return the fitting GPUs with the least free, the lowest numbers among equals; None if too few fit."""
    fitting = sorted((left, at) for at, left in enumerate(free) if left >= milli)
    return tuple(sorted(at for _, at in fitting[:count])) if len(fitting) >= count else None


def take(free: list[int], devices: Iterable[int], milli: int) -> None:
    for at in devices:
        if at < len(free):
            free[at] = max(free[at] - milli, 0)


def offered(node: Node) -> int:
    """Return the number of GPUs that a node offers."""
    allocatable: dict[str, Any] = node.status.allocatable
    found = (quantity.of(name, allocatable[name]) for name in (COUNT, RESOURCE) if name in allocatable)
    return max(next(found, 0), 0)


def memory_of(node: Node) -> int:
    """Return the MiB of each GPU of a node; 0 if it does not say."""
    text = node.labels.get(MEMORY, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
