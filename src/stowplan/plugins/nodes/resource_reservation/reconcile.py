"""What becomes of ResourceReservations: they are told who has which place, move with their pods, and go in the end.

    pods                the status says which pod has which place; a place whose pod found room elsewhere is moved there
    ReservationActive   is room held, or in use? If not, why
    GangComplete        has every place its pod?

Deleted are those of a driver that ended or is gone, and those that nobody owns when they were unused for `ttlSeconds`.
A driver that was never heard of may only be late: for it a moment is waited. Looked at are reservations that changed,
and those of pods that did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from stowplan.columns.held.held_slots import HeldSlots
from stowplan.columns.nodes.views import Cluster
from stowplan.framework.interfaces import Gauge
from stowplan.objects.actions import Delete, Patch, Write
from stowplan.objects.meta import Condition, Object
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import KIND, ResourceReservation, ResourceReservationStatus, reservation_of

NOBODY = HeldSlots()
ORPHANED = 3.0  # seconds that a reservation may have an owner whom nobody knows: pods are watched by themselves


class ReservationReconciler:
    def __init__(self) -> None:
        self._due: dict[str, float] = {}  # when those go that nobody owns, or uses

    def writes(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Write]:
        every = cluster.every(ResourceReservation)
        concerned = every if changed is None else {_key(each) for each in changed} | self._due.keys()
        for key in concerned:
            found = every.get(key)
            if found is None:
                self._due.pop(key, None)
            elif found.uid and not found.terminating:  # what we are only about to make needs no upkeep
                yield from self._kept(found, cluster)

    @property
    def next_at(self) -> float | None:
        """When the next one is due; None if there is none."""
        return min(self._due.values(), default=None)

    def _kept(self, found: ResourceReservation, cluster: Cluster) -> Iterator[Write]:
        book = cluster.held_room(ResourceReservation).get(found.key) or NOBODY
        if self._is_over(found, book, cluster):
            version = found.metadata.resource_version
            yield Delete(kind=KIND, key=found.key, uid=found.uid, resource_version=version)
            return
        moved = [(slot, uid) for slot, uid in book.moved.items() if book.taken_by(slot) == uid]
        moves = {slot: {"node": book.pods[uid][1]} for slot, uid in moved}
        if moves and book.in_force:
            body: dict[str, Any] = {"metadata": {"uid": found.uid}, "spec": {"reservations": moves}}
            yield Patch(kind=KIND, key=found.key, body=body)
        status = told(found, book)
        if status != found.status:
            yield Patch(kind=KIND, key=found.key, body={"status": _written(status, found.status)})

    def _is_over(self, found: ResourceReservation, book: HeldSlots, cluster: Cluster) -> bool:
        """Is its owner gone, or has nobody used it for too long?"""
        if found.owner:
            wanted = cluster.known_pod(found.owner) is not None
            seconds = ORPHANED if cluster.last_node(found.owner) is None else 0.0
        else:
            wanted = bool(book.pods) or not found.spec.ttl_seconds
            seconds = float(found.spec.ttl_seconds)
        if wanted:
            self._due.pop(found.key, None)
            return False
        due = self._due[found.key] = min(self._due.get(found.key, float("inf")), cluster.now + seconds)
        return due <= cluster.now


def _key(each: Object) -> str:
    return reservation_of(each) if isinstance(each, Pod) else each.key


# -- what people who watch see


def gauges(cluster: Cluster) -> Iterator[Gauge]:
    """How much room is held that nobody uses."""
    waste: Counter[str] = Counter()
    for found in cluster.every(ResourceReservation).values():
        book = cluster.held_room(ResourceReservation).get(found.key) or NOBODY
        for slot in book.free.values():
            waste.update(slot.amounts)
    yield Gauge("reserved_places_free", "Places that are held and that no pod has.", waste["pods"])
    yield Gauge("reserved_cpu_free_cores", "CPU that is held for pods that are not there.", waste["cpu"] / 1000)
    yield Gauge("reserved_memory_free_bytes", "Memory that is held for pods that are not there.", waste["memory"])


# -- what it is told


def told(found: ResourceReservation, book: HeldSlots) -> ResourceReservationStatus:
    taken = {slot: uid for slot in found.slots if (uid := book.taken_by(slot)) in book.pods}
    since = {(each.type, each.status): each.last_transition_time for each in found.status.conditions}
    conditions = (
        msgspec.structs.replace(each, last_transition_time=since.get((each.type, each.status)))
        for each in _conditions(found, book, len(taken))
    )
    pods = {slot: book.pods[uid][0] for slot, uid in taken.items()}
    return ResourceReservationStatus(pods, len(found.slots), len(taken), tuple(conditions))


def _conditions(found: ResourceReservation, book: HeldSlots, taken: int) -> Iterator[Condition]:
    generation, places = found.metadata.generation, len(found.slots)
    if found.problems:
        yield Condition("ReservationActive", "False", "Invalid", "; ".join(found.problems), generation)
    elif not book.in_force:
        reason = "the pod that owns it has no node" if found.owner else "it has no places"
        yield Condition("ReservationActive", "False", "NotInForce", reason, generation)
    else:
        yield Condition("ReservationActive", "True", "Held", "", generation)
    status, reason = ("True", "Complete") if taken == places else ("False", "PlacesLeft")
    yield Condition("GangComplete", status, reason, f"{taken} of {places} places are taken", generation)


def _written(status: ResourceReservationStatus, before: ResourceReservationStatus) -> dict[str, Any]:
    """In a merge patch what is left out stays as it is, and null takes it away."""
    conditions = [msgspec.to_builtins(each) for each in status.conditions]
    return {
        "pods": {slot: None for slot in before.pods if slot not in status.pods} | status.pods,
        "reserved": status.reserved,
        "taken": status.taken,
        "conditions": [{key: value for key, value in each.items() if value is not None} for each in conditions],
    }
