"""The cluster events of ResourceReservations and of pending Spark drivers."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.framework.cluster_event import ASSIGNED, ClusterEvent
from stowplan.objects.applications import is_driver
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import KIND, ResourceReservation, vacated

PENDING_DRIVER = "PendingDriver"


def of(old: Object | None, new: Object | None) -> Iterator[ClusterEvent]:
    """Return the events of a change that only this plugin knows."""
    if isinstance(old, ResourceReservation | None) and isinstance(new, ResourceReservation | None):
        yield from _of_reservation(old, new)
    elif isinstance(old, Pod) and isinstance(new, Pod | None) and _ended_pending(old, new) and is_driver(old):
        yield ClusterEvent(PENDING_DRIVER, "Delete", old, None)  # drivers behind it may go on


def _ended_pending(old: Pod, new: Pod | None) -> bool:
    return old.pending and (new is None or new.finished)


def _of_reservation(old: ResourceReservation | None, new: ResourceReservation | None) -> Iterator[ClusterEvent]:
    """Room that is no longer held is, for pods that wait for room, the same as a deleted pod."""
    if old is None or new is None or old.spec != new.spec or old.owner != new.owner:
        yield ClusterEvent(KIND, "Add" if old is None else "Delete" if new is None else "Update", old, new)
    yield from (ClusterEvent(ASSIGNED, "Delete", left, None) for left in vacated(old, new))
