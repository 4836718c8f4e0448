"""Reading a large cluster: what is read stays, so no collection of garbage looks at it, neither then nor later."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from stowplan.objects import garbage_collection


@contextmanager
def without_collection() -> Iterator[None]:
    """Read inside; afterwards collections leave out what was read."""
    with garbage_collection.paused():
        try:
            yield
        finally:
            gc.freeze()
