"""A leader elector in a thread of its own, so that the work of the program cannot delay a renewal."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from stowplan.kube.lease import Elector


class LeaseThread:
    """Acquires the lease from `start` on; calls `on_started` when leading begins, `on_stopped` when it ends.

    `make` and both callbacks are called in the thread, inside its event loop. The thread ends when the lease is lost:
    as with kube-scheduler, the process has to restart.
    """

    def __init__(
        self, make: Callable[[], Elector], *, on_started: Callable[[], None], on_stopped: Callable[[], None]
    ) -> None:
        self._make, self._on_started, self._on_stopped = make, on_started, on_stopped
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop_requested = asyncio.Event()
        self._failure: BaseException | None = None
        self.elector: Elector | None = None

    @property
    def leading(self) -> bool:
        return self.elector is not None and self.elector.leading

    def start(self) -> None:
        """Start the thread. Raises what `make` raises."""
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure

    def stop(self, timeout: float = 15.0) -> None:
        """Release the lease and end the thread."""
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop_requested.set)
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            asyncio.run(self._elect())
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    async def _elect(self) -> None:
        self._loop = asyncio.get_running_loop()
        elector = self.elector = self._make()
        self._ready.set()
        try:
            if await self._unless_stopped(elector.acquire()):
                self._on_started()
                await self._unless_stopped(elector.renew())
                self._on_stopped()
        finally:
            await elector.release()
            await elector.close()

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run `work` until it ends or `stop` is called. Return whether it ended."""
        task, stop = asyncio.ensure_future(work), asyncio.ensure_future(self._stop_requested.wait())
        await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
        finished = task.done()
        for each in (task, stop):
            each.cancel()
        await asyncio.gather(task, stop, return_exceptions=True)
        return finished
