"""The process that does runs: `python -P -m stowplan.apps.sweep.worker_process`. A request is a line, a reply, too.

It ends with its standard input. So it ends at once if who asks is killed, also in the middle of a run: no process is
left behind that nobody waits for. What a run prints goes to standard error.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec

from stowplan.apps.sweep.sweep_inputs import SweepInputs
from stowplan.apps.sweep.sweep_run import RunAnswer, RunReply, SweepRun
from stowplan.objects.errors import ConfigError, StowplanError


class RunRequest(msgspec.Struct, frozen=True):
    """A run, and what it depends on."""

    run: SweepRun
    inputs: SweepInputs


def main() -> None:
    """Do runs until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who asks
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    while True:
        reply = replied(msgspec.json.decode(requests.get(), type=RunRequest))
        try:
            replies.write(msgspec.json.encode(reply) + b"\n")
            replies.flush()
        except BrokenPipeError:
            os._exit(1)


def _listen(requests: SimpleQueue[bytes]) -> None:
    for line in sys.stdin.buffer:
        requests.put(line)
    os._exit(0)


def replied(request: RunRequest) -> RunReply:
    """Do a run. Whatever goes wrong is part of the reply."""
    try:
        _change_folder(request.inputs.folder)
        request.inputs.check()
        sys.path.extend(str(Path(each).resolve()) for each in request.inputs.python_path)
        begin = time.perf_counter()
        value = _function(request.run.function)(**request.run.arguments)
        return RunReply(RunAnswer(value, round(time.perf_counter() - begin, 3)))
    except StowplanError as error:
        return RunReply(problem=str(error))
    except Exception:
        return RunReply(traceback=traceback.format_exc())


def _change_folder(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as error:
        raise ConfigError(f"is no folder here: {error.strerror}", file=folder) from None


def _function(name: str) -> Any:
    module, _, found = name.partition(":")
    return getattr(importlib.import_module(module), found)


if __name__ == "__main__":
    main()
