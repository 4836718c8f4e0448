"""Records of Open Cluster Management's decisions about placements: our answer to the same scenario, in the same form.

A record is a JSON object with `now`, `objects`, `placement` and `expect`, as in the golden files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from stowplan.apps.parity import node_records
from stowplan.columns.fleet.cluster_sets import ClusterSets
from stowplan.columns.fleet.clusters import Fleet
from stowplan.framework.placement import decision_groups, evaluation
from stowplan.framework.placement.choice import (
    ERROR,
    ClusterPluginStatus,
    PlacementChoice,
    PlacementQuestion,
    Prioritized,
)
from stowplan.framework.placement.decision_groups import ChosenGroup
from stowplan.objects import kinds
from stowplan.objects.clusters import AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding
from stowplan.objects.errors import StowplanError
from stowplan.objects.meta import Object
from stowplan.objects.placements import (
    GROUP_INDEX_LABEL,
    GROUP_NAME_LABEL,
    PLACEMENT_LABEL,
    Placement,
    PlacementDecision,
)
from stowplan.placement import status as placement_status
from stowplan.plugins import clusters

Answer = dict[str, Any]
LISTS: dict[str, type[Object]] = {
    "managedClusters": ManagedCluster,
    "managedClusterSets": ManagedClusterSet,
    "managedClusterSetBindings": ManagedClusterSetBinding,
    "addOnPlacementScores": AddOnPlacementScore,
    "placements": Placement,
    "placementDecisions": PlacementDecision,
}


def is_record(found: object) -> bool:
    """True if this has the form of a record of a placement; its contents may still be invalid."""
    if not isinstance(found, dict) or {"id", "now", "objects", "placement"} - found.keys():
        return False
    if not isinstance(found["id"], str | int) or not isinstance(found.get("category", ""), str):
        return False
    shapes = (found["objects"], found["placement"], found.get("expect") or {})
    lists = found["objects"].values() if isinstance(found["objects"], dict) else ()
    return all(isinstance(shape, dict) for shape in shapes) and all(isinstance(each or [], list) for each in lists)


def answer(scenario: Mapping[str, Any]) -> Answer:
    """Return our complete answer, in the form of a record's `expect`."""
    placement = kinds.convert(Placement, scenario["placement"])
    if placement.ignored:
        return {"skipped": True}
    choice = decide(placement, scenario["objects"], _timestamp(scenario["now"]))
    if choice.status.code == ERROR:
        return {"error": choice.status.message}
    groups, status = decision_groups.grouped(choice)
    named = list(_numbered(placement, groups))
    return {
        "eligibleSets": list(choice.sets),
        "candidates": choice.question.fleet.named(choice.candidates),
        "filtered": _filtered(choice),
        "prioritizers": _prioritizers(choice),
        "totals": choice.totals_by_name(),
        "decisions": choice.names,
        "unscheduled": choice.unscheduled,
        "status": {"code": status.code, "plugin": status.plugin, "message": status.message},
        "requeueAfterSeconds": _delay(choice),
        "numberOfSelectedClusters": len(choice.picked),
        "groups": [_group(index, group, names) for index, (group, names) in enumerate(named)],
        "slices": list(_slices(placement, named)),
        "conditions": _conditions(choice, status),
    }


def decide(placement: Placement, objects: Mapping[str, Any], now: float) -> PlacementChoice:
    """Return our decision about the placement among these objects, compatible with Open Cluster Management."""
    unknown = objects.keys() - LISTS.keys()
    if unknown:
        raise StowplanError(f"the record has lists of unknown kinds: {', '.join(sorted(unknown))}")
    fleet = Fleet()
    sets, own = ClusterSets(fleet, strict=False), list[str]()
    for name, kind in LISTS.items():
        for item in objects.get(name) or ():
            own += _add(kinds.convert(kind, item), fleet, sets, placement)
    asked = PlacementQuestion(placement, fleet, now, fleet.rows(own), ocm=True)
    policy = clusters.policy(ocm=True)
    return evaluation.finished(lambda: evaluation.choose(asked, sets, policy))


def _add(found: Object, fleet: Fleet, sets: ClusterSets, placement: Placement) -> tuple[str, ...]:
    """Add an object to the fleet or its sets. Return the clusters that it assigns to the placement."""
    match found:
        case ManagedCluster():
            fleet.put(found)
        case ManagedClusterSet() | ManagedClusterSetBinding():
            sets.put(found)
        case AddOnPlacementScore():
            fleet.put_score(found)
        case PlacementDecision():
            fleet.count_decision(found.cluster_names, 1)
            return found.cluster_names if found.placement == placement.key else ()
    return ()


def _timestamp(text: object) -> float:
    with suppress(ValueError):
        if isinstance(text, str):
            return datetime.fromisoformat(text).timestamp()
    raise StowplanError(f"the record's now is {text!r}, expected a time such as 2026-01-01T00:00:00Z")


def _filtered(choice: PlacementChoice) -> dict[str, list[str]]:
    names = [stage.name for stage in choice.stages]
    return {
        ",".join(names[: place + 1]): choice.question.fleet.named(stage.rows)
        for place, stage in enumerate(choice.stages)
    }


def _prioritizers(choice: PlacementChoice) -> list[Answer]:
    ordered = sorted(choice.prioritized, key=lambda each: (each.name, each.weight))
    return [{"name": each.name, "weight": each.weight, "scores": dict(_scores(choice, each))} for each in ordered]


def _scores(choice: PlacementChoice, each: Prioritized) -> Iterator[tuple[str, int]]:
    there = each.scored.present
    for place, name in enumerate(choice.question.fleet.named(choice.rows)):
        if there is None or there[place]:
            yield name, int(each.scored.values[place])


def _delay(choice: PlacementChoice) -> float | int | None:
    if choice.requeue_at is None:
        return None
    delay = choice.requeue_at - choice.question.now
    return int(delay) if delay == int(delay) else delay


def _numbered(placement: Placement, groups: list[ChosenGroup]) -> Iterator[tuple[ChosenGroup, list[str]]]:
    """Yield each group with the names of its PlacementDecisions, numbered across groups."""
    number = 0
    for group in groups:
        size = len(group.slices())
        yield group, [f"{placement.name}-decision-{number + place}" for place in range(1, size + 1)]
        number += size


def _group(index: int, group: ChosenGroup, names: list[str]) -> Answer:
    clusters = list(group.clusters)
    return {
        "index": index,
        "name": group.name,
        "decisions": names,
        "clusterCount": len(clusters),
        "clusters": clusters,
    }


def _slices(placement: Placement, named: list[tuple[ChosenGroup, list[str]]]) -> Iterator[Answer]:
    for index, (group, names) in enumerate(named):
        labels = {PLACEMENT_LABEL: placement.name, GROUP_INDEX_LABEL: str(index), GROUP_NAME_LABEL: group.name}
        for name, held in zip(names, group.slices(), strict=True):
            yield {"name": name, "labels": labels, "decisions": list(held)}


def _conditions(choice: PlacementChoice, status: ClusterPluginStatus) -> list[Answer]:
    found = placement_status.conditions(choice, status, len(choice.picked))
    return [
        {"type": each.type, "status": each.status, "reason": each.reason, "message": each.message} for each in found
    ]


# -- comparing


def differences(expected: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[tuple[str, object, object]]:
    """Yield all fields in which two answers differ. The wording of errors from CEL's compiler is not compared."""
    if "error" in expected and "error" in found:
        return
    expected, found = dict(expected), dict(found)
    _align_status(expected, found)
    yield from node_records.differences(expected, found)


def _align_status(expected: Answer, found: Answer) -> None:
    """Expect our status if it is one of several right ones. Of a compiler's message only the source is compared."""
    wanted, ours = expected.get("status"), found.get("status")
    if not isinstance(wanted, dict) or not isinstance(ours, dict):
        return
    alternatives = wanted.get("alternatives") or [wanted]
    plain = [{key: each.get(key) for key in ("code", "plugin", "message")} for each in alternatives]
    chosen = next((each for each in plain if each == ours), None)
    if chosen is None:
        chosen = next((each for each in plain if _from_library(each) and _source(each) == _source(ours)), plain[0])
        if _from_library(chosen) and _source(chosen) == _source(ours):
            chosen = ours
    expected["status"] = chosen
    if chosen["code"] == "Misconfigured":
        message = f"{chosen['plugin']}:{chosen['message']}"
        expected["conditions"] = [
            each | {"message": message} if each.get("reason") == "Misconfigured" else each
            for each in expected.get("conditions") or ()
        ]


def _source(status: Answer) -> tuple[str, str]:
    return status["code"], status["plugin"]


def _from_library(status: Answer) -> bool:
    """True if the message is that of CEL's compiler, whose wording is not ours."""
    return status["code"] == "Misconfigured" and str(status["message"]).startswith("compilation failed")
