"""Assumed pods whose pre-bind actions must take effect first: a volume is provisioned, a claim is bound.

Their plugins are asked (`pre_bound`) when the actions have succeeded, and again when an object changed that they wait
for. Each pod is filed under those objects. A change only notes which pods to ask again; the next step asks them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from stowplan.engine import messages
from stowplan.engine.binding.assumed_pod import AssumedPod
from stowplan.framework.decision import NotYet, RejectPod
from stowplan.framework.interfaces import PreBoundPlugin
from stowplan.framework.plugin_calls import raised, seconds_of
from stowplan.framework.profile import EnabledPlugin
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import Object

LONGEST_WAIT = 600.0  # seconds, for plugins that do not say
LATE = "context deadline exceeded"
Ref: TypeAlias = tuple[str, str]  # kind and key of an object; without a key: all objects of the kind


class PreBindWait:
    """One assumed pod, the objects it waits for, and the reminders of its plugins."""

    __slots__ = ("assumed_pod", "reminders", "until")

    def __init__(self, assumed_pod: AssumedPod) -> None:
        self.assumed_pod = assumed_pod
        self.until: set[Ref] = set()
        self.reminders: dict[str, int] = {}  # by plugin


@dataclass(frozen=True, slots=True)
class PreBindStatus:
    """Whether a pod can be bound now, must wait, or never will be (`failure`).

    `deadlines`: plugins that made it wait just now, with the time until which, and what is wrong after that.
    `obsolete`: numbers of reminders that are not needed any more.
    """

    ready: bool = False
    failure: str = ""
    deadlines: tuple[tuple[str, float, str], ...] = ()
    obsolete: tuple[int, ...] = field(default=())


READY = PreBindStatus(ready=True)


class PreBindWaits:
    def __init__(self) -> None:
        self._waits: dict[str, PreBindWait] = {}  # by the pod's uid
        self._filed: dict[Ref, dict[str, None]] = {}  # uids by what they wait for
        self.to_ask: dict[str, None] = {}  # uids to ask in the next step

    @property
    def waiting(self) -> dict[str, set[Ref]]:
        """What each pod waits for, by its uid."""
        return {uid: set(wait.until) for uid, wait in self._waits.items()}

    def object_changed(self, found: Object) -> None:
        """An object was added, changed or deleted: the pods that wait for it are asked again."""
        if self._filed:
            kind = type(found).__name__
            self.to_ask |= self._filed.get((kind, found.key), {}) | self._filed.get((kind, ""), {})

    def next_to_ask(self) -> AssumedPod:
        uid = next(iter(self.to_ask))
        del self.to_ask[uid]
        return self._waits[uid].assumed_pod

    def check(self, assumed_pod: AssumedPod, now: float) -> PreBindStatus:
        """Ask the plugins whether the pod's pre-bind actions took effect."""
        waiters = assumed_pod.pre_bind_waiters
        if not waiters:
            return READY
        try:
            answers = [(enabled, assumed_pod.pre_bound(enabled)) for enabled in waiters]
        except PluginError as error:
            return PreBindStatus(failure=str(error))
        wait = self._waits.get(assumed_pod.uid)
        if wait is None and all(answer is True for _, answer in answers):
            return READY
        wait = self._waits.setdefault(assumed_pod.uid, PreBindWait(assumed_pod))
        try:
            return self._weigh(wait, answers, now)
        except PluginError as error:
            return PreBindStatus(failure=str(error))

    def _weigh(
        self,
        wait: PreBindWait,
        answers: Iterable[tuple[EnabledPlugin[PreBoundPlugin], bool | NotYet | RejectPod]],
        now: float,
    ) -> PreBindStatus:
        until: set[Ref] = set()
        deadlines: list[tuple[str, float, str]] = []
        obsolete: list[int] = []
        for enabled, answer in answers:
            if isinstance(answer, RejectPod):
                failure = messages.at_pre_bind(enabled.name, ", ".join(answer.reasons))
                return PreBindStatus(failure=failure, deadlines=tuple(deadlines), obsolete=tuple(obsolete))
            if answer is True:
                obsolete.append(wait.reminders.pop(enabled.name, 0))
                continue
            until |= answer.until if isinstance(answer, NotYet) else {(kind, "") for kind in _awaits(enabled)}
            if enabled.name not in wait.reminders:
                within = seconds_of(enabled, "pre_bind_timeout", None)
                at = now + (LONGEST_WAIT if within is None else within)
                wait.reminders[enabled.name] = 0
                late = messages.at_pre_bind(enabled.name, getattr(enabled.plugin, "pre_bind_late", LATE))
                deadlines.append((enabled.name, at, late))
        if not wait.reminders:
            self._remove(wait)
            return PreBindStatus(ready=True, obsolete=tuple(obsolete))
        self._file(wait, until)
        return PreBindStatus(deadlines=tuple(deadlines), obsolete=tuple(obsolete))

    def set_reminder(self, assumed_pod: AssumedPod, plugin: str, number: int) -> None:
        self._waits[assumed_pod.uid].reminders[plugin] = number

    def _file(self, wait: PreBindWait, until: set[Ref]) -> None:
        uid = wait.assumed_pod.uid
        for gone in wait.until - until:
            self._filed[gone].pop(uid)
            if not self._filed[gone]:
                del self._filed[gone]
        for new in until - wait.until:
            self._filed.setdefault(new, {})[uid] = None
        wait.until = until

    def forget(self, assumed_pod: AssumedPod) -> Iterable[int]:
        """The pod does not wait any more. Return the numbers of its reminders."""
        wait = self._waits.get(assumed_pod.uid)
        if wait is None:
            return ()
        self._remove(wait)
        return wait.reminders.values()

    def _remove(self, wait: PreBindWait) -> None:
        del self._waits[wait.assumed_pod.uid]
        self._file(wait, set())
        self.to_ask.pop(wait.assumed_pod.uid, None)


def _awaits(enabled: EnabledPlugin[PreBoundPlugin]) -> tuple[str, ...]:
    try:
        return tuple(getattr(enabled.plugin, "awaits", ()))
    except BaseException as error:
        raise raised(enabled, "awaits", error) from error
