"""The parts of a program that runs until it is told to stop: tasks that begin and end together.

No part may die unnoticed: without one of them the program would only look alive.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Any


class Tasks:
    def __init__(self, failed: Callable[[BaseException], None]) -> None:
        """`failed` is told what ended a part."""
        self.stop = asyncio.Event()
        self._failed = failed
        self._tasks: list[asyncio.Task[Any]] = []

    def begin(self, *work: Any) -> None:
        for each in work:
            task = asyncio.ensure_future(each)
            task.add_done_callback(self._ended)
            self._tasks.append(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed(error)

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def unless_stopped(self, work: Any) -> bool:
        """Do this first; whether the program is to go on."""
        waiting, stopped = asyncio.ensure_future(work), asyncio.ensure_future(self.stop.wait())
        await asyncio.wait((waiting, stopped), return_when=asyncio.FIRST_COMPLETED)
        for each in (waiting, stopped):
            each.cancel()
        return not self.stop.is_set()


def when_told_to_stop(stop: Callable[[], None]) -> None:
    """By Ctrl-C, or by whoever runs us."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
