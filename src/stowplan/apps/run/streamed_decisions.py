"""/debug/decisions: what the scheduler decides, as it happens, a line of JSON for each decision.

    the engine's loop: a report is appended ─► ring ─► the server's loop: made a line once, sent to each client

The engine only appends: a line is made when somebody reads it. A client gets the decisions about pods in namespaces
whose pods it may list. It is told how many namespaces are left out, and not which.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable

import msgspec

from stowplan.apps.run import decision_entries
from stowplan.engine import reports
from stowplan.engine.reports import Report
from stowplan.objects.texts import shortened

MOST = 2000  # reports that are remembered
EVERY = 0.25  # seconds between two looks for new ones
SILENCE = 15.0  # seconds after which an empty line says that the connection stands
ASKED_AGAIN = 60.0  # seconds after which a right is asked for again

MayList = Callable[[str], Awaitable[bool]]  # the pods of a namespace
_KINDS = (reports.PodBound, reports.AttemptFailed, reports.PreemptionStarted, reports.BindingUnconfirmed)


class DecisionStream:
    def __init__(self) -> None:
        self._reports: deque[tuple[int, float, Report]] = deque(maxlen=MOST)
        self._number = 0
        self._lines: deque[tuple[int, str, bytes]] = deque(maxlen=MOST)  # number, namespace, line
        self._made = 0

    def report(self, report: Report) -> None:
        """Remember a report. In the engine's loop."""
        if isinstance(report, _KINDS):
            self._number += 1
            self._reports.append((self._number, time.time(), report))

    async def follow(self, may_list: MayList) -> AsyncGenerator[bytes, None]:
        """Yield lines for a client, those about the latest decisions first of all. In the server's loop."""
        sent, told, spoken = 0, -1, time.monotonic()
        rights: dict[str, tuple[float, bool]] = {}
        while True:
            found: list[bytes] = []
            for number, namespace, line in self._since(sent):
                sent = number
                if await self._allowed(namespace, rights, may_list):
                    found.append(line)
            left_out = sum(not allowed for _, allowed in rights.values())
            if left_out != told:
                told = left_out
                found.append(msgspec.json.encode({"event": "leftOut", "namespaces": left_out}) + b"\n")
            if found or time.monotonic() - spoken > SILENCE:
                spoken = time.monotonic()
                yield b"".join(found) or b"\n"
            await asyncio.sleep(EVERY)

    @staticmethod
    async def _allowed(namespace: str, rights: dict[str, tuple[float, bool]], may_list: MayList) -> bool:
        at, allowed = rights.get(namespace, (float("-inf"), False))
        if time.monotonic() - at > ASKED_AGAIN:
            allowed = await may_list(namespace)
            rights[namespace] = time.monotonic(), allowed
        return allowed

    def _since(self, sent: int) -> list[tuple[int, str, bytes]]:
        """Return the lines after this number; lines that nobody asked for yet are made now."""
        if self._made < self._number:
            for number, at, report in list(self._reports):
                if number > self._made:
                    self._made = number
                    pod, line = _line(at, report)
                    self._lines.append((number, pod.partition("/")[0], line))
        if not self._lines or self._lines[-1][0] <= sent:
            return []
        return [each for each in self._lines if each[0] > sent]


def entry_of(report: Report) -> decision_entries.Entry | None:
    """Return what is told of a report: as in the decision log, and of attempts that found no node, too."""
    if isinstance(report, reports.AttemptFailed):
        said = shortened(report.message)
        return {"event": "failed", "pod": report.pod, "scheduler": report.profile, "message": said}
    return decision_entries.reported(report)


def _line(at: float, report: Report) -> tuple[str, bytes]:
    entry = entry_of(report) or {}
    return str(entry.get("pod", "")), msgspec.json.encode({"at": round(at, 3), **entry}) + b"\n"
