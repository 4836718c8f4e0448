"""Student's t distribution: how likely a mean of few differences is if there is no difference at all.

Degrees of freedom are whole numbers here (pairs of runs, less one), and for these the distribution is a finite sum
(Abramowitz and Stegun, 26.7.3 and 26.7.4). So no library is needed.
"""

from __future__ import annotations

import math


def two_sided(t: float, freedom: int) -> float:
    """Return the probability of a value that is at least as far from 0 as `t`."""
    if math.isinf(t):
        return 0.0
    angle = math.atan(abs(t) / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    term, total = (cosine, 0.0) if freedom % 2 else (1.0, 0.0)
    for step in range(1 + freedom % 2, freedom, 2):
        total += term
        term *= cosine * cosine * step / (step + 1)
    within = (angle + sine * total) * 2 / math.pi if freedom % 2 else sine * total
    return min(max(1 - within, 0.0), 1.0)


def quantile(outside: float, freedom: int) -> float:
    """Return the t beyond which, on both sides together, `outside` of the distribution lies: 0.05 for 95 %."""
    low, high = 0.0, 1.0
    while two_sided(high, freedom) > outside:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        if two_sided(middle, freedom) > outside:
            low = middle
        else:
            high = middle
    return high
