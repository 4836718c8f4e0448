"""What commands (`-o json`, `-o yaml`) and pages print for programs to read."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import click
import msgspec

from stowplan.engine.groups.group import GroupState
from stowplan.framework.decision import Decision
from stowplan.objects import yaml_text

VERSION = "stowplan.io/v1alpha1"


def echo(document: object, output: str) -> None:
    plain = msgspec.to_builtins(document, enc_hook=str)
    click.echo(json.dumps(plain, indent=4) if output == "json" else yaml_text.dump(plain).rstrip())


def pod_groups(groups: Iterable[GroupState], start: datetime) -> dict[str, Any]:
    """Pod groups, in KubeNexus' form; `start` is the time at which the engine's clock was 0."""
    items = []
    for each in sorted(groups, key=lambda each: each.group.name):
        namespace, _, name = each.group.name.partition("/")
        scheduled = each.bound | each.assumed
        items.append(
            {
                "name": name,
                "namespace": namespace,
                "minAvailable": each.group.minimum,
                "timestamp": each.created or start + timedelta(seconds=each.since),
                "scheduledPods": len(scheduled),
                "waitingPods": sum(uid not in scheduled and not pod.terminating for uid, pod in each.pods.items()),
                "lastUpdateTime": start + timedelta(seconds=each.updated),
            }
        )
    return {"apiVersion": VERSION, "kind": "PodGroupInfoList", "items": items}


def decision(decision: Decision) -> dict[str, Any]:
    """Return a decision, with the verdict and the scores of each node."""
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
