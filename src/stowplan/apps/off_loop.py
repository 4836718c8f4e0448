"""Work that must not hold up the event loop: it runs in a thread of its own, for a limited time.

The thread is a daemon. Python cannot end a thread from outside: work that does not end goes on after its time, and
takes its share of the interpreter, but nobody waits for it, not even the end of the program.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def off_loop(work: Callable[[], T], within: float) -> T:
    """Return the result of the work, or raise what it raises. Raises TimeoutError after `within` seconds."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Callable[[], T]] = loop.create_future()

    def run() -> None:
        ended = _ended(work)
        try:
            loop.call_soon_threadsafe(_set, outcome, ended)
        except RuntimeError:  # the loop is closed: the program has ended meanwhile
            return

    threading.Thread(target=run, name="off-loop", daemon=True).start()
    async with asyncio.timeout(within):
        return (await outcome)()


def _ended(work: Callable[[], T]) -> Callable[[], T]:
    """Do the work. Return what gives its result, or raises its error."""
    try:
        result = work()
    except BaseException as raised:  # whatever it is, it must not end with the thread
        error = raised

        def fail() -> T:
            if isinstance(error, Exception):
                raise error
            raise RuntimeError(f"{type(error).__name__}: {error}") from error

        return fail
    return lambda: result


def _set(outcome: asyncio.Future[Callable[[], T]], ended: Callable[[], T]) -> None:
    if not outcome.done():
        outcome.set_result(ended)
