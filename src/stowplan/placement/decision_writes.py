"""The writes to a placement's PlacementDecisions, in phases. Each phase is sent when the one before has succeeded.

    1 create    objects that do not exist yet, without clusters (the API server drops a new object's status); labels
    2 add       every cluster that an object shall have; clusters on the way to another object are still listed
    3 remove    the clusters that their new object lists now
    4 delete    objects that are not needed

No cluster that stays chosen is ever in no object, in whatever order the writes of one phase arrive. The placement's own
status follows as the last phase (`write_plan`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stowplan.framework.placement.choice import WARNING, ClusterPluginStatus, PlacementChoice
from stowplan.objects.actions import Action, Create, Delete, ObjectRef, Patch, Record
from stowplan.objects.meta import ObjectMeta, OwnerReference
from stowplan.objects.placements import (
    API_VERSION,
    GROUP_INDEX_LABEL,
    GROUP_NAME_LABEL,
    PLACEMENT_LABEL,
    ClusterDecision,
    PlacementDecision,
    PlacementDecisionStatus,
)
from stowplan.placement.slices import PlannedSlice, SliceLayout

CONTROLLER = "placementController"
LONGEST_EVENT = 1000


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """An action, and what it makes of a PlacementDecision (None: deleted). `key` is "" if it writes another kind."""

    action: Action
    key: str = ""
    becomes: PlacementDecision | None = None


@dataclass(slots=True)
class Phase:
    writes: list[PlannedWrite] = field(default_factory=list)
    events: list[Record] = field(default_factory=list)  # recorded when all writes have succeeded


class DecisionWrites:
    """`entries` is what a decision says about each chosen cluster."""

    def __init__(
        self, choice: PlacementChoice, status: ClusterPluginStatus, entries: Mapping[str, ClusterDecision]
    ) -> None:
        self._choice, self._status, self._entries = choice, status, entries
        self._placement = choice.question.placement

    def phases(
        self, layout: SliceLayout, current: Mapping[int, PlacementDecision], surplus: Mapping[str, str]
    ) -> list[Phase]:
        """Return the phases that have writes. `surplus` are the objects to delete: keys and uids."""
        shown = dict(current)
        phases = [
            self._create(layout.slices, shown),
            self._add(layout.slices, shown),
            self._remove(layout.slices, shown),
            self._delete(surplus),
        ]
        return [phase for phase in phases if phase.writes]

    # -- phases; each notes in `shown` what it makes of the objects

    def _create(self, slices: Sequence[PlannedSlice], shown: dict[int, PlacementDecision]) -> Phase:
        phase = Phase()
        for planned in slices:
            old, labels, key = shown.get(planned.number), self._labels(planned), self._key(planned.number)
            if old is None:
                new = PlacementDecision(metadata=self._metadata(planned, labels))
                phase.writes.append(
                    PlannedWrite(Create(kind="PlacementDecision", key=key, body=_document(new)), key, new)
                )
                phase.events.append(self._event("DecisionCreate", "DecisionCreated", self._note("created", new), new))
            elif any(old.labels.get(name) != value for name, value in labels.items()):
                new = _relabelled(old, labels)
                body = {"metadata": {"labels": labels}}
                phase.writes.append(PlannedWrite(Patch(kind="PlacementDecision", key=key, body=body), key, new))
            else:
                continue
            shown[planned.number] = new
        return phase

    def _add(self, slices: Sequence[PlannedSlice], shown: dict[int, PlacementDecision]) -> Phase:
        phase = Phase()
        for planned in slices:
            old = shown[planned.number]
            if self._write_clusters(phase, planned.number, [*planned.clusters, *planned.leaving], shown):
                note = scores_note(self._choice.ranking())
                if note:
                    phase.events.append(self._event("ScoreUpdate", "ScoreUpdated", note, old))
        return phase

    def _remove(self, slices: Sequence[PlannedSlice], shown: dict[int, PlacementDecision]) -> Phase:
        phase = Phase()
        for planned in slices:
            self._write_clusters(phase, planned.number, planned.clusters, shown)
        return phase

    def _write_clusters(
        self, phase: Phase, number: int, clusters: list[str], shown: dict[int, PlacementDecision]
    ) -> bool:
        """Add a write, unless the object lists these clusters already. True if other clusters are listed, or another
        order: of that an event tells, and not of scores alone.
        """
        old, key = shown[number], self._key(number)
        listed = tuple(map(self._entries.__getitem__, clusters))
        if listed == old.status.decisions:
            return False
        new = shown[number] = msgspec.structs.replace(old, status=PlacementDecisionStatus(listed))
        body = {"status": {"decisions": [_entry(each) for each in listed]}}
        phase.writes.append(PlannedWrite(Patch(kind="PlacementDecision", key=key, body=body), key, new))
        if list(old.cluster_names) == clusters:
            return False
        note, type_ = self._note("updated", old), "Normal"
        if self._status.code == WARNING:
            note, type_ = f"{note}: {self._status.message} in plugin {self._status.plugin}", "Warning"
        phase.events.append(self._event("DecisionUpdate", "DecisionUpdated", note, old, type_))
        return True

    def _delete(self, surplus: Mapping[str, str]) -> Phase:
        phase = Phase()
        for key, uid in surplus.items():
            gone = PlacementDecision(metadata=ObjectMeta(name=key.rpartition("/")[2]))
            action = Delete(kind="PlacementDecision", key=key, uid=uid, resource_version="")
            phase.writes.append(PlannedWrite(action, key, None))
            phase.events.append(self._event("DecisionDelete", "DecisionDeleted", self._note("deleted", gone), gone))
        return phase

    # -- parts of an object, and events

    def _key(self, number: int) -> str:
        return f"{self._placement.key}-decision-{number}"

    def _labels(self, planned: PlannedSlice) -> dict[str, str]:
        return {
            PLACEMENT_LABEL: self._placement.name,
            GROUP_INDEX_LABEL: str(planned.index),
            GROUP_NAME_LABEL: planned.name,
        }

    def _metadata(self, planned: PlannedSlice, labels: dict[str, str]) -> ObjectMeta:
        placement = self._placement
        owner = OwnerReference("Placement", placement.name, placement.uid, API_VERSION, controller=True)
        name = f"{placement.name}-decision-{planned.number}"
        return ObjectMeta(name=name, namespace=placement.namespace, labels=labels, owner_references=(owner,))

    def _note(self, verb: str, decision: PlacementDecision) -> str:
        placement = self._placement
        return f"Decision {decision.name} is {verb} with placement {placement.name} in namespace {placement.namespace}"

    def _event(self, reason: str, action: str, note: str, decision: PlacementDecision, type_: str = "Normal") -> Record:
        placement = self._placement
        related = ObjectRef(placement.namespace, decision.name, "", "PlacementDecision", API_VERSION)
        about = ObjectRef(placement.namespace, placement.name, placement.uid, "Placement", API_VERSION)
        return Record(
            pod=about, type=type_, reason=reason, action=action, note=note, reporting_controller=CONTROLLER,
            related=related,
        )  # fmt: skip


def scores_note(ranking: Iterable[tuple[str, int]]) -> str:
    """Return clusters and totals as in `c1:200 c2:145`, cut where the text becomes too long."""
    note = ""
    for name, total in ranking:
        part = f"{name}:{total} "
        if len(note) + len(part) > LONGEST_EVENT:
            return f"{note}......"
        note += part
    return note.rstrip()


def _document(decision: PlacementDecision) -> dict[str, Any]:
    metadata = decision.metadata
    owners = [msgspec.to_builtins(owner) | {"blockOwnerDeletion": True} for owner in metadata.owner_references]
    named = {"name": metadata.name, "namespace": metadata.namespace, "labels": metadata.labels}
    return {
        "apiVersion": API_VERSION,
        "kind": "PlacementDecision",
        "metadata": named | {"ownerReferences": owners},
    }


def _relabelled(old: PlacementDecision, labels: dict[str, str]) -> PlacementDecision:
    return msgspec.structs.replace(old, metadata=msgspec.structs.replace(old.metadata, labels=old.labels | labels))


def _entry(decision: ClusterDecision) -> dict[str, Any]:
    found: dict[str, Any] = {"clusterName": decision.cluster_name, "reason": decision.reason}
    return found | ({"score": decision.score} if decision.score else {})
