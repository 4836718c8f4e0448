"""Plugins that misbehave over pods with the label `bad`, which says how; a scheduler loads them from this file."""

import asyncio
import sys
import time
from typing import Any

import numpy as np

from stowplan.plugin import Reject


class Moody:
    """A filter that hangs, raises or talks too much."""

    def filter(self, pod: Any, nodes: Any) -> Any:
        match pod.labels.get("bad"):
            case "loops":
                while True:
                    pass
            case "sleeps":
                time.sleep(3600)
            case "resists":
                _resist()
            case "exits":
                sys.exit(3)
            case "cancels":
                raise asyncio.CancelledError
            case "interrupts":
                raise KeyboardInterrupt
            case "ends":
                raise GeneratorExit
            case "exhausts":
                raise MemoryError
            case "talks":
                yield Reject(np.ones(len(nodes), np.bool_), "x" * 3_000_000)


class MoodySort:
    """Keys of which some cannot be compared with others, which shows at a tie of priorities only."""

    def sort_key(self, pod: Any, queued_at: float) -> Any:
        return -pod.priority, pod.labels.get("bad")


def _resist() -> None:
    while True:
        try:
            time.sleep(3600)
        except BaseException:
            continue
