"""How many of so many pods each domain should have, by weights such as 3 and 5.

The places are given out one after the other: the k-th place of a domain with weight w comes at (2k-1)/w, the smallest
of these numbers first (Webster's method, as parliaments use it); if two are equal, that of the greater weight, then
that of the domain that is listed first. So one pod more adds one place to one domain, and takes none away; one pod
fewer takes the last place. `place_of` is the number of a place in that order: who removes the pods with the greatest
numbers first keeps the ratio all the way down.

    3 : 5      of 4 pods  1 : 3     of 8 pods  3 : 5     of 16 pods  6 : 10
    places     a: 2 5 7 10 13 15 …     b: 1 3 4 6 8 9 11 12 14 16 …
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from heapq import heapify, heapreplace

WHOLE = 10_000  # hundredths of a percent


def places(weights: Mapping[str, int], total: int) -> dict[str, int]:
    """Return how many of `total` places each domain gets. A domain of weight 0 gets none."""
    return dict(zip(weights, _places(tuple(weights.values()), max(total, 0)), strict=True))


def places_by_shares(shares: Mapping[str, int], pods: int) -> dict[str, int]:
    """Return how many of so many pods each domain gets, by its share in hundredths of a percent.

    Shares of less than a whole give less than all pods a place, rounded to the next number.
    """
    return places(shares, (max(pods, 0) * sum(shares.values()) + WHOLE // 2) // WHOLE)


def place_of(number: int, domain: str, weights: Mapping[str, int]) -> int:
    """Return which of all places (1, 2 …) the one of this number of a domain is."""
    weight, found, after = weights[domain], 0, False
    for name, other in weights.items():
        if name == domain:
            found, after = found + number, True
        elif other:
            reached = (2 * number - 1) * other
            before_us = other > weight or (other == weight and not after)  # with a place at the same moment
            odd = reached // weight if before_us else -(-reached // weight) - 1
            found += (odd + 1) // 2
    return found


@lru_cache(maxsize=1024)
def _places(weights: tuple[int, ...], total: int) -> tuple[int, ...]:
    """All places before a limit that is surely low enough, then the few that are left, one by one."""
    whole, parties = sum(weights), sum(weight > 0 for weight in weights)
    if not whole:
        return tuple(0 for _ in weights)
    given = [max(-((whole - weight * (2 * total - parties)) // (2 * whole)), 0) for weight in weights]
    line = [(Fraction(2 * given[i] + 1, weight), -weight, i) for i, weight in enumerate(weights) if weight]
    heapify(line)
    for _ in range(total - sum(given)):
        _, heavier, i = line[0]
        given[i] += 1
        heapreplace(line, (Fraction(2 * given[i] + 1, weights[i]), heavier, i))
    return tuple(given)
