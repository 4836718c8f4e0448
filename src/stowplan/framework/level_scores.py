"""Scores for nodes on levels: a node on a higher level always scores more than a node on a lower one.

Each level has a wanted score. The level gets that score if it is above all scores of the level below, else the next
number above them. The numbers between the levels rank the nodes of one level:

    wanted 0, 50, 75      level 75:  75 74 73     the best node has the wanted score, each step below it costs a point
                          level 50:  50 49
                          level  0:  0

If there are more steps than numbers, fewer steps of a level are distinguished; the levels always are.
"""

from __future__ import annotations

from collections.abc import Sequence

from stowplan.framework.scoring import MAX_SCORE

STEPS = (8, 4, 2, 1)  # how many steps of a level are distinguished: the first number that fits


def ranked(wanted: Sequence[int], furthest: Sequence[int], *, split: int = 0) -> list[tuple[int, int]]:
    """Return for each level, lowest first: the score of its best nodes, and how far its other nodes may be below that.

    `furthest`: how many steps the last node of each level is behind its best. If there are more levels than scores,
    neighbouring levels share a score, but never a level below `split` with one from `split` on.
    """
    for most in STEPS:
        found: list[tuple[int, int]] = []
        below = -1
        for score, steps in zip(wanted, furthest, strict=True):
            fall = min(steps, most - 1)
            below = max(score, below + 1 + fall)
            found.append((below, fall))
        if below <= MAX_SCORE:
            return found
    return [(top, 0) for top in _crowded(len(wanted), split)]


def _crowded(number: int, split: int) -> list[int]:
    """Return scores for more levels than numbers: half of the numbers at most are for the levels below the split."""
    low = min(split, MAX_SCORE // 2)
    above = number - split
    return [at * low // split for at in range(split)] + [
        low + at * (MAX_SCORE + 1 - low) // above for at in range(above)
    ]
