"""Scores for nodes that stand on levels: whoever is on a higher level scores more, whatever else speaks for the others.

Each level has a wish, the score that it should have by itself. It gets it wherever that is above all scores of the
level below; else the next number that is. What room is left between the levels tells apart the nodes of one level:

    wishes 0, 50, 75      level 75:  75 74 73     the best node has the wish, each step behind it costs a point
                          level 50:  50 49
                          level  0:  0

If steps take more numbers than there are, fewer of them are told apart; the levels always come first.
"""

from __future__ import annotations

from collections.abc import Sequence

from stowplan.framework.scoring import MAX_SCORE

STEPS = (8, 4, 2, 1)  # how many of a level's steps are told apart at the most: as many as fit


def ranked(wishes: Sequence[int], furthest: Sequence[int], *, split: int = 0) -> list[tuple[int, int]]:
    """For each level, the lowest first: the score of its best nodes, and how far at the most others fall below it.

    `furthest` says by how many steps the last node of each level is behind its best. With more levels than scores
    neighbours share one, but never a level below `split` with one from there on.
    """
    for most in STEPS:
        found: list[tuple[int, int]] = []
        below = -1
        for wish, steps in zip(wishes, furthest, strict=True):
            fall = min(steps, most - 1)
            below = max(wish, below + 1 + fall)
            found.append((below, fall))
        if below <= MAX_SCORE:
            return found
    return [(top, 0) for top in _crowded(len(wishes), split)]


def _crowded(number: int, split: int) -> list[int]:
    """More levels than numbers: those below the split share up to half of them, those above it the rest."""
    low = min(split, MAX_SCORE // 2)
    above = number - split
    return [at * low // split for at in range(split)] + [
        low + at * (MAX_SCORE + 1 - low) // above for at in range(above)
    ]
