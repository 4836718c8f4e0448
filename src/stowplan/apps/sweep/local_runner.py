"""Runs in processes of this machine. One that is killed is replaced, and its run is done again."""

from __future__ import annotations

import selectors
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import ExitStack

from stowplan.apps.sweep.sweep_inputs import SweepInputs
from stowplan.apps.sweep.sweep_run import MOST_TRIES, LostRunError, RunReply, SweepRun
from stowplan.apps.sweep.worker import SweepWorker


class LocalRunner:
    """So many processes at most, each with one run at a time."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def replies(self, runs: Iterable[SweepRun], inputs: SweepInputs) -> Iterator[tuple[SweepRun, RunReply]]:
        """Yield each run with its reply, as they come. All processes are ended with it."""
        waiting, lost = deque(runs), Counter[tuple[str, ...]]()
        with ExitStack() as ending, selectors.DefaultSelector() as selector:
            for _ in range(min(self._jobs, len(waiting))):
                self._start(waiting.popleft(), inputs, selector, ending)
            while selector.get_map():
                for key, _ in selector.select():
                    worker, run = key.data
                    try:
                        reply = worker.listen()
                    except EOFError as how:
                        selector.unregister(worker)
                        lost[run.key] += 1
                        if lost[run.key] == MOST_TRIES:
                            raise LostRunError(run, str(how)) from None
                        self._start(run, inputs, selector, ending)
                        continue
                    if reply is None:
                        continue
                    if waiting:  # before the reply is looked at: nobody is idle meanwhile
                        selector.modify(worker, selectors.EVENT_READ, (worker, waiting[0]))
                        worker.ask(waiting.popleft(), inputs)
                    else:
                        selector.unregister(worker)
                    yield run, reply

    def _start(self, run: SweepRun, inputs: SweepInputs, selector: selectors.BaseSelector, ending: ExitStack) -> None:
        worker = ending.enter_context(SweepWorker())
        selector.register(worker, selectors.EVENT_READ, (worker, run))
        worker.ask(run, inputs)
