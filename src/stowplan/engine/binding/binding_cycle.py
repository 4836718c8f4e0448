"""The binding cycle: assumed pods wait for permits, pre-bind, bind, and are seen bound.

No member of a group is bound before all members that were placed with it are ready (`BindTogether`): until then all can
be rolled back. A pod stays assumed until the API server shows it bound, since the answer to the binding may arrive
before the watch event, and may be wrong (`confirmations`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from stowplan.engine import messages
from stowplan.engine.binding.assumed_pod import AssumedPod, BindStep, BindTogether
from stowplan.engine.binding.confirmations import Confirmations
from stowplan.engine.binding.prebind_waits import PreBindWaits
from stowplan.engine.binding.rollback import Rollback
from stowplan.engine.failure import FailureHandler
from stowplan.engine.groups.groups import Groups
from stowplan.engine.outbox import Outbox, Receiver
from stowplan.engine.pods import assumed
from stowplan.engine.queue.cluster_events import ClusterEvents
from stowplan.engine.queue.scheduling_queue import SchedulingQueue
from stowplan.engine.reports import BindingUnconfirmed, GroupTimedOut, PermitWaited, PluginMisbehaved, PodBound, Report
from stowplan.framework import extenders as extender_calls
from stowplan.framework.config.settings import Extender
from stowplan.objects.actions import AnyAction, Ask, Nominate, Read
from stowplan.objects.changes import Result
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod

MOST_IN_DOUBT = 10_000  # bindings without an answer to remember
IN_DOUBT = (0, 404, 409, 410)  # answers after which it is unknown what became of the pod


class BindingCycle:
    def __init__(
        self,
        queue: SchedulingQueue,
        groups: Groups,
        failures: FailureHandler,
        cluster_events: ClusterEvents,
        outbox: Outbox,
        report: Callable[[Report], None],
        extenders: Sequence[Extender] = (),
    ) -> None:
        self._queue, self._groups, self._outbox = queue, groups, outbox
        self._report, self.extenders = report, extenders
        self.assumed_pods: dict[str, AssumedPod] = {}  # by uid
        self.waits = PreBindWaits()
        self.rollback = Rollback(self.assumed_pods, queue, groups, failures, cluster_events, self.waits, outbox)
        self.together: dict[str, BindTogether] = {}  # by group
        self.confirmations = Confirmations(outbox, self.assumed_pods)
        self.missing = self.confirmations.missing  # uids of pods that are not there; the scheduler empties it
        self.in_doubt: dict[str, str] = {}  # the nodes of bindings without an answer, by the uids of their pods

    # -- forward

    def add(self, assumed_pods: Sequence[AssumedPod], now: float) -> None:
        """All of these pods got a node, and everything is reserved."""
        for each in assumed_pods:
            self.assumed_pods[each.uid] = each
            if each.unit.group:
                self.rollback.add_member(each)
                self._join_group(each, now)

    def start(self, assumed_pods: Sequence[AssumedPod], now: float) -> None:
        """Start the binding cycle of pods that were added."""
        for each in assumed_pods:
            if each.profile.sibling_plugins:
                self._activate_siblings(each)
        for each in assumed_pods:
            if self.assumed_pods.get(each.uid) is not each:
                continue  # rolled back, because another member of its group failed
            if each.permits:
                self._wait_for_permits(each, now)
            else:
                self._pre_bind(each, now)

    def _join_group(self, assumed_pod: AssumedPod, now: float) -> None:
        """Bind the pod together with the other members of its group; if not all are ready in time, none is bound."""
        group = assumed_pod.unit.group
        self._groups.assume(assumed_pod.uid)
        together = self.together.get(group)
        if together is None or not len(together):
            self._outbox.forget([0 if together is None else together.reminder])
            together = self.together[group] = BindTogether()
            within = self._groups.timeout(group)
            together.reminder = self._outbox.remind(now + within, partial(self._too_late, together, group, within))
        together.add(assumed_pod)

    def _too_late(self, together: BindTogether, group: str, within: float, _: Result, now: float) -> None:
        waiting = together.waiting
        if self.together.get(group) is together and waiting:
            late = f"{len(waiting)} of its pods were not ready to be bound after {messages.duration(within)}"
            self._report(GroupTimedOut(group, within))
            self.rollback.roll_back(waiting[0], f"pod group {group} timed out: {late}", now)

    def _activate_siblings(self, assumed_pod: AssumedPod) -> None:
        try:
            self._queue.activate_pods(assumed_pod.siblings())
        except PluginError:
            return  # a plugin that cannot name siblings does not stop the pod

    # -- permits

    def _wait_for_permits(self, assumed_pod: AssumedPod, now: float) -> None:
        assumed_pod.step, assumed_pod.waits_since = BindStep.WAITING, now
        for plugin, seconds in assumed_pod.permits.items():
            late = partial(self._permit_late, assumed_pod, plugin, seconds)
            assumed_pod.awaited.add(self._outbox.remind(now + seconds, late))
        self._announce(assumed_pod, now)

    def _announce(self, assumed_pod: AssumedPod, now: float) -> None:
        """Name the node in the pod's status, since its binding takes a while: autoscalers read that."""
        if assumed_pod.pod.nominated_node != assumed_pod.node_name and not assumed_pod.announced:
            assumed_pod.announced = True
            self._outbox.send(Nominate(pod=messages.ref(assumed_pod.pod), node_name=assumed_pod.node_name), now)

    def allow(self, uid: str, plugin: str, now: float) -> None:
        """A plugin permits the pod after all."""
        found = self.assumed_pods.get(uid)
        if found is None or found.step is not BindStep.WAITING:
            return
        found.permits.pop(plugin, None)
        if not found.permits:
            self._report(PermitWaited(now - found.waits_since, True, found.pod.key))
            self._pre_bind(found, now)

    def reject(self, uid: str, plugin: str, message: str, now: float) -> None:
        """A plugin rejects the pod after all."""
        found = self.assumed_pods.get(uid)
        if found is not None and found.step is BindStep.WAITING:
            self._report(PermitWaited(now - found.waits_since, False, found.pod.key))
            self.rollback.roll_back(found, messages.refused((message,)), now, plugins=(plugin,))

    def _permit_late(self, assumed_pod: AssumedPod, plugin: str, seconds: float, result: Result, now: float) -> None:
        assumed_pod.awaited.discard(result.id)
        if plugin in assumed_pod.permits:
            self.reject(assumed_pod.uid, plugin, messages.waited(seconds, plugin), now)

    # -- pre-bind

    def _pre_bind(self, assumed_pod: AssumedPod, now: float) -> None:
        if assumed_pod.unit in self._queue.inflight.units:
            self._queue.done(assumed_pod.unit)
        if assumed_pod.awaited:
            self.rollback.stop_waiting(assumed_pod)
        assumed_pod.step = BindStep.PRE_BINDING
        try:
            actions = assumed_pod.pre_bind()
        except PluginError as error:
            self.rollback.roll_back(assumed_pod, str(error), now)
            return
        if not actions:
            self._bind_if_ready(assumed_pod, now)
            return
        if not assumed_pod.profile.quick_pre_binders.issuperset(plugin for plugin, _ in actions):
            self._announce(assumed_pod, now)
        for plugin, action in actions:
            self._send(assumed_pod, action, partial(self._pre_bind_answered, assumed_pod, plugin), now)

    def _pre_bind_answered(self, assumed_pod: AssumedPod, plugin: str, result: Result, now: float) -> None:
        assumed_pod.awaited.discard(result.id)
        if not result.succeeded:
            self._refused(assumed_pod, result, messages.at_pre_bind(plugin, result.message), now)
        elif not assumed_pod.awaited:
            self._bind_if_ready(assumed_pod, now)

    def ask_waiting(self, now: float) -> None:
        """Ask about the pods that wait for objects that changed."""
        while self.waits.to_ask:
            self._bind_if_ready(self.waits.next_to_ask(), now)

    def _bind_if_ready(self, assumed_pod: AssumedPod, now: float) -> None:
        """Bind the pod if its pre-bind actions took effect; otherwise wait, or roll back."""
        if assumed_pod.pre_bind_waiters:
            status = self.waits.check(assumed_pod, now)
            self._outbox.forget(status.obsolete)
            if status.failure:
                self.rollback.roll_back(assumed_pod, status.failure, now)
                return
            if not status.ready:
                for plugin, at, message in status.deadlines:
                    number = self._outbox.remind(at, partial(self._pre_bind_late, assumed_pod, message))
                    self.waits.set_reminder(assumed_pod, plugin, number)
                self._announce(assumed_pod, now)
                return
        self._bind(assumed_pod, now)

    def _pre_bind_late(self, assumed_pod: AssumedPod, message: str, _: Result, now: float) -> None:
        self.rollback.roll_back(assumed_pod, message, now)

    # -- bind

    def _bind(self, assumed_pod: AssumedPod, now: float) -> None:
        """Bind a pod now; a member of a group, when the last member is ready."""
        together = assumed_pod.bind_together
        if together is None:
            self._bind_all([assumed_pod], now)
            return
        together.set_ready(assumed_pod)
        if together.all_ready:
            self._bind_group(assumed_pod.unit.group, now)

    def _bind_group(self, group: str, now: float) -> None:
        together = self.together.pop(group)
        self._outbox.forget([together.reminder])
        self._bind_all(together.release_all(), now)

    def _bind_all(self, assumed_pods: Sequence[AssumedPod], now: float, *, by_extender: bool = True) -> None:
        """Ask the plugins about all pods first: no pod is bound if one of them cannot be."""
        bindings: list[tuple[AssumedPod, AnyAction, Extender | None]] = []
        for each in assumed_pods:
            try:
                extender, ask = self._by_extender(each) if by_extender and self.extenders else (None, None)
                action = ask or each.bind()
            except PluginError as error:
                self.rollback.roll_back(each, str(error), now)
                return
            if action is None:
                self.rollback.roll_back(each, "no plugin wants to bind the pod", now)
                return
            bindings.append((each, action, extender))
        for each, action, extender in bindings:
            each.step = BindStep.BINDING
            if each.unit.group:
                self.rollback.remove_member(each)
            within = None if extender is None else extender.http_timeout
            self._send(each, action, partial(self._bind_answered, each, extender), now, within=within)

    def _by_extender(self, assumed_pod: AssumedPod) -> tuple[Extender | None, Ask | None]:
        """The extender that binds this pod, if there is one, and what to ask it."""
        found = extender_calls.Consultation(self.extenders, assumed_pod.pod).binder()
        if found is None:
            return None, None
        ask = msgspec.structs.replace(found[1], nodes=(assumed_pod.node_name,))
        return self.extenders[ask.extender], ask

    def _send(
        self, assumed_pod: AssumedPod, action: AnyAction, receiver: Receiver, now: float, *, within: float | None = None
    ) -> None:
        assumed_pod.awaited.add(self._outbox.send(action, now, receiver, within=within).id)

    def _bind_answered(self, assumed_pod: AssumedPod, extender: Extender | None, result: Result, now: float) -> None:
        """`extender`: the one that was asked to bind, if any."""
        assumed_pod.awaited.discard(result.id)
        if extender is not None:
            problem = extender_calls.problem(extender, extender.bind_verb, result)
            if problem and extender.ignorable:
                self._bind_all([assumed_pod], now, by_extender=False)
                return
            result = Result(result.id, 500 if problem and result.status else result.status, problem)
        if result.succeeded:
            self._bound(assumed_pod, now)
        else:
            self._refused(assumed_pod, result, f"binding rejected: {result.message}", now)

    def _bound(self, assumed_pod: AssumedPod, now: float) -> None:
        """The pod is bound. Until the watch shows that, too, what the watch says about the pod is out of date."""
        assumed_pod.step = BindStep.BOUND
        if assumed_pod.seen_bound:
            self._remove(assumed_pod)
        else:
            self.confirmations.add(assumed_pod, now)
        assumed_pod.state.assumed.finish(assumed_pod.uid)
        unit = assumed_pod.unit
        about = (unit.profile, unit.attempts, unit.since, unit.queued.flushed, unit.group)
        self._report(PodBound(assumed_pod.pod.key, assumed_pod.node_name, *about))
        if assumed_pod.uid in self._queue.unit_of:
            self._queue.remove_pod(assumed_pod.uid, now)
        self._outbox.send(messages.scheduled(assumed_pod.pod, assumed_pod.node_name), now)
        if assumed_pod.profile.sibling_plugins:
            self._activate_siblings(assumed_pod)
        if assumed_pod.profile.post_binders:
            self._post_bind(assumed_pod, now)

    def _remove(self, assumed_pod: AssumedPod) -> None:
        """The API server shows the pod bound."""
        self.assumed_pods.pop(assumed_pod.uid, None)
        if assumed_pod.unit.group:
            self.rollback.remove_member(assumed_pod)
        self.confirmations.confirmed()

    def _post_bind(self, assumed_pod: AssumedPod, now: float) -> None:
        try:
            for action in assumed_pod.post_bind():
                self._outbox.send(action, now)
        except PluginError as error:  # the pod is bound all the same
            self._report(PluginMisbehaved(error.plugin, error.point, error.problem))

    def _refused(self, assumed_pod: AssumedPod, result: Result, message: str, now: float) -> None:
        """The API server refused, or did not answer. If it is in doubt what became of the pod, read it again."""
        if assumed_pod.seen_bound and not result.status:
            self._bound(assumed_pod, now)
        elif assumed_pod.seen_bound:
            self.rollback.release(assumed_pod)  # another scheduler bound it to the same node
        else:
            if not result.status and assumed_pod.step is BindStep.BINDING:
                self._note_doubt(assumed_pod)
            self.rollback.roll_back(assumed_pod, message, now)
            if result.status in IN_DOUBT:
                self._read_again(assumed_pod.pod, now)

    def _note_doubt(self, assumed_pod: AssumedPod) -> None:
        """The pod may turn out to be bound by us."""
        if len(self.in_doubt) >= MOST_IN_DOUBT:
            del self.in_doubt[next(iter(self.in_doubt))]
        self.in_doubt[assumed_pod.uid] = assumed_pod.node_name

    def is_own(self, pod: Pod) -> bool:
        """True if the node of the pod is one that we asked for."""
        found = self.assumed_pods.get(pod.uid)
        if found is not None and not found.can_roll_back and found.node_name == pod.node_name:
            return True
        return self.in_doubt.pop(pod.uid, "") == pod.node_name

    def take_back(self, assumed_pod: AssumedPod, now: float) -> None:
        """The pod is not bound after all."""
        self._note_doubt(assumed_pod)
        events = self.rollback.release(assumed_pod)
        self._queue.events([*events, assumed_pod.leaving], now)
        self._report(BindingUnconfirmed(assumed_pod.pod.key, assumed_pod.node_name))

    def _read_again(self, pod: Pod, now: float) -> None:
        """If the pod is still there, the API server sends it again; if not, it is in `missing` afterwards."""
        self._outbox.send(Read(pod=messages.ref(pod)), now, partial(self._was_read, pod.uid))

    def _was_read(self, uid: str, result: Result, now: float) -> None:  # noqa: ARG002
        if result.status in (404, 410):
            self.missing.append(uid)

    # -- what the watch says about an assumed pod

    def as_bound(self, pod: Pod) -> Pod:
        """The pod with the node that we know it was bound to. A list may have skipped that version of it."""
        found = self.assumed_pods.get(pod.uid)
        if found is not None and (found.step is BindStep.BOUND or found.seen_bound):
            return assumed(pod, found.node_name)
        return pod

    def pod_changed(self, assumed_pod: AssumedPod, pod: Pod, gone: bool, now: float) -> None:
        """The watch shows an assumed pod; `gone`: it was deleted or has finished."""
        on_its_node = pod.node_name == assumed_pod.node_name
        if on_its_node and not gone and not pod.terminating and assumed_pod.step is BindStep.BINDING:
            assumed_pod.seen_bound = True
        elif on_its_node and not gone and assumed_pod.step is BindStep.BOUND:
            self._remove(assumed_pod)
        elif gone or pod.node_name or (pod.terminating and assumed_pod.step is not BindStep.BOUND):
            self._lost(assumed_pod, now, leaves=not on_its_node or gone)

    def _lost(self, assumed_pod: AssumedPod, now: float, *, leaves: bool) -> None:
        """The pod was deleted, or bound by another scheduler. The rest of its group goes on if it is enough."""
        together, others = assumed_pod.bind_together, self.rollback.others(assumed_pod)
        self.rollback.abandon(assumed_pod, now)
        if leaves:
            self._queue.events([assumed_pod.leaving], now)
        if together is None or not others:
            return
        if self._groups.missing(assumed_pod.unit.group) > 0:
            self.rollback.roll_back(others[0], f"pod {assumed_pod.pod.name} of its group is gone", now)
        elif together.all_ready:
            self._bind_group(assumed_pod.unit.group, now)
