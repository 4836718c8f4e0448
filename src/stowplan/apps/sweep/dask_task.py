"""What a worker of a Dask cluster does: it starts a process for the run, as this machine would, and waits for it.

The files of the sweep come along, for a machine that does not have them at the same place. A run finds what it would
find here: no module of another sweep, no other thread. If the Dask worker is killed, the process ends, too.
"""

from __future__ import annotations

import msgspec

from stowplan.apps.sweep import shipped_files
from stowplan.apps.sweep.sweep_run import RunReply
from stowplan.apps.sweep.worker import SweepWorker
from stowplan.apps.sweep.worker_process import RunRequest


class LostProcessError(Exception):
    """The process of a run was killed."""


def brought(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files of the sweep. As a task, they are sent once to each worker, and again if a worker is lost."""
    return files


def replied(request: bytes, files: dict[str, bytes]) -> bytes:
    """Do a run in a process of its own. Raises LostProcessError if that is killed."""
    asked = msgspec.json.decode(request, type=RunRequest)
    with shipped_files.placed(asked.inputs, files) as inputs, SweepWorker() as worker:
        worker.ask(asked.run, inputs)
        reply: RunReply | None = None
        while reply is None:
            try:
                reply = worker.listen()
            except EOFError as how:
                raise LostProcessError(str(how)) from None
    return msgspec.json.encode(reply)
