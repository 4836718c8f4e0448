"""Pods whose pre-binding has begun something that others must finish: a volume is made, a claim is bound.

Their plugins are asked (`pre_bound`) when the actions have succeeded, and again only when an object changed that they
wait for: each placing is filed under those objects. Who is to be asked again is noted when it happens and asked in the
next step, however much happened by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

from stowplan.engine import messages
from stowplan.engine.binding.assumed_pod import AssumedPod
from stowplan.framework.pending_actions import PendingActions
from stowplan.framework.profile import EnabledPlugin
from stowplan.framework.verdict import NotYet, Refuse
from stowplan.objects.changes import Result
from stowplan.objects.errors import PluginError
from stowplan.objects.meta import Object

LONGEST_WAIT = 600.0  # seconds, for plugins that do not say
LATE = "context deadline exceeded"
Ref: TypeAlias = tuple[str, str]  # kind and key of an object; without a key: all of the kind


class PreBindWait:
    """One placing, the objects it waits for, and the reminders of its plugins."""

    __slots__ = ("placing", "reminders", "until")

    def __init__(self, placing: AssumedPod) -> None:
        self.placing = placing
        self.until: set[Ref] = set()
        self.reminders: dict[str, int] = {}


class PreBindWaits:
    def __init__(
        self,
        outbox: PendingActions,
        go_on: Callable[[AssumedPod, float], Iterator[Any]],
        announce: Callable[[AssumedPod], Iterator[Any]],
        give_up: Callable[[AssumedPod, str, float], Iterator[Any]],
    ) -> None:
        self._outbox, self._go_on, self._announce, self._give_up = outbox, go_on, announce, give_up
        self._waits: dict[str, PreBindWait] = {}  # by the pod's uid
        self._filed: dict[Ref, dict[str, None]] = {}  # uids by what they wait for
        self._again: dict[str, None] = {}  # uids to be asked in the next step

    @property
    def ready(self) -> bool:
        """Is there somebody to be asked again?"""
        return bool(self._again)

    @property
    def waiting(self) -> set[str]:
        """The uids of the pods that wait, including those that are to be asked again."""
        return {*self._waits, *self._again, *(uid for uids in self._filed.values() for uid in uids)}

    def changed(self, found: Object) -> None:
        """An object came, changed or went: those who wait for it are to be asked again."""
        if self._filed:
            kind = type(found).__name__
            self._again |= self._filed.get((kind, found.key), {}) | self._filed.get((kind, ""), {})

    def ask_again(self, now: float) -> Iterator[Any]:
        while self._again:
            uid = next(iter(self._again))
            del self._again[uid]
            yield from self.ask(self._waits[uid].placing, now)

    def ask(self, placing: AssumedPod, now: float) -> Iterator[Any]:
        """Is all there that the placing's pre-binding asked for? Then it goes on; else it waits, or is given up."""
        awaiting = placing.awaiting
        if not awaiting:
            yield from self._go_on(placing, now)
            return
        try:
            answers = [(bound, placing.pre_bound(bound)) for bound in awaiting]
        except PluginError as error:
            yield from self._give_up(placing, str(error), now)
            return
        wait = self._waits.get(placing.uid)
        if wait is None and all(answer is True for _, answer in answers):
            yield from self._go_on(placing, now)
            return
        wait = self._waits.setdefault(placing.uid, PreBindWait(placing))
        refused, until = self._weighed(wait, answers, now)
        if refused:
            yield from self._give_up(placing, refused, now)
        elif wait.reminders:
            self._file(wait, until)
            yield from self._announce(placing)
        else:
            self.forget(placing)
            yield from self._go_on(placing, now)

    def _weighed(
        self, wait: PreBindWait, answers: Iterable[tuple[EnabledPlugin, bool | NotYet | Refuse]], now: float
    ) -> tuple[str, set[Ref]]:
        """Why the placing must be given up, if so; else what it waits for. Who is not content has a reminder."""
        until: set[Ref] = set()
        for bound, answer in answers:
            if isinstance(answer, Refuse):
                return messages.at_pre_bind(bound.name, ", ".join(answer.reasons)), until
            if answer is True:
                self._outbox.forget([wait.reminders.pop(bound.name, 0)])
                continue
            until |= answer.until if isinstance(answer, NotYet) else {(kind, "") for kind in _awaits(bound)}
            if bound.name not in wait.reminders:
                at = now + float(getattr(bound.plugin, "pre_bind_timeout", LONGEST_WAIT))
                wait.reminders[bound.name] = self._outbox.remind(at, partial(self._late, wait, bound))
        return "", until

    def _late(self, wait: PreBindWait, bound: EnabledPlugin, result: Result, now: float) -> Iterator[Any]:  # noqa: ARG002
        late = messages.at_pre_bind(bound.name, getattr(bound.plugin, "pre_bind_late", LATE))
        yield from self._give_up(wait.placing, late, now)

    def _file(self, wait: PreBindWait, until: set[Ref]) -> None:
        uid = wait.placing.uid
        for gone in wait.until - until:
            self._filed[gone].pop(uid)
            if not self._filed[gone]:
                del self._filed[gone]
        for new in until - wait.until:
            self._filed.setdefault(new, {})[uid] = None
        wait.until = until

    def forget(self, placing: AssumedPod) -> None:
        """The placing does not wait any more, for whatever reason."""
        wait = self._waits.pop(placing.uid, None)
        if wait is not None:
            self._file(wait, set())
            self._outbox.forget(wait.reminders.values())
            self._again.pop(placing.uid, None)


def _awaits(bound: EnabledPlugin) -> tuple[str, ...]:
    return tuple(getattr(bound.plugin, "awaits", ()))
