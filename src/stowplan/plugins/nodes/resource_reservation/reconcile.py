"""ResourceReservations over time: their status, slots that move with their pods, and deletion.

    pods                the status says which pod has which slot; the slot of a pod on another node is moved there
    ReservationActive   room is held or in use; if not, why
    GangComplete        every slot has its pod

A reservation is deleted if its driver has ended or was deleted, or if it has no owner and was unused for `ttlSeconds`.
A driver that was not seen yet may be late, so the deletion waits a moment. A reservation is looked at if it changed, or
if one of its pods did.
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

NO_SLOTS = HeldSlots()
ORPHANED = 3.0  # seconds that the owner may be unknown: pods have a watch of their own


class ReservationReconciler:
    def __init__(self) -> None:
        self._due: dict[str, float] = {}  # when unowned or unused reservations are deleted

    def writes(self, changed: Sequence[Object] | None, cluster: Cluster) -> Iterator[Write]:
        every = cluster.every(ResourceReservation)
        affected = every if changed is None else {_key(each) for each in changed} | self._due.keys()
        for key in affected:
            found = every.get(key)
            if found is None:
                self._due.pop(key, None)
            elif found.uid and not found.terminating:  # not one that is not created yet
                yield from self._reconciled(found, cluster)

    @property
    def next_at(self) -> float | None:
        """The time of the next deletion, or None."""
        return min(self._due.values(), default=None)

    def _reconciled(self, found: ResourceReservation, cluster: Cluster) -> Iterator[Write]:
        held = cluster.held_room(ResourceReservation).get(found.key) or NO_SLOTS
        if self._is_over(found, held, cluster):
            version = found.metadata.resource_version
            yield Delete(kind=KIND, key=found.key, uid=found.uid, resource_version=version)
            return
        moved = [(slot, uid) for slot, uid in held.moved.items() if held.taken_by(slot) == uid]
        moves = {slot: {"node": held.pods[uid][1]} for slot, uid in moved}
        if moves and held.in_force:
            body: dict[str, Any] = {"metadata": {"uid": found.uid}, "spec": {"reservations": moves}}
            yield Patch(kind=KIND, key=found.key, body=body)
        status = status_of(found, held)
        if status != found.status:
            yield Patch(kind=KIND, key=found.key, body={"status": _written(status, found.status)})

    def _is_over(self, found: ResourceReservation, held: HeldSlots, cluster: Cluster) -> bool:
        """True if the owner was deleted, or the reservation was unused for too long."""
        if found.owner:
            wanted = cluster.known_pod(found.owner) is not None
            seconds = ORPHANED if cluster.last_node(found.owner) is None else 0.0
        else:
            wanted = bool(held.pods) or not found.spec.ttl_seconds
            seconds = float(found.spec.ttl_seconds)
        if wanted:
            self._due.pop(found.key, None)
            return False
        due = self._due[found.key] = min(self._due.get(found.key, float("inf")), cluster.now + seconds)
        return due <= cluster.now


def _key(each: Object) -> str:
    return reservation_of(each) if isinstance(each, Pod) else each.key


# -- metrics


def gauges(cluster: Cluster) -> Iterator[Gauge]:
    """Yield how much held room is unused."""
    unused: Counter[str] = Counter()
    for found in cluster.every(ResourceReservation).values():
        held = cluster.held_room(ResourceReservation).get(found.key) or NO_SLOTS
        for slot in held.free.values():
            unused.update(slot.amounts)
    yield Gauge("reserved_places_free", "Held slots without a pod.", unused["pods"])
    yield Gauge("reserved_cpu_free_cores", "CPU that is held for pods that do not exist.", unused["cpu"] / 1000)
    yield Gauge("reserved_memory_free_bytes", "Memory that is held for pods that do not exist.", unused["memory"])


# -- the status


def status_of(found: ResourceReservation, held: HeldSlots) -> ResourceReservationStatus:
    taken = {slot: uid for slot in found.slots if (uid := held.taken_by(slot)) in held.pods}
    since = {(each.type, each.status): each.last_transition_time for each in found.status.conditions}
    conditions = (
        msgspec.structs.replace(each, last_transition_time=since.get((each.type, each.status)))
        for each in _conditions(found, held, len(taken))
    )
    pods = {slot: held.pods[uid][0] for slot, uid in taken.items()}
    return ResourceReservationStatus(pods, len(found.slots), len(taken), tuple(conditions))


def _conditions(found: ResourceReservation, held: HeldSlots, taken: int) -> Iterator[Condition]:
    generation, places = found.metadata.generation, len(found.slots)
    if found.problems:
        yield Condition("ReservationActive", "False", "Invalid", "; ".join(found.problems), generation)
    elif not held.in_force:
        reason = "the pod that owns it has no node" if found.owner else "it has no places"
        yield Condition("ReservationActive", "False", "NotInForce", reason, generation)
    else:
        yield Condition("ReservationActive", "True", "Held", "", generation)
    status, reason = ("True", "Complete") if taken == places else ("False", "PlacesLeft")
    yield Condition("GangComplete", status, reason, f"{taken} of {places} places are taken", generation)


def _written(status: ResourceReservationStatus, before: ResourceReservationStatus) -> dict[str, Any]:
    """Return the status for a merge patch, in which null removes a field."""
    conditions = [msgspec.to_builtins(each) for each in status.conditions]
    return {
        "pods": {slot: None for slot in before.pods if slot not in status.pods} | status.pods,
        "reserved": status.reserved,
        "taken": status.taken,
        "conditions": [{key: value for key, value in each.items() if value is not None} for each in conditions],
    }
