"""From the decision to the binding: placings that wait, pre-bind, bind, and are seen bound.

No member of a group is sent to be bound before all who were placed with it may be (`Party`): up to there everything can
be given back (`recall`). A pod is on its way until the server shows it bound: its answer may be there before the watch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from stowplan.engine import messages
from stowplan.engine.binding.assumed_pod import AssumedPod, BindStep, BindTogether, assumed
from stowplan.engine.binding.failure import FailureHandler
from stowplan.engine.binding.prebind_waits import PreBindWaits
from stowplan.engine.binding.rollback import Rollback
from stowplan.engine.queue.admission import Admission
from stowplan.engine.reports import GroupTimedOut, PermitWaited, PodBound, Report
from stowplan.framework import extenders as extending
from stowplan.framework.config.settings import Extender
from stowplan.framework.pending_actions import PendingActions
from stowplan.objects.actions import Ask, Nominate, Read
from stowplan.objects.changes import Result
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod


class Binding:
    def __init__(
        self,
        admission: Admission,
        failing: FailureHandler,
        outbox: PendingActions,
        vanished: Callable[[str, float], Iterator[Any]],
        report: Callable[[Report], None],
        extenders: Sequence[Extender] = (),
    ) -> None:
        """`vanished` is called with the uid of a pod that the server turns out not to have any more."""
        self._admission, self._outbox = admission, outbox
        self._vanished, self._report, self.extenders = vanished, report, extenders
        self.recall = Rollback(admission, failing, outbox)
        self.placings, self.give_up = self.recall.placings, self.recall.give_up
        self.awaiting = self.recall.awaiting = PreBindWaits(outbox, self._bind, self._announce, self.give_up)
        self._parties: dict[str, BindTogether] = {}  # by group

    # -- forward

    def take(self, placings: Sequence[AssumedPod], now: float) -> None:
        """Nodes were found for all of them, and all is reserved."""
        for placing in placings:
            self.recall.add(placing)
            if placing.unit.group:
                self._gather(placing, now)

    def start(self, placings: Sequence[AssumedPod], now: float) -> Iterator[Any]:
        """Those that were taken go on."""
        for placing in placings:
            if placing.profile.activators:
                self._activate_siblings(placing)
        for placing in placings:
            if self.placings.get(placing.uid) is not placing:
                continue  # given up, because another one of its group failed
            if placing.permits:
                yield from self._wait(placing, now)
            else:
                yield from self._pre_bind(placing, now)

    def _gather(self, placing: AssumedPod, now: float) -> None:
        """With the others of its group that are not bound yet; if they are not all ready in time, none goes on."""
        group = placing.unit.group
        self._admission.groups.given_a_node(placing.uid)
        party = self._parties.get(group)
        if party is None or not len(party):
            self._outbox.forget([0 if party is None else party.reminder])
            party = self._parties[group] = BindTogether()
            within = self._admission.timeout(group)
            party.reminder = self._outbox.remind(now + within, partial(self._too_late, party, group, within))
        party.join(placing)

    def _too_late(self, party: BindTogether, group: str, within: float, result: Result, now: float) -> Iterator[Any]:  # noqa: ARG002
        waiting = party.waiting
        if self._parties.get(group) is party and waiting:
            late = f"{len(waiting)} of its pods were not ready to be bound after {messages.duration(within)}"
            self._report(GroupTimedOut(group, within))
            yield from self.give_up(waiting[0], f"pod group {group} timed out: {late}", now)

    def _activate_siblings(self, placing: AssumedPod) -> None:
        try:
            self._admission.try_soon(placing.siblings())
        except PluginError:
            return  # a wish that cannot be read does not stop the pod

    def _wait(self, placing: AssumedPod, now: float) -> Iterator[Any]:
        placing.step, placing.waits_since = BindStep.WAITING, now
        for plugin, seconds in placing.permits.items():
            placing.awaited.add(self._outbox.remind(now + seconds, partial(self._waited, placing, plugin, seconds)))
        yield from self._announce(placing)

    def _announce(self, placing: AssumedPod) -> Iterator[Any]:
        """Binding will take a while: the pod's status says where it is about to go, for autoscalers to read."""
        if placing.pod.nominated_node != placing.node_name and not placing.announced:
            placing.announced = True
            yield Nominate(pod=messages.ref(placing.pod), node_name=placing.node_name)

    def allow(self, uid: str, plugin: str, now: float) -> Iterator[Any]:
        """A plugin that made the pod wait lets it go on."""
        placing = self.placings.get(uid)
        if placing is None or placing.step is not BindStep.WAITING:
            return
        placing.permits.pop(plugin, None)
        if not placing.permits:
            self._report(PermitWaited(now - placing.waits_since, True, placing.pod.key))
            yield from self._pre_bind(placing, now)

    def reject(self, uid: str, plugin: str, message: str, now: float) -> Iterator[Any]:
        """A plugin that made the pod wait refuses it after all."""
        placing = self.placings.get(uid)
        if placing is not None and placing.step is BindStep.WAITING:
            self._report(PermitWaited(now - placing.waits_since, False, placing.pod.key))
            yield from self.give_up(placing, messages.refused((message,)), now, plugins=(plugin,))

    def _waited(self, placing: AssumedPod, plugin: str, seconds: float, result: Result, now: float) -> Iterator[Any]:
        placing.awaited.discard(result.id)
        if plugin in placing.permits:
            yield from self.reject(placing.uid, plugin, messages.waited(seconds, plugin), now)

    def _pre_bind(self, placing: AssumedPod, now: float) -> Iterator[Any]:
        self._admission.queue.done(placing.unit)
        self.recall.stop_waiting_for_answers(placing)
        placing.step = BindStep.PRE_BINDING
        try:
            wanted = list(placing.pre_bind())
        except PluginError as error:
            yield from self.give_up(placing, str(error), now)
            return
        if not wanted:
            yield from self.awaiting.ask(placing, now)
            return
        actions = [self._send(placing, action, now, plugin) for plugin, action in wanted]
        if not placing.profile.quick.issuperset(plugin for plugin, _ in wanted):
            yield from self._announce(placing)
        yield from actions

    def _bind(self, placing: AssumedPod, now: float) -> Iterator[Any]:
        """Ready to be bound: at once, or with the last of its group to be ready."""
        if placing.party is None:
            yield from self._bind_all([placing], now)
        elif placing.party.is_ready(placing):
            yield from self._party_is_ready(placing.unit.group, now)

    def _party_is_ready(self, group: str, now: float) -> Iterator[Any]:
        party = self._parties.pop(group)
        self._outbox.forget([party.reminder])
        yield from self._bind_all(party.disband(), now)

    def _bind_all(self, placings: Sequence[AssumedPod], now: float, *, by_extender: bool = True) -> Iterator[Any]:
        """All the plugins' answers first, then what they want done: nobody is bound if one cannot be."""
        wanted: list[tuple[AssumedPod, Any]] = []
        for placing in placings:
            try:
                action = (self._by_extender(placing) if by_extender else None) or placing.bind()
            except PluginError as error:
                yield from self.give_up(placing, str(error), now)
                return
            if action is None:
                yield from self.give_up(placing, "no plugin wants to bind the pod", now)
                return
            wanted.append((placing, action))
        for placing, action in wanted:
            placing.step = BindStep.BINDING
            self.recall.no_longer_recallable(placing)
            yield self._send(placing, action, now)

    def _by_extender(self, placing: AssumedPod) -> Ask | None:
        found = extending.Consultation(self.extenders, placing.pod).binder() if self.extenders else None
        return None if found is None else msgspec.structs.replace(found[1], nodes=(placing.node_name,))

    def _send(self, placing: AssumedPod, action: Any, now: float, plugin: str = "") -> Any:
        extender = self.extenders[action.extender] if isinstance(action, Ask) else None
        within = None if extender is None else extender.http_timeout
        sent = self._outbox.send(action, now, partial(self._answered, placing, extender, plugin), within=within)
        placing.awaited.add(sent.id)
        return sent

    # -- answers

    def _answered(
        self, placing: AssumedPod, extender: Extender | None, plugin: str, result: Result, now: float
    ) -> Iterator[Any]:
        """`extender`: the one that was asked to bind; `plugin`: the one whose pre-binding this is."""
        placing.awaited.discard(result.id)
        if extender is not None:
            wrong = extending.problem(extender, extender.bind_verb, result)
            if wrong and extender.ignorable:
                yield from self._bind_all([placing], now, by_extender=False)
                return
            result = Result(result.id, 500 if wrong and result.status else result.status, wrong)
        if not result.fine:
            yield from self._refused(placing, result, now, plugin)
        elif placing.step is BindStep.BINDING:
            yield from self._bound(placing, now)
        elif not placing.awaited:
            yield from self.awaiting.ask(placing, now)

    def _bound(self, placing: AssumedPod, now: float) -> Iterator[Any]:
        """The pod is bound; until the server's watch says so, too, what it says of the pod is old news."""
        placing.step = BindStep.BOUND
        if placing.seen_bound:
            self.recall.remove(placing)
        placing.state.assumed.finish(placing.uid)
        unit = placing.unit
        about = (unit.profile, unit.attempts, unit.since, unit.flushed, unit.group)
        self._report(PodBound(placing.pod.key, placing.node_name, *about))
        self._admission.withdraw(placing.uid, now)
        yield messages.scheduled(placing.pod, placing.node_name)
        self._activate_siblings(placing)
        try:
            yield from placing.post_bind()
        except PluginError:
            return  # the pod is bound; what a plugin makes of that is its own affair

    def _refused(self, placing: AssumedPod, result: Result, now: float, plugin: str) -> Iterator[Any]:
        """The server said no, or nothing. Where it is in doubt what became of the pod, it is read again."""
        if placing.seen_bound and not result.status:
            yield from self._bound(placing, now)
        elif placing.seen_bound:
            self.recall.drop(placing)  # somebody else bound it, where we wanted to
        else:
            rejected = f"binding rejected: {result.message}"
            message = rejected if placing.step is BindStep.BINDING else messages.at_pre_bind(plugin, result.message)
            yield from self.give_up(placing, message, now)
            if result.status in (0, 404, 409, 410):
                yield self._read(placing.pod, now)

    def _read(self, pod: Pod, now: float) -> Read:
        """Nobody knows what became of the pod: if it is still there, the server sends it again."""
        read: Read = self._outbox.send(Read(pod=messages.ref(pod)), now, partial(self._was_read, pod.uid))
        return read

    def _was_read(self, uid: str, result: Result, now: float) -> Iterator[Any]:
        return self._vanished(uid, now) if result.status in (404, 410) else iter(())

    # -- what the server says about a pod on its way

    def as_bound(self, pod: Pod) -> Pod:
        """A pod as it went. A list may skip the version that has the node, although we know that it was bound there."""
        placing = self.placings.get(pod.uid)
        known = placing is not None and (placing.step is BindStep.BOUND or placing.seen_bound)
        return assumed(pod, placing.node_name) if placing is not None and known else pod

    def heard(self, pod: Pod, out: bool, now: float) -> Iterator[Any]:
        """It may settle where the pod goes; and what becomes of its group, if too few of it are left."""
        placing = self.placings.get(pod.uid)
        if placing is None:
            return
        there = pod.node_name == placing.node_name
        if there and not out and not pod.terminating and placing.step is BindStep.BINDING:
            placing.seen_bound = True
        elif there and not out and placing.step is BindStep.BOUND:
            self.recall.remove(placing)
        elif out or pod.node_name or (pod.terminating and placing.step is not BindStep.BOUND):
            yield from self._lost(placing, now, leaves=not there or out)

    def _lost(self, placing: AssumedPod, now: float, *, leaves: bool) -> Iterator[Any]:
        party, others = placing.party, self.recall.others(placing)
        self.recall.abandon(placing, now)
        if leaves:
            self._admission.happened([placing.leaving], now)
        if party is None or not others:
            return
        if self._admission.lacks(placing.unit.group):
            yield from self.give_up(others[0], f"pod {placing.pod.name} of its group is gone", now)
        elif party.all_ready:
            yield from self._party_is_ready(placing.unit.group, now)
