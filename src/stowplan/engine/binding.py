"""From the decision to the binding: placings that wait, pre-bind, bind; and what becomes of those that fail.

Whatever goes wrong, what the placing took is given back, and with it what those of its group took that were not sent
to be bound yet. A member whose binding is under way cannot be called back: the others are told who got through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from stowplan.engine import messages
from stowplan.engine.admission import Admission
from stowplan.engine.failing import Failing
from stowplan.engine.happenings import ASSIGNED, Happening
from stowplan.engine.outbox import Outbox
from stowplan.engine.placing import Placing, Step
from stowplan.engine.reports import Bound, Report, Waited
from stowplan.framework import extending
from stowplan.framework.settings import Extender
from stowplan.objects.actions import Ask, Nominate, Read
from stowplan.objects.changes import Result
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod


class Binding:
    def __init__(
        self,
        admission: Admission,
        failing: Failing,
        outbox: Outbox,
        vanished: Callable[[str, float], None],
        report: Callable[[Report], None],
        extenders: Sequence[Extender] = (),
    ) -> None:
        """`vanished` is called with the uid of a pod that the server turns out not to have any more."""
        self.placings: dict[str, Placing] = {}  # by the pod's uid
        self._admission, self._failing, self._outbox = admission, failing, outbox
        self._vanished, self._report, self.extenders = vanished, report, extenders

    # -- forward

    def start(self, placings: Sequence[Placing], now: float) -> Iterator[Any]:
        """Nodes were found for all of them, and all is reserved."""
        for placing in placings:
            self.placings[placing.pod.uid] = placing
        for placing in placings:
            self._activate_siblings(placing)
        for placing in placings:
            if self.placings.get(placing.pod.uid) is not placing:
                continue  # given up, because another one of its group failed
            if placing.permits:
                yield from self._wait(placing, now)
            else:
                yield from self._pre_bind(placing, now)

    def _activate_siblings(self, placing: Placing) -> None:
        if not placing.profile.activators:
            return
        try:
            self._admission.try_soon(list(placing.siblings()))
        except PluginError:
            return  # a wish that cannot be read does not stop the pod

    def _wait(self, placing: Placing, now: float) -> Iterator[Any]:
        placing.step, placing.waits_since = Step.WAITING, now
        for plugin, seconds in placing.permits.items():
            placing.awaited.add(self._outbox.remind(now + seconds, partial(self._waited, placing, plugin, seconds)))
        yield from self._announce(placing)

    def _announce(self, placing: Placing) -> Iterator[Any]:
        """Binding will take a while: the pod's status says where it is about to go, for autoscalers to read."""
        if placing.pod.nominated_node != placing.node_name and not placing.announced:
            placing.announced = True
            yield Nominate(pod=messages.ref(placing.pod), node_name=placing.node_name)

    def allow(self, uid: str, plugin: str, now: float) -> Iterator[Any]:
        """A plugin that made the pod wait lets it go on."""
        placing = self.placings.get(uid)
        if placing is None or placing.step is not Step.WAITING:
            return
        placing.permits.pop(plugin, None)
        if not placing.permits:
            self._report(Waited(now - placing.waits_since, True))
            yield from self._pre_bind(placing, now)

    def reject(self, uid: str, plugin: str, message: str, now: float) -> Iterator[Any]:
        """A plugin that made the pod wait refuses it after all."""
        placing = self.placings.get(uid)
        if placing is not None and placing.step is Step.WAITING:
            self._report(Waited(now - placing.waits_since, False))
            yield from self.give_up(placing, messages.refused((message,)), now, plugins=(plugin,))

    def _waited(self, placing: Placing, plugin: str, seconds: float, result: Result, now: float) -> Iterator[Any]:
        placing.awaited.discard(result.id)
        if plugin in placing.permits:
            yield from self.reject(placing.pod.uid, plugin, messages.waited(seconds, plugin), now)

    def _pre_bind(self, placing: Placing, now: float) -> Iterator[Any]:
        self._admission.queue.done(placing.unit)
        self._stop_waiting_for_answers(placing)
        placing.step = Step.PRE_BINDING
        try:
            actions = [self._send(placing, action, now) for action in placing.pre_bind()]
        except PluginError as error:
            yield from self.give_up(placing, str(error), now)
            return
        if not actions:
            yield from self._bind(placing, now)
            return
        yield from self._announce(placing)
        yield from actions

    def _bind(self, placing: Placing, now: float, *, by_extender: bool = True) -> Iterator[Any]:
        placing.step = Step.BINDING
        try:
            action = (self._by_extender(placing) if by_extender else None) or placing.bind()
        except PluginError as error:
            yield from self.give_up(placing, str(error), now)
            return
        if action is None:
            yield from self.give_up(placing, "no plugin wants to bind the pod", now)
        else:
            yield self._send(placing, action, now)

    def _by_extender(self, placing: Placing) -> Ask | None:
        found = extending.Consultation(self.extenders, placing.pod).binder() if self.extenders else None
        return None if found is None else msgspec.structs.replace(found[1], nodes=(placing.node_name,))

    def _send(self, placing: Placing, action: Any, now: float) -> Any:
        extender = self.extenders[action.extender] if isinstance(action, Ask) else None
        within = None if extender is None else extender.http_timeout
        sent = self._outbox.send(action, now, partial(self._answered, placing, extender), within=within)
        placing.awaited.add(sent.id)
        return sent

    # -- answers

    def _answered(self, placing: Placing, extender: Extender | None, result: Result, now: float) -> Iterator[Any]:
        """`extender`: the one that was asked to bind."""
        placing.awaited.discard(result.id)
        if extender is not None:
            wrong = extending.problem(extender, extender.bind_verb, result)
            if wrong and extender.ignorable:
                yield from self._bind(placing, now, by_extender=False)
                return
            result = Result(result.id, 500 if wrong and result.status else result.status, wrong)
        if not result.fine:
            yield from self._refused(placing, result, now)
        elif placing.step is Step.BINDING:
            yield from self._bound(placing, now)
        elif not placing.awaited:
            yield from self._bind(placing, now)

    def _bound(self, placing: Placing, now: float) -> Iterator[Any]:
        del self.placings[placing.pod.uid]
        unit = placing.unit
        unit.bound[placing.pod.uid] = placing.pod
        self._report(Bound(placing.pod.key, placing.node_name, unit.profile, unit.attempts, unit.since, unit.flushed))
        self._admission.withdraw(placing.pod.uid, now)
        yield messages.scheduled(placing.pod, placing.node_name)
        self._activate_siblings(placing)
        try:
            yield from list(placing.post_bind())
        except PluginError:
            return  # the pod is bound; what a plugin makes of that is its own affair

    def _refused(self, placing: Placing, result: Result, now: float) -> Iterator[Any]:
        """The server said no, or nothing. A pod it does not know is gone; one in doubt is read again."""
        if placing.seen_bound and not result.status:
            yield from self._bound(placing, now)
        elif placing.seen_bound:
            self.drop(placing)  # somebody else bound it, where we wanted to
        elif result.status in (404, 410) and placing.step is Step.BINDING:
            self.drop(placing)
            self._admission.withdraw(placing.pod.uid, now)
            yield self._read(placing.pod, now)
        else:
            at = "binding" if placing.step is Step.BINDING else "pre-binding"
            yield from self.give_up(placing, f"{at} rejected: {result.message}", now)
            if result.status in (0, 404, 409, 410):
                yield self._read(placing.pod, now)

    def _read(self, pod: Pod, now: float) -> Read:
        """Nobody knows what became of the pod: if it is still there, the server sends it again."""
        read: Read = self._outbox.send(Read(pod=messages.ref(pod)), now, partial(self._was_read, pod.uid))
        return read

    def _was_read(self, uid: str, result: Result, now: float) -> Iterator[Any]:
        if result.status in (404, 410):
            self._vanished(uid, now)
        return iter(())

    # -- back

    def give_up(self, placing: Placing, message: str, now: float, *, plugins: Iterable[str] = ()) -> Iterator[Any]:
        """The pod and those of its group that were not sent to be bound yet go back into the queue."""
        unit = self._admission.queue.units.get(placing.unit.key, placing.unit)
        together = self._together(placing)
        announced = any(each.announced for each in together)
        for each in together:
            self.drop(each)
            unit.pods[each.pod.uid] = each.pod
            self._admission.unit_of[each.pod.uid] = unit.key
        if unit.group:
            message = f"{message}. {messages.half_bound(unit.group, self._through(placing), unit.pods.values())}"
        yield from self._failing.back(unit, message, now, plugins=plugins, announced=announced)
        left = [Happening(ASSIGNED, "Delete", each.assumed, None) for each in together]
        self._admission.happened(left, now, besides=unit)

    def _together(self, placing: Placing) -> list[Placing]:
        return [placing, *(each for each in self._others(placing) if each.step is not Step.BINDING)]

    def _through(self, placing: Placing) -> list[Pod]:
        """The members of its group that are bound, or being bound."""
        return [*placing.unit.bound.values(), *(each.pod for each in self._others(placing))]

    def _others(self, placing: Placing) -> list[Placing]:
        if not placing.unit.group:
            return []
        return [each for each in self.placings.values() if each.unit is placing.unit and each is not placing]

    def abandon(self, placing: Placing) -> None:
        """Others settled what becomes of the pod: it does not come back, and misses nothing."""
        self.drop(placing)
        if not any(each.step is Step.WAITING for each in self._others(placing)):
            self._admission.queue.done(placing.unit)

    def drop(self, placing: Placing) -> None:
        """Forget a placing and give back all it took."""
        self.placings.pop(placing.pod.uid, None)
        self._stop_waiting_for_answers(placing)
        try:
            placing.release()
        except PluginError:
            return

    def _stop_waiting_for_answers(self, placing: Placing) -> None:
        if placing.awaited:
            self._outbox.forget(placing.awaited)
            placing.awaited.clear()
