"""Placings that do not get through: what they took is given back, and their pods go back into the queue, or are gone.

With one goes what those of its group took that were not sent to be bound yet. A member whose binding is under way
cannot be called back: the others are told who got through. Each is found without a look at all others: a thousand
bindings of one group may be refused one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from stowplan.engine import messages
from stowplan.engine.binding.assumed_pod import AssumedPod, BindStep
from stowplan.engine.binding.failure import FailureHandler
from stowplan.engine.binding.prebind_waits import PreBindWaits
from stowplan.engine.queue import cluster_events
from stowplan.engine.queue.admission import Admission
from stowplan.engine.queue.cluster_events import ClusterEvent
from stowplan.framework.pending_actions import PendingActions
from stowplan.objects.pods import Pod


class Rollback:
    awaiting: PreBindWaits  # set by whoever makes both

    def __init__(self, admission: Admission, failing: FailureHandler, outbox: PendingActions) -> None:
        self.placings: dict[str, AssumedPod] = {}  # by the pod's uid
        self._recallable: dict[str, dict[str, AssumedPod]] = {}  # by group, those that nobody was asked to bind yet
        self._admission, self._failing, self._outbox = admission, failing, outbox

    def give_up(self, placing: AssumedPod, message: str, now: float, *, plugins: Iterable[str] = ()) -> Iterator[Any]:
        """The pod and those of its group that were not sent to be bound yet go back into the queue."""
        unit = self._admission.queue.units.get(placing.unit.key, placing.unit)
        together = [placing, *self.others(placing)]
        announced = any(each.announced for each in together)
        left: list[ClusterEvent] = []
        for each in together:
            left += self.drop(each)
            unit.join(each.pod)
            self._admission.unit_of[each.uid] = unit.key
        nominated: str | dict[str, str] = ""
        if unit.group:
            through, names = self._through(unit.group)
            left_behind = len(unit.pods), unit.pods.values()
            message = f"{message}. {messages.half_bound(unit.group, (through, names), left_behind)}"
            if through:  # what is missing of the group keeps its room
                nominated = {each.uid: each.node_name for each in together}
        only = [each.uid for each in together]
        yield from self._failing.back(
            unit, message, now, plugins=plugins, nominated=nominated, announced=announced, only=only
        )
        if unit is not placing.unit:  # another one of its group came meanwhile, and they go on together
            self._admission.queue.done(placing.unit)
        left += [each.leaving for each in together]
        self._admission.happened(left, now, besides=unit)

    def _through(self, group: str) -> tuple[int, Iterator[Pod]]:
        """How many members of the group are bound or being bound, and who."""
        members = self._admission.groups.get(group)
        if members is None:
            return 0, iter(())
        uids = chain(members.bound, members.on_their_way)
        return len(members.bound) + len(members.on_their_way), (members.pods[uid] for uid in uids)

    def add(self, placing: AssumedPod) -> None:
        self.placings[placing.uid] = placing
        if placing.unit.group:
            self._recallable.setdefault(placing.unit.group, {})[placing.uid] = placing

    def remove(self, placing: AssumedPod) -> None:
        self.placings.pop(placing.uid, None)
        self.no_longer_recallable(placing)

    def no_longer_recallable(self, placing: AssumedPod) -> None:
        """Somebody is asked to bind it."""
        group = placing.unit.group
        if self._recallable.get(group, {}).pop(placing.uid, None) is not None and not self._recallable[group]:
            del self._recallable[group]

    def others(self, placing: AssumedPod) -> list[AssumedPod]:
        """Those of its group that are on their way, too, and can be called back."""
        return [each for each in self._recallable.get(placing.unit.group, {}).values() if each is not placing]

    def abandon(self, placing: AssumedPod, now: float) -> None:
        """Others settled what becomes of the pod: it does not come back, and misses nothing."""
        self._admission.happened(self.drop(placing), now)
        if not any(each.step is BindStep.WAITING and each.unit is placing.unit for each in self.others(placing)):
            self._admission.queue.done(placing.unit)

    def drop(self, placing: AssumedPod) -> list[ClusterEvent]:
        """Forget a placing and give back all it took; what that means to others, besides the room it leaves."""
        self.remove(placing)
        self._admission.groups.came_back(placing.uid)
        if placing.party is not None:
            placing.party.leave(placing)
        self.stop_waiting_for_answers(placing)
        self.awaiting.forget(placing)
        given_back = placing.release()
        for _, found in given_back:
            self.awaiting.changed(found)
        profiles = self._admission.profiles
        return [each for old, new in given_back for each in cluster_events.of(old, new, profiles)]

    def stop_waiting_for_answers(self, placing: AssumedPod) -> None:
        if placing.awaited:
            self._outbox.forget(placing.awaited)
            placing.awaited.clear()
