"""A hub as it would be: changes are made in an engine of our own, the placement is decided, the changes are undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from stowplan.diagnosis import patches
from stowplan.diagnosis.edits import Edit
from stowplan.diagnosis.remedy import CreateObject, DeleteObject, ObjectChange, PatchObject
from stowplan.framework.placement import decision_groups, evaluation
from stowplan.framework.placement.choice import PlacementChoice
from stowplan.framework.placement.policy import ClusterPolicy
from stowplan.objects import kinds
from stowplan.objects.changes import Gone, Put
from stowplan.objects.clusters import AddOnPlacementScore, ManagedCluster, ManagedClusterSet
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.placements import SATISFIED, Placement
from stowplan.placement import status
from stowplan.placement.scheduler import PlacementScheduler


class TriedHub:
    """The objects of a hub, and one placement that is looked at. `now`: seconds since the epoch."""

    def __init__(
        self,
        placement: Placement,
        objects: Iterable[Object],
        policy: ClusterPolicy,
        now: float,
        *,
        ocm: bool = False,
        hysteresis: int = 0,
    ) -> None:
        self.placement, self.policy, self.now, self.ocm = placement, policy, now, ocm
        self.engine = PlacementScheduler(policy, ocm=ocm, hysteresis=hysteresis)
        self.objects: dict[tuple[str, str], Object] = {}
        self._documents: dict[tuple[str, str], Any] = {}
        for each in objects:
            if not isinstance(each, Placement):
                self._put(each)
        self.objects["Placement", placement.key] = placement

    def clusters(self) -> list[ManagedCluster]:
        """All clusters that are not terminating, by name."""
        found = (each for each in self.objects.values() if isinstance(each, ManagedCluster))
        return sorted((each for each in found if not each.terminating), key=lambda each: each.name)

    def sets(self) -> list[ManagedClusterSet]:
        return sorted(
            (each for each in self.objects.values() if isinstance(each, ManagedClusterSet)), key=lambda each: each.name
        )

    def score(self, cluster: str, resource: str) -> AddOnPlacementScore | None:
        found = self.objects.get(("AddOnPlacementScore", f"{cluster}/{resource}"))
        return found if isinstance(found, AddOnPlacementScore) else None

    def __getitem__(self, name: tuple[str, str]) -> Any:
        """The document of an object, by kind and key, as far as its fields are read."""
        if name not in self._documents:
            self._documents[name] = msgspec.json.decode(msgspec.json.encode(self.objects[name], enc_hook=str))
        return self._documents[name]

    # -- what would be

    def changes_of(self, edits: Sequence[Edit]) -> tuple[ObjectChange, ...]:
        """Return the changes of edits that are made together: one patch per object."""
        return patches.merged([change for edit in edits for change in edit.changes], self)

    def choose(self, edits: Sequence[Edit] = ()) -> PlacementChoice | None:
        """Return what the placement would get with these edits made; None if an object cannot be like this."""
        try:
            changes = self.changes_of(edits)
            with self._changed(changes) as placement:
                return evaluation.finished(lambda: self.engine.choose(placement, self.now))
        except (ConfigError, LookupError, ValueError):
            return None

    def satisfied(self, edits: Sequence[Edit] = ()) -> bool:
        """True if the placement would get all clusters that it asks for."""
        choice = self.choose(edits)
        return choice is not None and satisfied(choice)

    @contextmanager
    def _changed(self, changes: Iterable[ObjectChange]) -> Iterator[Placement]:
        placement, undo = self.placement, list[Callable[[], object]]()
        try:
            for change in changes:
                match change:
                    case PatchObject("Placement", key, operations) if key == placement.key:
                        document = patches.patched(self["Placement", key], operations)
                        placement = kinds.convert(Placement, document)
                    case PatchObject(kind, key, operations):
                        document = patches.patched(self[kind, key], operations)
                        undo.append(self._replaced(kinds.convert(kinds.KINDS[kind], document)))
                    case CreateObject(document):
                        undo.append(self._replaced(kinds.convert(kinds.KINDS[str(document["kind"])], document)))
                    case DeleteObject(kind, key):
                        undo.append(self._deleted(self.objects[kind, key]))
                    case _:
                        raise LookupError(f"a hub has no place for {change}")
            yield placement
        finally:
            for each in reversed(undo):
                each()

    def _replaced(self, new: Object) -> Callable[[], object]:
        old = self.objects.get((type(new).__name__, new.key))
        self._put(new)
        return lambda: self._remove(new) if old is None else self._put(old)

    def _deleted(self, old: Object) -> Callable[[], object]:
        self._remove(old)
        return lambda: self._put(old)

    def _put(self, found: Object) -> None:
        self.objects[type(found).__name__, found.key] = found
        self.engine.handle(Put(found), self.now)

    def _remove(self, found: Object) -> None:
        self.objects.pop((type(found).__name__, found.key), None)
        self.engine.handle(Gone(found), self.now)


def satisfied(choice: PlacementChoice) -> bool:
    """True if a placement with this choice has all clusters that it asks for."""
    _, found = decision_groups.grouped(choice)
    if choice.status.failed or found.failed:
        return False
    reason = next(each for each in status.conditions(choice, found, len(choice.picked)) if each.type == SATISFIED)
    return reason.status == "True"
