"""The answers to one question for all nodes: kept, and refreshed only where devices or nodes changed.

Nodes whose devices the question cannot tell apart are decided once: they share the answer of the first one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from stowplan.columns.arrays import Rows
from stowplan.columns.devices.devices import Devices
from stowplan.columns.devices.pools import CounterAmounts, DevicePool, NodeDevices, PooledDevice, consumption
from stowplan.columns.nodes.table import NodeTable
from stowplan.objects.nodes import Node
from stowplan.plugins.nodes.default.device_claims import results
from stowplan.plugins.nodes.default.device_claims.questions import DeviceQuestion, FatalError
from stowplan.plugins.nodes.default.device_claims.search import (
    ConstraintError,
    Counters,
    DeviceSearch,
    Found,
    OutOfTimeError,
    SearchedNode,
)

NOT_ALL: Final = "cannot allocate all claims"
INVALID_POOLS: Final = "invalid resource pools were encountered"
UNKNOWN, FITS, FAILS, FAILS_INVALID, FATAL = range(5)
REASONS: Final = {FAILS: NOT_ALL, FAILS_INVALID: INVALID_POOLS}
MOST_SEARCHED = 1 << 14  # answers that are shared by nodes alike


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """Whether a node has the devices (`FITS`), which (`found`), or what ends the decision (`FATAL`)."""

    code: int
    found: Found | None = None
    error: FatalError | None = None


class NodeAnswers:
    """The answers to one question, by row."""

    def __init__(self, question: DeviceQuestion) -> None:
        self.question = question
        self.codes: npt.NDArray[np.int8] = np.zeros(0, np.int8)
        self._answers: list[NodeAnswer | None] = []
        self._nodes: list[Node | None] = []
        self._seen, self._node_clock = -1, -1
        self._searched: dict[SearchedNode, NodeAnswer] = {}

    def refresh(self, table: NodeTable, devices: Devices) -> None:
        """Forget the answers for nodes that changed since the last call."""
        if len(self.codes) < table.capacity:
            grown = np.zeros(table.capacity, np.int8)
            grown[: len(self.codes)] = self.codes
            self._answers += [None] * (table.capacity - len(self._answers))
            self._nodes += [None] * (table.capacity - len(self._nodes))
            self.codes = grown
        if self._seen != devices.end:
            changed = devices.changed_since(self._seen) if self._seen >= 0 else None
            if changed is None:
                self.codes[:] = UNKNOWN
            else:
                rows = [row for name in changed if (row := table.row_of.get(name)) is not None]
                self.codes[rows] = UNKNOWN
            self._seen = devices.end
        if self._node_clock != table.node_clock:
            # Rows without a node, too: one that comes back may have other devices by then.
            for row, (before, now) in enumerate(zip(self._nodes, table.nodes, strict=False)):
                if before is not now:
                    if not _same_place(before, now):
                        self.codes[row] = UNKNOWN
                    self._nodes[row] = now
            self._node_clock = table.node_clock

    def of_rows(self, rows: Rows, table: NodeTable, devices: Devices) -> npt.NDArray[np.int8]:
        """Return the codes of these rows."""
        codes = self.codes[rows]
        if not codes.all():
            for row in rows[codes == UNKNOWN].tolist():
                self.of_row(row, table, devices)
            codes = self.codes[rows]
        return codes

    def of_row(self, row: int, table: NodeTable, devices: Devices) -> NodeAnswer:
        found = self._answers[row] if self.codes[row] != UNKNOWN else None
        if found is None:
            node = table.nodes[row]
            assert node is not None
            found = self._answers[row] = self._answer(devices.of(node), devices)
            self.codes[row], self._nodes[row] = found.code, node
        return found

    def known(self, row: int) -> NodeAnswer | None:
        """Return the answer for a row, if it is up to date since the last refresh."""
        return self._answers[row] if self.codes[row] != UNKNOWN else None

    def error(self, rows: Rows) -> FatalError | None:
        """Return what ends the decision on one of these rows, if anything does."""
        for row in rows[self.codes[rows] == FATAL].tolist():
            answer: NodeAnswer | None = self._answers[row]
            if answer is not None and answer.error is not None:
                return answer.error
        return None

    def _answer(self, seen: NodeDevices, devices: Devices) -> NodeAnswer:
        node = searched_node(self.question, seen, devices)
        known = self._searched.get(node)
        if known is None or (self.question.takes_all and seen.broken is not None):
            try:
                found = DeviceSearch(self.question, node).run(_broken(seen.broken))
            except FatalError as error:
                return NodeAnswer(FATAL, error=error)
            except ConstraintError as error:
                device = "/".join(seen.devices[error.place].id)
                problem = f"cannot add device {device} because a claim constraint would not be satisfied"
                text = f", request {error.request.name}: {problem}"
                return NodeAnswer(FATAL, error=FatalError(text, error.request.claim))
            except OutOfTimeError:
                late = f"node {seen.node.name}: timed out trying to allocate devices"
                return NodeAnswer(FATAL, error=FatalError(late))
            if len(self._searched) >= MOST_SEARCHED:
                self._searched.clear()
            known = NodeAnswer(FAILS) if found is None else NodeAnswer(FITS, found)
            self._searched[node] = known
        if known.code == FAILS and seen.any_invalid:
            return NodeAnswer(FAILS_INVALID)
        if known.found is not None and any(map(_selects_nodes, seen.devices)):
            try:
                for claim, picks in enumerate(known.found.picks):
                    results.node_selector([seen.devices[pick.place] for pick in picks], seen.node.name, claim)
            except FatalError as error:
                return NodeAnswer(FATAL, error=error)
        return known


def _selects_nodes(pooled: PooledDevice) -> bool:
    """True if the slice of a device selects nodes by labels, or the device does so itself."""
    return pooled.slice.spec.node_selector is not None or pooled.device.node_selector is not None


def _same_place(before: Node | None, now: Node | None) -> bool:
    """True if slices select a node as they did before."""
    return before is not None and now is not None and (before.name, before.labels) == (now.name, now.labels)


def searched_node(question: DeviceQuestion, seen: NodeDevices, devices: Devices) -> SearchedNode:
    """Return what the search must know of a node's devices."""
    in_use, found = devices.in_use, seen.devices
    shares = in_use.shared
    counted = [place for place, pool in enumerate(seen.pools) if pool.counters and pool.usable]
    number_of = {place: number for number, place in enumerate(counted)}
    consuming = any(pooled.counters for pooled in found)
    return SearchedNode(
        tuple(map(question.trait_of, found)),
        tuple(pooled.id in in_use.whole for pooled in found),
        tuple(tuple(sorted(shares[pooled.id].consumed.items())) if pooled.id in shares else None for pooled in found),
        tuple(number_of[pooled.pool] if pooled.counters else -1 for pooled in found) if consuming else (),
        tuple(tuple(pooled.counters.items()) for pooled in found) if consuming else (),
        tuple(_left(seen.pools[place], devices) for place in counted) if consuming else (),
    )


def _left(pool: DevicePool, devices: Devices) -> Counters:
    """Return what the devices in use leave of a pool's counters."""
    left: CounterAmounts = dict(pool.counters)
    for found in (*pool.slices, *pool.others):
        for device in found.spec.devices:
            if device.consumes_counters and devices.in_use.is_used((*pool.id, device.name)):
                for place, amount in consumption(device).items():
                    left[place] -= amount
    return tuple(left.items())


def _broken(pool: DevicePool | None) -> str:
    if pool is None:
        return ""
    return f"{pool} is currently {'being updated' if pool.incomplete else 'invalid'}"
