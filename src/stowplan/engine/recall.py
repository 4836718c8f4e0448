"""Placings that do not get through: what they took is given back, and their pods go back into the queue, or are gone.

With one goes what those of its group took that were not sent to be bound yet. A member whose binding is under way
cannot be called back: the others are told who got through.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from stowplan.engine import happenings, messages
from stowplan.engine.admission import Admission
from stowplan.engine.awaiting import Awaiting
from stowplan.engine.failing import Failing
from stowplan.engine.happenings import Happening
from stowplan.engine.outbox import Outbox
from stowplan.engine.placing import Placing, Step
from stowplan.objects.pods import Pod


class Recall:
    awaiting: Awaiting  # set by whoever makes both

    def __init__(self, admission: Admission, failing: Failing, outbox: Outbox) -> None:
        self.placings: dict[str, Placing] = {}  # by the pod's uid
        self._admission, self._failing, self._outbox = admission, failing, outbox

    def give_up(self, placing: Placing, message: str, now: float, *, plugins: Iterable[str] = ()) -> Iterator[Any]:
        """The pod and those of its group that were not sent to be bound yet go back into the queue."""
        unit = self._admission.queue.units.get(placing.unit.key, placing.unit)
        together = [placing, *(each for each in self.others(placing) if each.recallable)]
        announced = any(each.announced for each in together)
        left: list[Happening] = []
        for each in together:
            left += self.drop(each)
            unit.pods[each.uid] = each.pod
            self._admission.unit_of[each.uid] = unit.key
        nominated: str | dict[str, str] = ""
        if unit.group:
            through = self._through(placing)
            message = f"{message}. {messages.half_bound(unit.group, through, unit.pods.values())}"
            if through:  # what is missing of the group keeps its room
                nominated = {each.uid: each.node_name for each in together}
        only = {each.uid for each in together}
        yield from self._failing.back(
            unit, message, now, plugins=plugins, nominated=nominated, announced=announced, only=only
        )
        left += [each.leaving for each in together]
        self._admission.happened(left, now, besides=unit)

    def _through(self, placing: Placing) -> list[Pod]:
        """The members of its group that are bound, or being bound."""
        members = self._admission.groups.get(placing.unit.group)
        bound = [] if members is None else [members.pods[uid] for uid in members.bound]
        known = {pod.uid for pod in bound}
        sent = [each.pod for each in self.others(placing) if each.step in (Step.BINDING, Step.BOUND)]
        return [*bound, *(pod for pod in sent if pod.uid not in known)]

    def others(self, placing: Placing) -> list[Placing]:
        """Those of its group that are on their way, too."""
        group = placing.unit.group
        if not group:
            return []
        return [each for each in self.placings.values() if each.unit.group == group and each is not placing]

    def abandon(self, placing: Placing, now: float) -> None:
        """Others settled what becomes of the pod: it does not come back, and misses nothing."""
        self._admission.happened(self.drop(placing), now)
        if not any(each.step is Step.WAITING and each.unit is placing.unit for each in self.others(placing)):
            self._admission.queue.done(placing.unit)

    def drop(self, placing: Placing) -> list[Happening]:
        """Forget a placing and give back all it took; what that means to others, besides the room it leaves."""
        self.placings.pop(placing.uid, None)
        self._admission.groups.came_back(placing.uid)
        if placing.party is not None:
            placing.party.leave(placing)
        self.stop_waiting_for_answers(placing)
        self.awaiting.forget(placing)
        given_back = placing.release()
        for _, found in given_back:
            self.awaiting.changed(found)
        return [each for old, new in given_back for each in happenings.of(old, new)]

    def stop_waiting_for_answers(self, placing: Placing) -> None:
        if placing.awaited:
            self._outbox.forget(placing.awaited)
            placing.awaited.clear()
