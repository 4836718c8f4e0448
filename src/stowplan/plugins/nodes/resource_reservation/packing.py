"""How many members of an application go to which node: room as arrays, one entry per node.

    capacities            how many pods that need so much find room on each node
    evenly                one after the other to each node in turn
    tightly               a node is filled before the next is begun
    minimal fragmentation few nodes, and none that would stay mostly empty, unless it takes them

Nodes come in the order in which they are to be used. Those marked `later` (with GPUs that the members do not need) get
what the others cannot take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from stowplan.columns.arrays import Bools, Ints

Room = Mapping[str, Ints]  # what each node has left, by resource
Strategy = Callable[[Ints, int], Ints | None]  # capacities and a number of pods to how many each node gets
ENDLESS = np.int64(1 << 40)


def capacities(room: Room, needs: Mapping[str, int], where: Bools) -> Ints:
    """How many pods that need this find room on each node; none outside of `where`."""
    fits = np.where(where, ENDLESS, 0)
    for resource, amount in needs.items():
        if amount > 0:
            left = room.get(resource)
            fits = fits * 0 if left is None else np.minimum(fits, np.maximum(left, 0) // amount)
    return fits


def less(room: Room, needs: Mapping[str, int], times: Ints | int = 1) -> dict[str, Ints]:
    """What is left of the room when each node has so many more pods of this kind."""
    return {resource: left - np.int64(needs.get(resource, 0)) * times for resource, left in room.items()}


def evenly(fits: Ints, count: int) -> Ints | None:
    """Round after round each node that has room gets one."""
    if int(np.minimum(fits, count).sum()) < count:
        return None
    low, high = 0, count  # the number of rounds in which everybody who has room gets one
    while low < high:
        rounds = (low + high + 1) // 2
        low, high = (rounds, high) if int(np.minimum(fits, rounds).sum()) <= count else (low, rounds - 1)
    given = np.minimum(fits, low)
    given[np.flatnonzero(fits > low)[: count - int(given.sum())]] += 1
    return given


def tightly(fits: Ints, count: int) -> Ints | None:
    """As many on the first node as fit, then the next."""
    before = np.cumsum(np.minimum(fits, count)) - np.minimum(fits, count)
    given = np.clip(count - before, 0, fits)
    return given if int(given.sum()) == count else None


def minimal_fragmentation(fits: Ints, count: int) -> Ints | None:
    """The smallest node that takes all; else the largest ones, filled, and what is left by the same rule."""
    given = np.zeros_like(fits)
    if int(np.minimum(fits, count).sum()) < count:
        return None
    while count:
        fits = _but_mostly_empty(fits, count)
        enough = np.flatnonzero(fits >= count)
        if len(enough):
            given[enough[fits[enough].argmin()]] += count
            return given
        largest = int(fits.max())
        filled = np.flatnonzero(fits == largest)[: count // largest]
        given[filled], count = largest, count - len(filled) * largest
        fits = np.where(given > 0, 0, fits)
    return given


def _but_mostly_empty(fits: Ints, count: int) -> Ints:
    """Without nodes that have room for the mean of what is wanted and what the largest takes, if the others can do."""
    while True:
        others = np.where(fits >= (count + int(fits.max())) // 2, 0, fits)
        if int(np.minimum(others, count).sum()) < count or (others == fits).all():
            return fits
        fits = others


STRATEGIES: dict[str, Strategy] = {
    "evenly": evenly,
    "tightly": tightly,
    "minimalFragmentation": minimal_fragmentation,
}


def pack(strategy: Strategy, fits: Ints, count: int, order: Ints, later: Bools) -> Ints | None:
    """How many of `count` pods each node gets; None if there is not room for all of them."""
    given = np.zeros_like(fits)
    for turn in (~later[order], later[order]):
        places = order[turn]
        now = min(count, int(np.minimum(fits[places], count).sum()))
        chosen = strategy(fits[places], now)
        if chosen is not None:
            given[places] += chosen
            count -= now
    return given if count == 0 else None


def in_order(room: Room) -> Ints:
    """Nodes with the least memory left first, then with the least cpu: what is nearly full is filled up."""
    return np.lexsort((room["cpu"], room["memory"]))
