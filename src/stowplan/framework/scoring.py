"""Arithmetic that scores share, with kube-scheduler's rounding."""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Floats, Ints

MAX_SCORE = 100
EXACT_AS_FLOAT = 2**52
FEW = 256  # up to so many numbers it is calls that cost, not divisions


def normalized(raw: Ints, *, reverse: bool = False) -> Ints:
    """Raw numbers (none below 0) as 0..100 of the largest; reversed, the largest gets 0 and all 0 become 100."""
    largest = int(raw.max(initial=0))
    if largest == 0:
        return np.full(len(raw), MAX_SCORE if reverse else 0, np.int64)
    scaled = raw * MAX_SCORE // largest
    return MAX_SCORE - scaled if reverse else scaled


def percent(part: Ints, whole: Ints) -> Ints:
    """part * 100 // whole, for parts of 0 up to the whole.

    Dividing integers costs three times what dividing floats does. Below 2**52 the quotient of floats cannot round up to
    the next integer, so truncating it is exact.
    """
    scaled = part * MAX_SCORE
    if len(whole) > FEW and int(whole.max()) < EXACT_AS_FLOAT // MAX_SCORE:
        return (scaled.astype(np.float64) / whole.astype(np.float64)).astype(np.int64)
    quotient = scaled // whole
    if len(scaled) and int(scaled.min()) < 0:
        # What does not fit into 64 bits has wrapped around, here as in Go; and Go truncates.
        quotient = np.sign(scaled) * (np.abs(scaled) // whole)
    return quotient


def rounded(numbers: Floats) -> Ints:
    """To the nearest integer, halves away from zero as Go's math.Round; the numbers must not be negative."""
    whole = np.floor(numbers)
    return (whole + (numbers - whole >= 0.5)).astype(np.int64)
