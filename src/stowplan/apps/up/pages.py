"""The pages of `stowplan ui` in `stowplan up`: of the embedded cluster, with what its scheduler reports.

They are served by threads of their own, and follow the cluster as any other client does, once somebody opens a page:
a cluster that nobody looks at costs nothing more.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stowplan.apps.logging import Log
from stowplan.apps.run.explain_page import queue_of
from stowplan.apps.run.service import SchedulerService
from stowplan.apps.run.streamed_decisions import entry_of
from stowplan.apps.ui import service
from stowplan.apps.ui.access import BrowserAccess, new_token
from stowplan.apps.ui.cluster import Policies
from stowplan.apps.ui.service import UiService
from stowplan.apps.ui.simulated_runs import SimulatedRuns
from stowplan.apps.ui.site import Site
from stowplan.engine.reports import Report
from stowplan.kube import event_loop
from stowplan.objects.pods import Pod

READ_WITHIN = 2.0  # seconds for a question to the scheduler's engine


class ClusterPages:
    """`policies` are not those of the scheduler itself: plugins belong to one engine, in one thread. `scheduler` runs
    in the loop that makes this; None if the cluster has none.
    """

    def __init__(self, policies: Policies, kubeconfig: Path, scheduler: SchedulerService | None, log: Log) -> None:
        self._kubeconfig, self._policies, self._log = kubeconfig, policies, log
        self.model = service.live_model("the cluster of stowplan up", policies, str(kubeconfig), "")
        self.access = BrowserAccess(new_token())
        self._site = Site(self.model, SimulatedRuns(), self.access, first_asked=self._follow)
        self._thread: threading.Thread | None = None
        self._loop = event_loop.new()
        self._program: UiService | None = None
        if scheduler is not None:
            self._connect(scheduler, asyncio.get_running_loop())

    @contextmanager
    def served(self) -> Iterator[str]:
        """Serve the pages; yield the address."""
        try:
            with service.serving(self._site, self.access, 0, self._log) as address:
                yield address
        finally:
            self._stop()
            self.model.close()

    def _connect(self, scheduler: SchedulerService, loop: asyncio.AbstractEventLoop) -> None:
        """Let the scheduler's reports, and its queue, come to the pages."""
        feed = self.model.feed
        feed.reporting = scheduler.loaded.profiles.keys()

        def report(found: Report) -> None:
            if (entry := entry_of(found)) is not None:
                feed.reported(entry)

        async def asked(pod: Pod) -> Mapping[str, Any] | None:
            return queue_of(scheduler.engine_loop.engine, pod.uid, time.monotonic())

        def queue(pod: Pod) -> Mapping[str, Any] | None:
            try:
                return asyncio.run_coroutine_threadsafe(asked(pod), loop).result(READ_WITHIN)
            except TimeoutError:
                return None  # the engine is busy

        scheduler.on_report = report
        self.model.queue_of = queue

    # -- following the cluster, from the first page on

    def _follow(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="pages-of-up", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        async def main() -> None:
            self._program = UiService(self.model, self._policies, str(self._kubeconfig), "", self._log)
            await self._program.main()

        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(main())

    def _stop(self) -> None:
        if self._thread is not None and self._program is not None:
            self._loop.call_soon_threadsafe(self._program.stop)
            self._thread.join(5)
        elif self._thread is None:
            self._loop.close()
