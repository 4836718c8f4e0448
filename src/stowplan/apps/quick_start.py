"""Imports without garbage collections: what is imported stays, so walking it again and again only delays the start.

A program imports some 700 modules. In CPython the collections in between take about a sixth of that time, and later
ones would walk all of it, too.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

FIRST_LISTS = (50_000, 20, 100)  # thresholds while a program reads what there is: nearly all of it stays


@contextmanager
def imports() -> Iterator[None]:
    """Collect no garbage within; what is there afterwards is never looked at again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_on:
            gc.enable()


@contextmanager
def first_lists() -> Iterator[None]:
    """Collect seldom within."""
    before = gc.get_threshold()
    gc.set_threshold(*FIRST_LISTS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
