"""The diagnosis of a placement that does not get its clusters: for people and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from rich.console import Console

from stowplan.apps.explain import answer_json
from stowplan.apps.explain.kubectl_commands import RemedyCommands
from stowplan.apps.explain.sentences import joined
from stowplan.apps.explain.texts import shortened, some
from stowplan.diagnosis.diagnosis import NamedCause
from stowplan.diagnosis.placements.diagnosis import PlacementDiagnosis
from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement

MAX_CAUSES, MAX_REMEDIES = 4, 6


def commands(
    found: PlacementDiagnosis, placement: Placement, objects: Sequence[Object], flags: Sequence[str] = ()
) -> list[tuple[str, ...]]:
    """Return the commands of each remedy."""
    known = {(type(each).__name__, each.key): each for each in (*objects, placement)}

    def document(kind: str, key: str) -> Mapping[str, Any] | None:
        found = known.get((kind, key))
        return None if found is None else msgspec.to_builtins(found, enc_hook=str)

    made = RemedyCommands(document, lambda _: None, flags)
    return [made.of(each.changes) for each in found.remedies]


def as_json(found: PlacementDiagnosis, typed: Sequence[tuple[str, ...]]) -> dict[str, Any]:
    return {
        "causes": [answer_json.cause(each) for each in found.causes],
        "clusterCauses": [
            {
                "count": len(group.nodes),
                "clusters": list(group.nodes),
                "causes": [answer_json.cause(each) for each in group.causes],
            }
            for group in found.clusters
        ],
        "remedies": [
            {
                "code": each.code,
                "text": each.text,
                "clusters": list(each.clusters),
                "also": list(each.also),
                "changes": answer_json.changes(each.changes),
                "commands": list(lines),
            }
            for each, lines in zip(found.remedies, typed, strict=True)
        ],
        "waits": [{"code": each.code, "text": each.text} for each in found.waits],
        "never": found.never,
        "bounded": found.bounded,
    }


def show(console: Console, found: PlacementDiagnosis, typed: Sequence[tuple[str, ...]]) -> None:
    """Print the causes, and the remedies with their commands."""
    lines = [f"the placement: {_told(found.causes)}"] if found.causes else []
    for group in found.clusters:
        named = group.nodes[0] if len(group.nodes) == 1 else f"{len(group.nodes)} clusters"
        lines.append(f"{named}: {_told(group.causes)}")
    for line in lines[:MAX_CAUSES]:
        console.print(f"  {shortened(line, console.width - 2)}")
    if len(lines) > MAX_CAUSES:
        console.print(f"  … and {len(lines) - MAX_CAUSES} more groups of clusters; -o json has all")
    if found.remedies:
        console.print("Remedies, each tried:" if len(found.remedies) > 1 else "Remedy, tried:")
    for number, (remedy, commands) in enumerate(list(zip(found.remedies, typed, strict=True))[:MAX_REMEDIES], 1):
        gets = f" → {some(remedy.clusters)}" if remedy.clusters else ""
        console.print(f"  {number}. {remedy.text}{gets}", soft_wrap=True)
        for command in commands:
            console.print(f"     {command}" if "\n" not in command else command, soft_wrap=True)
        for each in remedy.also:
            console.print(f"     {each}", soft_wrap=True)
    for wait in found.waits:
        console.print(f"Or wait: {wait.text}." if found.remedies else f"Wait: {wait.text}.", soft_wrap=True)
    if found.never:
        console.print(f"As it is, it never gets its clusters: {found.never}.", soft_wrap=True)
    if found.bounded:
        console.print(f"Not all was searched: {found.bounded}.", soft_wrap=True)


def _told(causes: Sequence[NamedCause]) -> str:
    return joined(tuple(causes))
