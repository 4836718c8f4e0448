"""No garbage is collected while the frames of another thread are read.

What happens otherwise takes a while to show: two event loops with connections that break, threads that start, and a
look twenty times a millisecond hang within 20 seconds on CPython 3.11.7, in `sys._current_frames`.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from types import FrameType

import pytest

from stowplan.apps.thread_frames import no_collection


@pytest.fixture
def eager_collector() -> Iterator[list[int]]:
    """A collection after each few objects; the threads in which there was one."""
    threads: list[int] = []

    def note(phase: str, _: dict[str, int]) -> None:
        threads.append(threading.get_ident())

    before = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(1, 10, 10)
    yield threads
    gc.set_threshold(*before)
    gc.callbacks.remove(note)


def read_frames(main: int) -> list[FrameType]:
    found, top = [], sys._current_frames().get(main)
    while top is not None:
        found.append(top)
        top = top.f_back
    return found


@pytest.mark.parametrize("guarded", [True, False])
def test_reading_frames_starts_no_collection(guarded: bool, eager_collector: list[int]) -> None:
    main, found = threading.get_ident(), list[bool]()

    def look() -> None:
        me = threading.get_ident()
        with no_collection() if guarded else nullcontext():
            before = eager_collector.count(me)
            assert read_frames(main)
            found.append(eager_collector.count(me) > before)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [not guarded]  # without it there is one: the test would see it


@pytest.mark.parametrize("enabled", [True, False])
def test_collections_are_enabled_afterwards_if_they_were_before(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    try:
        with pytest.raises(ValueError, match="left"), no_collection():
            assert not gc.isenabled()
            raise ValueError("left")
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
