"""How many pods of an application each node gets: room as arrays, one entry per node.

    capacities            how many pods of one size fit on each node
    evenly                one pod to each node in turn
    tightly               each node is filled before the next is used
    minimal fragmentation few nodes, and nodes that would stay mostly empty only if they are needed

Nodes are used in the given order. Nodes marked `later` (with GPUs that the pods do not need) get the pods that do not
fit on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from stowplan.columns.arrays import Bools, Ints

Room = Mapping[str, Ints]  # what is free on each node, by resource
Strategy = Callable[[Ints, int], Ints | None]  # from capacities and a number of pods to the pods of each node
ENDLESS = np.int64(1 << 40)


def capacities(room: Room, needs: Mapping[str, int], where: Bools) -> Ints:
    """Return how many pods with these needs fit on each node; none outside of `where`."""
    fits = np.where(where, ENDLESS, 0)
    for resource, amount in needs.items():
        if amount > 0:
            left = room.get(resource)
            fits = fits * 0 if left is None else np.minimum(fits, np.maximum(left, 0) // amount)
    return fits


def less(room: Room, needs: Mapping[str, int], times: Ints | int = 1) -> dict[str, Ints]:
    """Return the room that is left with so many more pods of this size on each node."""
    return {resource: left - np.int64(needs.get(resource, 0)) * times for resource, left in room.items()}


def evenly(fits: Ints, count: int) -> Ints | None:
    """Give one pod per round to each node with room."""
    if int(np.minimum(fits, count).sum()) < count:
        return None
    low, high = 0, count  # the number of complete rounds
    while low < high:
        rounds = (low + high + 1) // 2
        low, high = (rounds, high) if int(np.minimum(fits, rounds).sum()) <= count else (low, rounds - 1)
    given = np.minimum(fits, low)
    given[np.flatnonzero(fits > low)[: count - int(given.sum())]] += 1
    return given


def tightly(fits: Ints, count: int) -> Ints | None:
    """Fill the first node, then the next."""
    before = np.cumsum(np.minimum(fits, count)) - np.minimum(fits, count)
    given = np.clip(count - before, 0, fits)
    return given if int(given.sum()) == count else None


def minimal_fragmentation(fits: Ints, count: int) -> Ints | None:
    """Use the smallest node that fits all; else fill the largest nodes, and place the rest by the same rule."""
    given = np.zeros_like(fits)
    if int(np.minimum(fits, count).sum()) < count:
        return None
    while count:
        fits = _without_mostly_empty(fits, count)
        enough = np.flatnonzero(fits >= count)
        if len(enough):
            given[enough[fits[enough].argmin()]] += count
            return given
        largest = int(fits.max())
        filled = np.flatnonzero(fits == largest)[: count // largest]
        given[filled], count = largest, count - len(filled) * largest
        fits = np.where(given > 0, 0, fits)
    return given


def _without_mostly_empty(fits: Ints, count: int) -> Ints:
    """Drop nodes that fit at least the mean of `count` and the largest capacity, if the other nodes are enough."""
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
    """Return how many of `count` pods each node gets; None if they do not all fit."""
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
    """Return the nodes with the least free memory first, then the least free cpu: fuller nodes are filled first."""
    return np.lexsort((room["cpu"], room["memory"]))
