"""Arithmetic for scores, with kube-scheduler's rounding."""

from __future__ import annotations

import numpy as np

from stowplan.columns.arrays import Floats, Ints

MAX_SCORE = 100
EXACT_AS_FLOAT = 2**52
FEW = 256  # with fewer numbers the calls cost more than the divisions


def normalized(raw: Ints, *, reverse: bool = False) -> Ints:
    """Return raw numbers (none below 0) as 0..100 of the largest. Reversed, the largest gets 0, and 0 gets 100."""
    largest = int(raw.max(initial=0))
    if largest == 0:
        return np.full(len(raw), MAX_SCORE if reverse else 0, np.int64)
    scaled = raw * MAX_SCORE // largest
    return MAX_SCORE - scaled if reverse else scaled


def percent(part: Ints, whole: Ints) -> Ints:
    """Return part * 100 // whole, for parts from 0 to the whole.

    A division of integers costs three times as much as one of floats. Below 2**52 the quotient of floats cannot round
    up to the next integer, so truncating it is exact.
    """
    scaled = part * MAX_SCORE
    if len(whole) > FEW and int(whole.max()) < EXACT_AS_FLOAT // MAX_SCORE:
        return (scaled.astype(np.float64) / whole.astype(np.float64)).astype(np.int64)
    quotient = scaled // whole
    if len(scaled) and int(scaled.min()) < 0:
        # Numbers that do not fit into 64 bits wrapped around, as in Go; and Go truncates.
        quotient = np.sign(scaled) * (np.abs(scaled) // whole)
    return quotient


def percent_of_one(part: int, whole: int) -> int:
    """The same for one pair of numbers."""
    scaled = int64(part * MAX_SCORE)
    return scaled // whole if scaled >= 0 else -(-scaled // whole)


def int64(number: int) -> int:
    """Return the number in 64 bits: it wraps around if it does not fit, as in Go."""
    if -(1 << 63) <= number < 1 << 63:
        return number
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def rounded(numbers: Floats) -> Ints:
    """Round to the nearest integer, halves up, as Go's math.Round does for numbers from 0."""
    whole = np.floor(numbers)
    return (whole + (numbers - whole >= 0.5)).astype(np.int64)
