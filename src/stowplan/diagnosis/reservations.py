"""Changes that may help a Spark driver for whose executors there is too little room, or an executor without a place.

The driver's annotations are changed: fewer executors, or smaller ones. Or a reservation that is in the way goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stowplan.diagnosis.edits import Edit, Scale
from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.proposals import Proposal, proposal
from stowplan.diagnosis.rehearsing import Rehearsing
from stowplan.diagnosis.remedies.lower_request import amount_text, step_of
from stowplan.diagnosis.remedy import DeleteObject, Operation, PatchObject
from stowplan.objects import quantity, spark
from stowplan.objects.applications import EXECUTOR, MINIMA, identity
from stowplan.objects.pods import Pod
from stowplan.objects.reservations import GPU, NAMED, ResourceReservation, reservation_of

SIZES = {"cpu": spark.CPU, "memory": spark.MEMORY, GPU: spark.GPUS}
DEFAULTS = {spark.CPU: "1", spark.MEMORY: "1Gi", spark.COUNT: "1", spark.LEAST: "1", spark.MOST: "1"}


class ReservationProposals:
    """`least`: so many executors the pod's group needs in any case."""

    def __init__(self, trying: Rehearsing, pod: Pod, least: int = 0) -> None:
        self._trying, self._pod, self._state, self._least = trying, pod, trying.state, least
        self._needs = spark.executors(pod)

    def all(self) -> Iterator[Proposal]:
        if self._needs is not None and self._needs.problem:
            yield from self._mended()
        elif self._needs is not None:
            yield from self._count()
            yield from self._sizes()
        else:
            yield from self._group_count()
        if self._needs is not None:
            yield from self._own_reservation()
        if identity(self._pod).role == EXECUTOR:
            yield from self._more_executors()
        yield from self._released()

    def _edit(
        self, code: str, text: str, key: str, value: str, pod: Pod, scale: Scale | None = None, size: float = 0
    ) -> Edit:
        operation = Operation("add", pointer("metadata", "annotations", key), value)
        return Edit(code, text, (PatchObject("Pod", pod.key, (operation,)),), size, scale)

    def _given(self, keys: tuple[str, ...], pod: Pod) -> str:
        """The annotation that counts: of two spellings the first."""
        return next((key for key in keys if key in pod.annotations), "")

    # -- fewer executors, and smaller ones

    def _count(self) -> Iterator[Proposal]:
        assert self._needs is not None
        key = self._given(spark.LEAST if self._needs.most > self._needs.least else spark.COUNT, self._pod)
        key = key or self._given(spark.LEAST, self._pod)
        if key and self._needs.least > self._least:
            yield proposal(self._with_count(key, self._least, self._needs.least))

    def _with_count(self, key: str, number: int, before: int) -> Edit:
        text = f"lower the number of executors ({key}) from {before} to {number}"
        scale = Scale(number, before, 1, lambda other: self._with_count(key, other, before))
        return self._edit("fewer-executors", text, key, str(number), self._pod, scale, (before - number) / before)

    def _group_count(self) -> Iterator[Proposal]:
        """A driver whose executors only the labels of its group announce."""
        found = spark.of_group(self._pod, {})
        keys = [key for key in MINIMA if key in self._pod.labels]
        if found is not None and found.least > 1:
            yield proposal(self._with_minimum(keys, 2, found.least + 1))

    def _with_minimum(self, keys: list[str], number: int, before: int) -> Edit:
        operations = tuple(Operation("replace", pointer("metadata", "labels", key), str(number)) for key in keys)
        text = f"lower the minimum of the driver's group from {before} to {number}"
        scale = Scale(number, before, 1, lambda other: self._with_minimum(keys, other, before))
        patch = PatchObject("Pod", self._pod.key, operations)
        return Edit("lower-minimum", text, (patch,), (before - number) / before, scale)

    def _sizes(self) -> Iterator[Proposal]:
        assert self._needs is not None
        for resource, keys in SIZES.items():
            key, before = self._given(keys, self._pod), self._needs.amounts.get(resource, 0)
            if key and before > 0:
                yield proposal(self._with_size(key, resource, 0, before))

    def _with_size(self, key: str, resource: str, amount: int, before: int) -> Edit:
        texts = amount_text(resource, before), amount_text(resource, amount)
        text = f"lower the {resource} of each executor ({key}) from {texts[0]} to {texts[1]}"
        step = step_of(resource)
        scale = Scale(amount, before, step, lambda other: self._with_size(key, resource, other, before))
        return self._edit("smaller-executors", text, key, texts[1], self._pod, scale, (before - amount) / before)

    def _mended(self) -> Iterator[Proposal]:
        """An annotation that is missing or cannot be read gets a value."""
        annotations = self._pod.annotations
        for keys, value in DEFAULTS.items():
            key = self._given(keys, self._pod)
            if not key or not _readable(keys, annotations[key]):
                key = key or keys[0]
                text = f"set the annotation {key} to {value}"
                yield proposal(self._edit("mend-annotation", text, key, value, self._pod))

    # -- reservations

    def _own_reservation(self) -> Iterator[Proposal]:
        """A reservation of this name belongs to somebody else: another name, or without it."""
        found = self._state.store.every(ResourceReservation).get(reservation_of(self._pod))
        if found is None or found.owner == self._pod.uid:
            return
        name = f"{found.name}-{self._pod.name}"
        text = f"let its reservation have the name {name}"
        yield proposal(self._edit("name-reservation", text, NAMED, name, self._pod))
        change = DeleteObject("ResourceReservation", found.key)
        yield proposal(Edit("release-reservation", f"delete the reservation {found.key}", (change,), 1))

    def _released(self) -> Iterator[Proposal]:
        """Reservations of users, which hold room for pods that may never come."""
        own = reservation_of(self._pod)
        every = self._state.store.every(ResourceReservation).values()
        keys = tuple(each.key for each in every if not each.owner and each.slots and each.key != own)

        def make(some: tuple[Any, ...]) -> Edit:
            changes = tuple(DeleteObject("ResourceReservation", key) for key in some)
            return Edit("release-reservation", f"delete the reservation {', '.join(some)}", changes, len(some))

        if keys:
            yield Proposal(make, keys)

    def _more_executors(self) -> Iterator[Proposal]:
        """The driver allows one executor more."""
        found = self._state.store.every(ResourceReservation).get(reservation_of(self._pod))
        placed = None if found is None else self._state.pods.get(found.owner)
        needs = None if placed is None else spark.executors(placed.pod)
        if placed is None or needs is None or needs.problem:
            return
        key = self._given(spark.MOST if needs.most > needs.least else spark.COUNT, placed.pod)
        key = key or self._given(spark.MOST, placed.pod)
        if key:
            yield proposal(self._with_most(key, placed.pod, needs.most + len(self._state.pods) + 1, needs.most))

    def _with_most(self, key: str, driver: Pod, number: int, before: int) -> Edit:
        text = f"raise the number of executors ({key}) of {driver.key} from {before} to {number}"
        scale = Scale(number, before, -1, lambda other: self._with_most(key, driver, other, before))
        return self._edit("more-executors", text, key, str(number), driver, scale, number - before)


def _readable(keys: tuple[str, ...], text: str) -> bool:
    if keys in (spark.COUNT, spark.LEAST, spark.MOST):
        return text.isascii() and text.isdecimal() and int(text) <= spark.MOST_EXECUTORS
    try:
        return quantity.nanos(text) >= 0
    except ValueError:
        return False
