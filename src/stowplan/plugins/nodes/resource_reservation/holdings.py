"""ResourceReservations as room that the state holds for pods that do not exist yet."""

from __future__ import annotations

from stowplan.columns.held.source import Holding, Slot
from stowplan.objects.applications import DRIVER
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import ResourceReservation, reservation_of


class ReservationHoldings:
    """The `HoldingSource` of ResourceReservations."""

    kind = ResourceReservation

    def key_of(self, pod: Pod) -> str:
        return reservation_of(pod)

    def holding(self, found: Object) -> Holding:
        assert isinstance(found, ResourceReservation)
        slots = {name: Slot(slot.node, slot.amounts) for name, slot in found.slots.items()}
        return Holding(slots, found.owner, DRIVER, found.status.pods)
