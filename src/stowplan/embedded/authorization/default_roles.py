"""The roles and bindings that a cluster starts with: those that users, schedulers and Stowplan's own manifests name.

`default_roles.json` records their rules as the API of Kubernetes has them. A real cluster has more of them, for
controllers and kubelets that are part of this process here.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from stowplan.embedded.authorization import role_aggregation
from stowplan.embedded.authorization.role_kinds import GROUP
from stowplan.embedded.documents import Document

_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_ANNOTATIONS = {"rbac.authorization.kubernetes.io/autoupdate": "true"}


@cache
def documents() -> tuple[Document, ...]:
    """The objects, in an order in which they can be created. Aggregated roles have their rules already."""
    recorded: list[dict[str, Any]] = json.loads(files(__package__).joinpath("default_roles.json").read_bytes())
    found: list[Document] = []
    for entry in recorded:
        document = _document(entry)
        if "aggregationRule" in document:
            roles = [each for each in found if each["kind"] == "ClusterRole"]
            document["rules"] = role_aggregation.rules(document, roles)
        found.append(document)
    return tuple(found)


def _document(entry: dict[str, Any]) -> Document:
    metadata = {"name": entry["name"], "labels": {**_LABELS, **entry.get("labels", {})}, "annotations": _ANNOTATIONS}
    if "namespace" in entry:
        metadata["namespace"] = entry["namespace"]
    document: Document = {"apiVersion": f"{GROUP}/v1", "kind": entry["kind"], "metadata": metadata}
    if "aggregates" in entry:
        selectors = [{"matchLabels": labels} for labels in entry["aggregates"]]
        return {**document, "aggregationRule": {"clusterRoleSelectors": selectors}}
    if "rules" in entry:
        return {**document, "rules": entry["rules"]}
    kind, name = entry["role"]
    return {**document, "roleRef": {"kind": kind, "name": name}, "subjects": entry["subjects"]}
