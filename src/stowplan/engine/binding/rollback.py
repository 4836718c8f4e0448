"""The way back: an assumed pod that cannot be bound is released and returns to the queue.

If one member of a group fails, the other members are rolled back with it, unless their binding was already requested.
Members are found by group, without a look at all assumed pods: a thousand bindings of one group may fail one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from stowplan.engine import messages
from stowplan.engine.binding.assumed_pod import AssumedPod, BindStep
from stowplan.engine.binding.prebind_waits import PreBindWaits
from stowplan.engine.failure import Failure, FailureHandler
from stowplan.engine.groups.groups import Groups
from stowplan.engine.outbox import Outbox
from stowplan.engine.queue.cluster_events import ClusterEvent, ClusterEvents
from stowplan.engine.queue.scheduling_queue import SchedulingQueue
from stowplan.objects.pods import Pod


class Rollback:
    def __init__(
        self,
        assumed_pods: dict[str, AssumedPod],
        queue: SchedulingQueue,
        groups: Groups,
        failures: FailureHandler,
        cluster_events: ClusterEvents,
        waits: PreBindWaits,
        outbox: Outbox,
    ) -> None:
        """`assumed_pods`: all of them, by uid."""
        self._assumed_pods = assumed_pods
        self._by_group: dict[str, dict[str, AssumedPod]] = {}  # members that can still be rolled back
        self._queue, self._groups, self._failures, self._cluster_events = queue, groups, failures, cluster_events
        self._waits, self._outbox = waits, outbox

    # -- members of groups

    def add_member(self, assumed_pod: AssumedPod) -> None:
        """From now on this member of a group is rolled back with the others."""
        self._by_group.setdefault(assumed_pod.unit.group, {})[assumed_pod.uid] = assumed_pod

    def remove_member(self, assumed_pod: AssumedPod) -> None:
        """This member of a group is not rolled back with the others any more: its binding was requested."""
        group = assumed_pod.unit.group
        if self._by_group.get(group, {}).pop(assumed_pod.uid, None) is not None and not self._by_group[group]:
            del self._by_group[group]

    def others(self, assumed_pod: AssumedPod) -> list[AssumedPod]:
        """The other members of its group that can be rolled back."""
        members = self._by_group.get(assumed_pod.unit.group, {})
        return [each for each in members.values() if each is not assumed_pod]

    # -- the way back

    def roll_back(self, assumed_pod: AssumedPod, message: str, now: float, *, plugins: Iterable[str] = ()) -> None:
        """Return the pod to the queue, with the members of its group that can be rolled back."""
        unit = self._queue.units.get(assumed_pod.unit.key, assumed_pod.unit)
        together = [assumed_pod, *self.others(assumed_pod)]
        announced = any(each.announced for each in together)
        events: list[ClusterEvent] = []
        for each in together:
            events += self.release(each)
            self._queue.return_pod(unit, each.pod)
        nominated_nodes: str | dict[str, str] = ""
        if unit.group:
            bound, pods = self._bound_members(unit.group)
            behind = len(unit.pods), unit.pods.values()
            message = f"{message}. {messages.half_bound(unit.group, (bound, pods), behind)}"
            if bound:  # the missing members keep their nodes
                nominated_nodes = {each.uid: each.node_name for each in together}
        failure = Failure(
            message,
            frozenset(plugins),
            nominated_nodes=nominated_nodes,
            announced=announced,
            pods=tuple(each.uid for each in together),
        )
        self._failures.requeue(unit, failure, now)
        if unit is not assumed_pod.unit:  # a new unit of the group exists by now, and they go on together
            self._queue.done(assumed_pod.unit)
        events += [each.leaving for each in together]
        self._queue.events(events, now, except_unit=unit)

    def _bound_members(self, group: str) -> tuple[int, Iterator[Pod]]:
        """How many members of the group are bound or being bound, and which."""
        found = self._groups.get(group)
        if found is None:
            return 0, iter(())
        uids = chain(found.bound, found.assumed)
        return len(found.bound) + len(found.assumed), (found.pods[uid] for uid in uids)

    def abandon(self, assumed_pod: AssumedPod, now: float) -> None:
        """Release a pod that does not return to the queue: it was deleted, or another scheduler bound it."""
        self._queue.events(self.release(assumed_pod), now)
        waiting = (each for each in self.others(assumed_pod) if each.step is BindStep.WAITING)
        if not any(each.unit is assumed_pod.unit for each in waiting):
            self._queue.done(assumed_pod.unit)

    def release(self, assumed_pod: AssumedPod) -> list[ClusterEvent]:
        """Undo everything that was done for the pod. Return what that means to others, besides the freed room."""
        self._assumed_pods.pop(assumed_pod.uid, None)
        if assumed_pod.unit.group:
            self.remove_member(assumed_pod)
        self._groups.rolled_back(assumed_pod.uid)
        if assumed_pod.bind_together is not None:
            assumed_pod.bind_together.remove(assumed_pod)
        self.stop_waiting(assumed_pod)
        self._outbox.forget(self._waits.forget(assumed_pod))
        if assumed_pod.step not in (BindStep.RESERVED, BindStep.WAITING) and assumed_pod.profile.pre_bind_undoers:
            for action in assumed_pod.undo_pre_bind():
                self._outbox.send(action, assumed_pod.state.now)
        released = assumed_pod.release()
        for _, found in released:
            self._waits.object_changed(found)
        return [each for old, new in released for each in self._cluster_events.of(old, new)]

    def stop_waiting(self, assumed_pod: AssumedPod) -> None:
        """Forget the results and reminders that the pod waits for."""
        if assumed_pod.awaited:
            self._outbox.forget(assumed_pod.awaited)
            assumed_pod.awaited.clear()
