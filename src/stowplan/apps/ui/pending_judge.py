"""What would become of the pending pods, one after the other: the answers of `stowplan explain -A`.

Pods take room from those behind them, so this is done with a cluster of its own, made of the same objects, in a thread
of its own. In a large cluster that takes seconds. Then the last answers are shown, with their time, until new ones are
there; and answers are made so seldom that they take a small part of the processor.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from stowplan.apps.explain import in_order, targets
from stowplan.apps.explain.answers import Answer, not_asked
from stowplan.apps.explain.pod_explainer import PodExplainer, SearchSettings
from stowplan.apps.explain.snapshot import Snapshot
from stowplan.apps.ui import cluster
from stowplan.apps.ui.cluster import ClusterModel, ModelSource
from stowplan.objects.meta import Object

QUICK = 0.5  # seconds: answers that take no longer are awaited
SHARE = 10.0  # a pause is so many times as long as making the answers took
AFTER_A_PROBLEM = 5.0  # seconds until pods are judged again where that failed
SHORTEST_PAUSE = 1.0  # seconds


@dataclass(frozen=True)
class PendingReport:
    """`version`: that of the model. `others`: pods of schedulers whose profile is not known here, by key."""

    version: int
    answers: tuple[Answer, ...] = ()
    others: dict[str, str] = field(default_factory=dict)
    extenders_not_asked: tuple[str, ...] = ()
    made_at: float = 0.0
    took: float = 0.0


def _look_at_the_error(made: asyncio.Task[PendingReport]) -> None:
    """A page that waits for the answer tells it; where none waits, the next one that does will meet it again."""
    if not made.cancelled():
        made.exception()


class PendingJudge:
    def __init__(self, model: ClusterModel) -> None:
        self._model = model
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="pending-judge")
        self._source: ModelSource | None = None
        self._report: PendingReport | None = None
        self._making: asyncio.Task[PendingReport] | None = None
        self._again_at = 0.0

    @property
    def latest(self) -> PendingReport | None:
        return self._report

    async def report(self) -> PendingReport:
        """Return answers that are as new as they can be had quickly."""
        last = self._report
        if last is not None and last.version == self._model.version:
            return last
        if last is not None and last.took > QUICK:
            self.refresh()
            return last
        return await asyncio.shield(self._start())

    def refresh(self) -> None:
        """Make new answers soon, if something changed and the pause is over."""
        last = self._report
        if time.monotonic() < self._again_at or (last is not None and last.version == self._model.version):
            return
        self._start().add_done_callback(_look_at_the_error)

    def close(self) -> None:
        self._thread.submit(lambda: None if self._source is None else self._source.close())
        self._thread.shutdown(wait=True)

    def _start(self) -> asyncio.Task[PendingReport]:
        if self._making is None or self._making.done():
            self._making = asyncio.get_running_loop().create_task(self._make())
        return self._making

    async def _make(self) -> PendingReport:
        self._again_at = time.monotonic() + AFTER_A_PROBLEM
        version, objects = await self._model.ask(lambda model: (model.version, model.objects()))
        loop = asyncio.get_running_loop()
        made = await loop.run_in_executor(self._thread, self._judged, version, objects)
        self._report = made
        self._again_at = time.monotonic() + max(SHORTEST_PAUSE, SHARE * made.took)
        return made

    # -- in the thread

    def _judged(self, version: int, objects: Sequence[Object]) -> PendingReport:
        begun = time.monotonic()
        if self._source is None:
            self._source = self._model.open_source()
        self._source.read_again()
        policies = self._model.policies
        snapshot = Snapshot(objects, policies.profiles)
        now = self._source.now()
        schedulers, owners = cluster.parts(snapshot, self._source, policies, now)
        explainer = PodExplainer(snapshot, self._source, owners, schedulers, SearchSettings(flags=policies.flags))
        pending = targets.selected(snapshot.pods, None, "", everywhere=True)
        others = {pod.key: pod.scheduler_name for pod in pending if explainer.is_foreign(pod)}
        asked = {pod.key for pod in pending}
        answers = tuple(in_order.judged(explainer, asked).answers())
        pods = (pod for each in answers for pod in each.pods)
        extenders = tuple(not_asked(pods, policies.configuration.extenders))
        return PendingReport(version, answers, others, extenders, now, time.monotonic() - begun)
