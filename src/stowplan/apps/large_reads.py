"""Reading a large cluster without looking for garbage all the time: what is read stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """Read inside; afterwards collections leave out what was read."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
