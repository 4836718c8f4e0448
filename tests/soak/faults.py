"""One fault each minute: the wire misbehaves for some seconds, the API server or one of our programs is killed, or the
configuration becomes rubbish for a while.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

from tests.attacks.proxy import Proxy
from tests.controlplane.plane import ControlPlane
from tests.soak.programs import Programs

EVERY = 60.0  # seconds
LASTS = 7.0  # seconds: less than a leader may need to renew its lease
WIRE = ("html", "retry-after-a-day", "lose-answers", "reset", "garble", "503", "410", "truncate", "delay", "blackhole")
LAST_KILL_OF_OURS = 1 / 3  # of the whole time; afterwards they live on, so that their memory says something


class Faults(threading.Thread):
    def __init__(self, plane: ControlPlane, proxy: Proxy, programs: Programs, seconds: float) -> None:
        super().__init__(name="faults", daemon=True)
        self._plane, self._proxy, self._programs = plane, proxy, programs
        self._seconds, self._ended = seconds, threading.Event()
        self.done: Counter[str] = Counter()
        self.now = ""

    def end(self) -> None:
        self._ended.set()

    def run(self) -> None:
        start, number = time.monotonic(), 0
        while not self._ended.wait(EVERY - (time.monotonic() - start) % EVERY):
            name, fault = self._choose(number, (time.monotonic() - start) / self._seconds)
            self.now = name
            fault()
            self.done[name] += 1
            self.now = ""
            number += 1

    def _choose(self, number: int, part: float) -> tuple[str, Callable[[], None]]:
        """Wire faults by turns; every third time something harder."""
        if number % 3 != 2:
            mode = WIRE[(number - number // 3) % len(WIRE)]
            return f"wire: {mode}", lambda: self._wire(mode)
        hard: list[tuple[str, Callable[[], None]]] = [
            ("kill -9 of the API server", self._plane.restart_apiserver),
            ("a configuration that is no YAML", self._spoil_configuration),
        ]
        if part < LAST_KILL_OF_OURS:
            hard = [
                ("kill -9 of the leader", lambda: self._programs.kill(self._programs.leader() or "scheduler-1")),
                ("kill -9 of place", lambda: self._programs.kill("place")),
                *hard,
            ]
        return hard[(number // 3) % len(hard)]

    def _wire(self, mode: str) -> None:
        self._proxy.mode = mode
        self._ended.wait(LASTS)
        self._proxy.mode = "fine"

    def _spoil_configuration(self) -> None:
        good = self._programs.configuration.read_bytes()
        self._programs.configuration.write_bytes(b"a: &a [1, 2]\nprofiles: [*a, {1: \xff")
        self._ended.wait(LASTS)
        self._programs.configuration.write_bytes(good)
