"""What was decided lately, in a ring: bindings, failures, preemptions, and decisions about placements.

Three sources fill it: the changes of pods (whoever schedules them), the reports of a Stowplan in this process or in a
cluster (with attempts and scores), and the events that a cluster or a dump has from before.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stowplan.objects.placements import PlacementDecision
from stowplan.objects.pods import Pod

MOST = 5000
BOUND, FAILED, PREEMPTING, LOST, PLACED = "bound", "failed", "preempting", "lost", "placed"
KINDS = (BOUND, FAILED, PREEMPTING, LOST, PLACED)


@dataclass(frozen=True, slots=True)
class DecisionEntry:
    """One thing that happened. `number` grows; `at` is in seconds since 1970."""

    number: int
    at: float
    event: str
    pod: str
    node: str = ""
    message: str = ""
    scheduler: str = ""
    more: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "at": self.at,
            "event": self.event,
            "pod": self.pod,
            "node": self.node,
            "message": self.message,
            "scheduler": self.scheduler,
            **self.more,
        }


@dataclass(frozen=True)
class DecisionFilter:
    """Which entries are shown. `text`: in the names or the message; `event`: one of KINDS, or empty."""

    text: str = ""
    event: str = ""
    namespace: str = ""

    def fits(self, entry: DecisionEntry) -> bool:
        if self.event and entry.event != self.event:
            return False
        if self.namespace and entry.pod.partition("/")[0] != self.namespace:
            return False
        if not self.text:
            return True
        wanted = self.text.lower()
        return any(wanted in each.lower() for each in (entry.pod, entry.node, entry.message, entry.scheduler))


class DecisionFeed:
    """Can be filled and read from any thread."""

    def __init__(self) -> None:
        self._entries: deque[DecisionEntry] = deque(maxlen=MOST)
        self._lock = threading.Lock()
        self._number = 0
        self.reporting: Container[str] = ()  # schedulers that report themselves: changes of their pods say no more

    @property
    def last(self) -> int:
        return self._number

    def add(self, event: str, pod: str, at: float | None = None, **given: Any) -> None:
        with self._lock:
            self._number += 1
            now = time.time() if at is None else at
            self._entries.append(DecisionEntry(self._number, now, event, pod, **given))

    def since(self, number: int, chosen: DecisionFilter | None = None, most: int = 200) -> list[DecisionEntry]:
        """Return the latest entries after this number, the newest first."""
        found: list[DecisionEntry] = []
        with self._lock:
            entries = list(self._entries)
        for entry in reversed(entries):
            if entry.number <= number or len(found) == most:
                break
            if chosen is None or chosen.fits(entry):
                found.append(entry)
        return found

    def of_pod(self, key: str, most: int = 50) -> list[DecisionEntry]:
        with self._lock:
            entries = list(self._entries)
        return [each for each in reversed(entries) if each.pod == key][:most]

    def reported(self, entry: Mapping[str, Any], at: float | None = None) -> None:
        """Take in what a Stowplan says of a decision: an entry of its decision log."""
        event = entry.get("event")
        if event not in KINDS:
            return
        node, message = str(entry.get("node") or ""), str(entry.get("message") or "")
        known = {"event", "pod", "node", "message", "scheduler", "at", "number"}
        more = {name: value for name, value in entry.items() if name not in known}
        if event == PREEMPTING and not message:
            message = f"evicts {entry.get('victims', 0)} pods there"
        self.add(
            str(event), str(entry.get("pod", "")), at, node=node, message=message,
            scheduler=str(entry.get("scheduler") or ""), more=more,
        )  # fmt: skip

    def changed(self, old: Pod | None, new: Pod) -> None:
        """A pod changed: note what that says of a decision about it."""
        name = new.scheduler_name
        if name in self.reporting:
            return
        if new.node_name:
            if old is not None and not old.node_name:
                self.add(BOUND, new.key, node=new.node_name, scheduler=name)
            return
        if new.nominated_node and (old is None or old.nominated_node != new.nominated_node):
            message = "is nominated: pods there are evicted for it"
            self.add(PREEMPTING, new.key, node=new.nominated_node, message=message, scheduler=name)
        said, before = _said(new), None if old is None else _said(old)
        if said and said != before:
            self.add(FAILED, new.key, message=said, scheduler=name)

    def placed(self, old: PlacementDecision | None, new: PlacementDecision) -> None:
        """The decision about a placement changed."""
        before = set() if old is None else set(old.cluster_names)
        after = set(new.cluster_names)
        if before != after:
            gone, come = sorted(before - after), sorted(after - before)
            told = [f"+{each}" for each in come] + [f"\N{MINUS SIGN}{each}" for each in gone]
            message = f"{len(after)} clusters: {', '.join(told[:20])}" + (" …" if len(told) > 20 else "")
            self.add(PLACED, new.placement or new.key, message=message)

    def remember(self, events: Iterable[tuple[float, str, str, str, str]]) -> None:
        """Take in what happened before: time, reason of the event, pod, message, reporter. In order of time."""
        for at, reason, pod, message, by in sorted(events)[-MOST:]:
            if reason == "Scheduled":
                self.add(BOUND, pod, at, node=message.rpartition(" to ")[2].strip(), scheduler=by)
            elif reason == "FailedScheduling":
                self.add(FAILED, pod, at, message=message, scheduler=by)
            elif reason == "Preempted":
                self.add(PREEMPTING, pod, at, message=message, scheduler=by)


def _said(pod: Pod) -> str:
    condition = pod.condition("PodScheduled")
    return "" if condition is None or condition.status != "False" else condition.message
