"""What is shown in a form for programs: by commands (`-o json`, `-o yaml`) and on pages."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import click
import msgspec
import yaml

from stowplan.engine.groups.group import GroupState
from stowplan.framework.verdict import Decision

VERSION = "stowplan.io/v1alpha1"


def echo(found: Any, output: str) -> None:
    plain = msgspec.to_builtins(found, enc_hook=str)
    click.echo(json.dumps(plain, indent=4) if output == "json" else yaml.safe_dump(plain, sort_keys=False).rstrip())


def grouped(groups: Iterable[GroupState], start: datetime) -> dict[str, Any]:
    """Pod groups, as KubeNexus describes them; `start` is when the engine's clock was at nought."""
    items = []
    for each in sorted(groups, key=lambda each: each.group.name):
        namespace, _, name = each.group.name.partition("/")
        given = each.bound | each.assumed
        items.append(
            {
                "name": name,
                "namespace": namespace,
                "minAvailable": each.group.minimum,
                "timestamp": each.created or start + timedelta(seconds=each.since),
                "scheduledPods": len(given),
                "waitingPods": sum(uid not in given and not pod.terminating for uid, pod in each.pods.items()),
                "lastUpdateTime": start + timedelta(seconds=each.updated),
            }
        )
    return {"apiVersion": VERSION, "kind": "PodGroupInfoList", "items": items}


def decided(decision: Decision) -> dict[str, Any]:
    """A decision and its trail."""
    trail = decision.trail
    weights = {name: weight for name, (weight, _) in trail.scores.items()}
    return {
        "apiVersion": VERSION,
        "kind": "Decision",
        "pod": decision.pod.key,
        "uid": decision.pod.uid,
        "node": decision.node,
        "message": decision.full_message,
        "rejected": {
            name: {"plugin": verdict.plugin, "code": verdict.code, "reasons": verdict.reasons}
            for name, verdict in trail.rejections()
            if verdict is not None
        },
        "weights": weights,
        "scores": {name: {"plugins": each, "total": total} for name, each, total in trail.scored()},
    }
