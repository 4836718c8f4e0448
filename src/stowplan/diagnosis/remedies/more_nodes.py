"""More nodes: like an existing one, of a pool, or of a template that the caller gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.diagnosis import node_templates
from stowplan.diagnosis.case import Case, combined
from stowplan.diagnosis.edits import Edit, Edits, Scale
from stowplan.diagnosis.node_templates import NodeTemplate
from stowplan.diagnosis.remedy import AddNodes
from stowplan.framework.plugin_calls import call_list
from stowplan.objects.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_SEPARATOR
from stowplan.objects.nodes import Node
from stowplan.objects.storage import PersistentVolume, PersistentVolumeClaim
from stowplan.objects.taints import HARD_EFFECTS, Taint, tolerated

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
    suited, also = _existing(case, pool_label), ""
    labels: Mapping[str, str] = {}
    if not suited:
        labels = _volume_labels(case)
        also = f"the new node must have {', '.join(map('='.join, labels.items()))}, where the pod's volume can be used"
        suited = _existing(case, pool_label, in_domain=True) if labels else []
    known = _templates(case, templates, suited, pool_label)
    for number in range(1, MOST_NODES + 1):
        for place, each in enumerate(known):
            if place < len(templates):
                yield (adding(number, each),)
            else:
                yield (adding(number, _labelled(each, labels), also),)


def every_kind(case: Case, templates: Mapping[str, Node], pool_label: str) -> list[NodeTemplate]:
    """Return all templates: also nodes that are large enough, but reject the pod for what they are."""
    return _templates(case, templates, _existing(case, pool_label, by_nature=False), pool_label)


def _templates(case: Case, templates: Mapping[str, Node], nodes: Sequence[Node], pool_label: str) -> list[NodeTemplate]:
    return node_templates.templates(templates, nodes, pool_label, lambda node: case.trying["Node", node.name])


def _labelled(template: NodeTemplate, labels: Mapping[str, str]) -> NodeTemplate:
    if not labels:
        return template
    own = template.document["metadata"].get("labels", {})
    return replace(template, document={**template.document, "metadata": {"labels": {**own, **labels}}})


def adding(number: int, template: NodeTemplate, also: str = "") -> Edit:
    """Return the edit that adds so many nodes."""
    added = AddNodes(number, template.name, template.document, template.told)
    scale = Scale(number, 0, -1, lambda amount: adding(amount, template, also))
    return Edit(ADD_NODES, added.text, (added,), size=float(number), scale=scale, also=also)


def _existing(case: Case, pool_label: str, *, by_nature: bool = True, in_domain: bool = False) -> list[Node]:
    """Return nodes that could host the pod if they were empty, one of each pool, size, zone and taints.

    by_nature   False: also nodes that are large enough and reject the pod for what they are
    in_domain   they count as if they were where the pod's volumes are
    """
    nodes = case.nodes
    suited: Bools = np.ones(len(nodes), np.bool_)
    for name, rejected in case.rejected.items():
        if by_nature and name in _BY_NATURE and not (in_domain and name in _VOLUMES):
            suited &= ~rejected | (_without_passing_taints(case) if name == "TaintToleration" else False)
    for enabled in case.profile.needs_free_filters:
        for resource, amount in call_list(enabled, enabled.plugin.needs_free, tuple, case.pod):
            suited &= nodes.allocatable[resource] >= amount
    rows = np.flatnonzero(suited)
    if not len(rows):
        return []
    kinds = combined(
        nodes.label(pool_label).codes[rows],
        nodes.label(ZONE).codes[rows],
        nodes.allocatable["cpu"][rows],
        nodes.allocatable["memory"][rows],
        _lasting_taints(case)[rows],
    )
    _, first, counts = np.unique(kinds, return_index=True, return_counts=True)
    most = np.argsort(-counts, kind="stable")[:MOST_TEMPLATES]
    table = case.state.table.nodes
    return [node for at in nodes.rows[rows[first[most]]].tolist() if (node := table[at]) is not None]


def _lasting_taints(case: Case) -> Ints:
    """Return numbers that are equal where nodes have the same taints, but for those that say how a node is."""
    numbers: dict[tuple[Taint, ...], int] = {}

    def number(taints: tuple[Taint, ...]) -> int:
        lasting = tuple(each for each in taints if not each.key.startswith(_OF_THE_NODE))
        return numbers.setdefault(lasting, len(numbers))

    return case.nodes.taints.number(number)


def _without_passing_taints(case: Case) -> Bools:
    """True for nodes whose taints the pod tolerates but for those that say how a node is: a new one has none of these.

    A cordoned node counts, whatever taints it has.
    """
    tolerations = case.pod.tolerations

    def stays(taint: Taint) -> bool:
        return taint.effect in HARD_EFFECTS and not taint.key.startswith(_OF_THE_NODE)

    keeps_away = case.nodes.taints.where(
        lambda taints: any(stays(taint) and not tolerated(taint, tolerations) for taint in taints)
    )
    return case.nodes.unschedulable | ~keeps_away


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
