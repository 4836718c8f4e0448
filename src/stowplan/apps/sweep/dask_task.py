"""What a worker of a Dask cluster does: it starts a process for the run, as this machine would, and waits for it.

So a run finds what it would find here: no module of another sweep, no other thread. If the Dask worker is killed, the
process ends, too.
"""

from __future__ import annotations

import msgspec

from stowplan.apps.sweep.sweep_run import RunReply
from stowplan.apps.sweep.worker import SweepWorker
from stowplan.apps.sweep.worker_process import RunRequest


class LostProcessError(Exception):
    """The process of a run was killed."""


def replied(request: bytes) -> bytes:
    """Do a run in a process of its own. Raises LostProcessError if that is killed."""
    asked = msgspec.json.decode(request, type=RunRequest)
    with SweepWorker() as worker:
        worker.ask(asked.run, asked.inputs)
        reply: RunReply | None = None
        while reply is None:
            try:
                reply = worker.listen()
            except EOFError as how:
                raise LostProcessError(str(how)) from None
    return msgspec.json.encode(reply)
