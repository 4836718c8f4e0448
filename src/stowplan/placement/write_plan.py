"""What has to be written for a placement, in phases: each is sent when all of the one before it has succeeded.

1 create    objects that are not there yet (without decisions: a server drops them from what is new); labels
2 add       everything an object is to have, and still what is on its way to another
3 remove    what has arrived there
4 delete    objects that nobody needs
5 say       the placement's own status
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from stowplan.framework.placement.decision import WARNING, PluginStatus
from stowplan.objects.actions import Action, Create, Delete, ObjectRef, Patch, Record
from stowplan.objects.meta import ObjectMeta, OwnerReference
from stowplan.objects.placements import (
    API_VERSION,
    GROUP_INDEX_LABEL,
    GROUP_NAME_LABEL,
    PLACEMENT_LABEL,
    ClusterDecision,
    Placement,
    PlacementDecision,
    PlacementDecisionStatus,
)
from stowplan.placement import messages
from stowplan.placement.slices import ExistingSlice, PlannedSlice, SliceLayout

CONTROLLER = "placementController"
Ranking = Callable[[], Iterable[tuple[str, int]]]  # clusters and their totals, by name


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """An action, and what it will make of a decision object (None: it will be gone); "" if it is about none."""

    action: Action
    key: str = ""
    becomes: PlacementDecision | None = None


@dataclass(slots=True)
class Phase:
    writes: list[PlannedWrite] = field(default_factory=list)
    events: list[Record] = field(default_factory=list)  # once it has succeeded


@dataclass(slots=True)
class WritePlanner:
    """What is the same in all that is written for a placement."""

    placement: Placement
    status: PluginStatus
    entries: Mapping[str, ClusterDecision]  # what is to be said about each chosen cluster
    uids: Mapping[str, str]

    def key(self, number: int) -> str:
        return f"{self.placement.namespace}/{self.name(number)}"

    def name(self, number: int) -> str:
        return f"{self.placement.name}-decision-{number}"

    def labels(self, slot: PlannedSlice) -> dict[str, str]:
        return {PLACEMENT_LABEL: self.placement.name, GROUP_INDEX_LABEL: str(slot.index), GROUP_NAME_LABEL: slot.name}

    def event(self, reason: str, action: str, note: str, decision: str, kind: str = "Normal") -> Record:
        mine = self.placement
        related = ObjectRef(mine.namespace, decision, "", "PlacementDecision", API_VERSION)
        about = ObjectRef(mine.namespace, mine.name, mine.uid, "Placement", API_VERSION)
        return Record(
            pod=about, type=kind, reason=reason, action=action, note=note, reporting_controller=CONTROLLER,
            related=related,
        )  # fmt: skip


def phases(
    author: WritePlanner,
    layout: SliceLayout,
    current: Mapping[int, PlacementDecision],
    held: Mapping[int, ExistingSlice],
    odd: list[str],
    ranking: Ranking,
) -> Iterator[Phase]:
    """All but the last phase; those with nothing to do are left out. `odd` are objects that have no number."""
    shown = dict(current)
    yield _create(author, layout, shown)
    moving = layout.moving(held)
    yield _contents(author, layout, shown, moving, ranking)
    yield _contents(author, layout, shown, {}, lambda: ())
    yield _delete(author, layout, odd)


def _create(author: WritePlanner, layout: SliceLayout, shown: dict[int, PlacementDecision]) -> Phase:
    phase = Phase()
    for slot in layout.slots:
        labels, old, key = author.labels(slot), shown.get(slot.number), author.key(slot.number)
        if old is None:
            new = PlacementDecision(metadata=_metadata(author, slot, labels))
            phase.writes.append(PlannedWrite(Create(kind="PlacementDecision", key=key, body=_document(new)), key, new))
            note = messages.created(author.placement, new.name)
            phase.events.append(author.event("DecisionCreate", "DecisionCreated", note, new.name))
        elif any(old.labels.get(name) != value for name, value in labels.items()):
            new = _relabelled(old, labels)
            body = {"metadata": {"labels": labels}}
            phase.writes.append(PlannedWrite(Patch(kind="PlacementDecision", key=key, body=body), key, new))
        else:
            continue
        shown[slot.number] = new
    return phase


def _metadata(author: WritePlanner, slot: PlannedSlice, labels: dict[str, str]) -> ObjectMeta:
    mine = author.placement
    owner = OwnerReference("Placement", mine.name, mine.uid, API_VERSION, controller=True)
    return ObjectMeta(name=author.name(slot.number), namespace=mine.namespace, labels=labels, owner_references=(owner,))


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


def _contents(
    author: WritePlanner, layout: SliceLayout, shown: dict[int, PlacementDecision], moving: Mapping[int, list[str]],
    ranking: Ranking,
) -> Phase:  # fmt: skip
    phase = Phase()
    for slot in layout.slots:
        old, key = shown[slot.number], author.key(slot.number)
        wanted = [*slot.clusters, *moving.get(slot.number, ())]
        if list(old.cluster_names) == wanted and not _rescored(author, old):
            continue
        new = msgspec.structs.replace(old, status=PlacementDecisionStatus(tuple(author.entries[c] for c in wanted)))
        body = {"status": {"decisions": [_entry(each) for each in new.status.decisions]}}
        phase.writes.append(PlannedWrite(Patch(kind="PlacementDecision", key=key, body=body), key, new))
        phase.events += _told(author, old.name, ranking)
        shown[slot.number] = new
    return phase


def _rescored(author: WritePlanner, old: PlacementDecision) -> bool:
    """Are scores to be written anew? They are only where the order goes by them."""
    return author.placement.by_score and any(
        author.entries.get(each.cluster_name, each) != each for each in old.status.decisions
    )


def _entry(decision: ClusterDecision) -> dict[str, Any]:
    found: dict[str, Any] = {"clusterName": decision.cluster_name, "reason": decision.reason}
    return found | ({"score": decision.score} if decision.score else {})


def _told(author: WritePlanner, name: str, ranking: Ranking) -> Iterator[Record]:
    note, kind = messages.updated(author.placement, name, author.status), "Normal"
    if author.status.code == WARNING:
        kind = "Warning"
    yield author.event("DecisionUpdate", "DecisionUpdated", note, name, kind)
    note = messages.scores(ranking())
    if note:
        yield author.event("ScoreUpdate", "ScoreUpdated", note, name)


def _delete(author: WritePlanner, layout: SliceLayout, odd: list[str]) -> Phase:
    phase = Phase()
    for key in (*(author.key(number) for number in layout.surplus), *odd):
        name = key.rpartition("/")[2]
        action = Delete(kind="PlacementDecision", key=key, uid=author.uids.get(key, ""), resource_version="")
        phase.writes.append(PlannedWrite(action, key, None))
        note = messages.deleted(author.placement, name)
        phase.events.append(author.event("DecisionDelete", "DecisionDeleted", note, name))
    return phase
