"""Placements in manifests: which clusters each would get now, and what the others lack."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console

from stowplan.apps.explain.sources import ObjectSource
from stowplan.apps.place import diagnosis_output
from stowplan.apps.place import explain as place_explain
from stowplan.apps.place.configuration import load_policy
from stowplan.apps.place.explain_json import Answer as PlacementAnswer
from stowplan.apps.place.explain_json import explained
from stowplan.apps.place.kinds import KINDS
from stowplan.diagnosis.placements.diagnosis import PlacementDiagnosis, diagnose_placement
from stowplan.framework.placement.evaluation import finished
from stowplan.framework.placement.policy import ClusterPolicy
from stowplan.objects import kinds
from stowplan.objects.errors import ConfigError
from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement
from stowplan.placement.scheduler import PlacementScheduler


@dataclass(frozen=True)
class ExplainedPlacement:
    answer: PlacementAnswer
    diagnosis: PlacementDiagnosis
    commands: list[tuple[str, ...]]

    @property
    def satisfied(self) -> bool:
        """True if the placement gets all clusters that it asks for."""
        return place_explain.satisfied(self.answer)["status"] == "True" and not self.answer["error"]

    def show_diagnosis(self, console: Console) -> None:
        diagnosis_output.show(console, self.diagnosis, self.commands)


def explain(
    documents: Sequence[tuple[str, dict[str, Any]]], source: ObjectSource, namespace: str, config: Path | None
) -> list[ExplainedPlacement]:
    """Return the answers about placements that do not exist yet."""
    policy, objects = load_policy(config, (), ocm=False).policy, source.objects(KINDS, {})
    engine = place_explain.engine_of(objects, policy=policy)
    return [_explained(engine, policy, objects, _read(file, document, namespace)) for file, document in documents]


def _explained(
    engine: PlacementScheduler, policy: ClusterPolicy, objects: list[Object], placement: Placement
) -> ExplainedPlacement:
    now = time.time()
    answer = explained(finished(lambda: engine.choose(placement, now)))
    found = diagnose_placement(placement, objects, policy, now)
    typed = diagnosis_output.commands(found, placement, objects)
    return ExplainedPlacement(answer | diagnosis_output.as_json(found, typed), found, typed)


def _read(file: str, document: dict[str, Any], namespace: str) -> Placement:
    try:
        found = kinds.convert(Placement, document)
    except ConfigError as error:
        raise error.located(file) from None
    metadata = msgspec.structs.replace(found.metadata, namespace=found.namespace or namespace)
    return msgspec.structs.replace(found, metadata=metadata)


def show(console: Console, answers: Sequence[ExplainedPlacement]) -> None:
    for each in answers:
        place_explain.show(console, each.answer, each.show_diagnosis)
