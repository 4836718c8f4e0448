"""More nodes: like an existing one, of a pool, or of a template that the caller gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.diagnosis.case import Case, combined
from stowplan.diagnosis.edits import Edit, Edits, Scale
from stowplan.diagnosis.patches import HOSTNAME
from stowplan.diagnosis.remedy import AddNodes
from stowplan.objects.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_SEPARATOR
from stowplan.objects.nodes import Node
from stowplan.objects.storage import PersistentVolume, PersistentVolumeClaim

ADD_NODES = "add-nodes"
MOST_TEMPLATES = 6  # that are looked at; those of which there are most nodes
MOST_NODES = 3  # that are added together
_OF_THE_NODE = "node.kubernetes.io/"  # taints that say how a node is just now
# What these plugins reject on a node depends on what the node is, not on what runs there.
_VOLUMES = frozenset(("VolumeBinding", "VolumeZone"))
_BY_NATURE = (
    "TaintToleration",
    "NodeAffinity",
    "VolumeBinding",
    "VolumeZone",
    "NodeDeclaredFeatures",
    "DynamicResources",
)


def proposals(case: Case, templates: Mapping[str, Node], pool_label: str) -> Iterator[Edits]:
    """Yield one more node of each template, the most promising first; then two, and three."""
    documents: dict[str, dict[str, Any]] = {
        name: new_node(msgspec.json.decode(msgspec.json.encode(node, enc_hook=str))) for name, node in templates.items()
    }
    suited, also = _existing(case, pool_label, {}), ""
    if not suited:
        labels = _volume_labels(case)
        also = f"the new node must have {', '.join(map('='.join, labels.items()))}, where the pod's volume can be used"
        suited = _existing(case, pool_label, labels) if labels else []
    known = {name: (document, "") for name, document in documents.items()}
    known |= {name: (document, also) for name, document in suited}
    for number in range(1, MOST_NODES + 1):
        for name, (document, more) in known.items():
            yield (adding(number, name, document, more),)


def adding(number: int, name: str, document: dict[str, Any], also: str = "") -> Edit:
    """Return the edit that adds so many nodes."""
    added = AddNodes(number, name, document)
    scale = Scale(number, 0, -1, lambda amount: adding(amount, name, document, also))
    return Edit(ADD_NODES, added.text, (added,), size=float(number), scale=scale, also=also)


def _existing(case: Case, pool_label: str, labels: Mapping[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """Return nodes that could host the pod if they were empty, one of each pool, size and zone.

    labels   those of the domain of the pod's volumes: then nodes count that could host it there
    """
    nodes = case.nodes
    suited: Bools = np.ones(len(nodes), np.bool_)
    for name, rejected in case.rejected.items():
        if name in _BY_NATURE and not (labels and name in _VOLUMES):
            suited &= ~rejected | (nodes.unschedulable if name == "TaintToleration" else False)
    for enabled in case.profile.needs_free_filters:
        for resource, amount in enabled.plugin.needs_free(case.pod):
            suited &= nodes.allocatable[resource] >= amount
    rows = np.flatnonzero(suited)
    if not len(rows):
        return []
    pools = nodes.label(pool_label)
    kinds = combined(
        pools.codes[rows],
        nodes.label(ZONE).codes[rows],
        nodes.allocatable["cpu"][rows],
        nodes.allocatable["memory"][rows],
    )
    _, first, counts = np.unique(kinds, return_index=True, return_counts=True)
    found: list[tuple[str, dict[str, Any]]] = []
    for at in np.argsort(-counts, kind="stable")[:MOST_TEMPLATES].tolist():
        node = nodes[int(rows[first[at]])]
        pool = node.labels.get(pool_label)
        name = node.name if pool is None else pool
        document = new_node(case.trying["Node", node.name])
        document["metadata"] = {"labels": {**document["metadata"].get("labels", {}), **labels}}
        found.append((name, document))
    return found


def _volume_labels(case: Case) -> dict[str, str]:
    """Return the labels that a node needs to reach the pod's volumes."""
    labels: dict[str, str] = {}
    for key in case.pod.shape.claims:
        claim = case.state.store.get(PersistentVolumeClaim, key)
        volume = None if claim is None else case.state.store.get(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            continue
        for term in (volume.node_terms or ())[:1]:
            for each in term.labels:
                if each.operator == "In":
                    labels[each.key] = each.values[0]
        for name in (REGION, ZONE, BETA_REGION, BETA_ZONE):
            values = [value.strip() for value in volume.labels.get(name, "").split(ZONE_SEPARATOR)]
            if all(values):
                labels.setdefault(name, values[0])
    return labels


def new_node(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a new node like this: without a name, uncordoned, without passing taints."""
    labels = dict((node.get("metadata") or {}).get("labels") or {})
    if HOSTNAME in labels:
        labels[HOSTNAME] = ""
    spec, status = node.get("spec") or {}, node.get("status") or {}
    taints = [taint for taint in spec.get("taints") or () if not str(taint.get("key", "")).startswith(_OF_THE_NODE)]
    kept = {name: status[name] for name in ("allocatable", "capacity", "declaredFeatures") if name in status}
    kept.setdefault("capacity", kept.get("allocatable", {}))
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"labels": labels} if labels else {},
        "spec": {"taints": taints} if taints else {},
        "status": kept,
    }
