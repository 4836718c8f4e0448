"""Why nodes cannot have a pod's volumes: bound ones that they do not reach, and claims that cannot be bound there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from stowplan.columns.arrays import Bools
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.volumes.matching import NO_PROVISIONER, VolumePlanner
from stowplan.framework.cause_texts import few, listed, term_text
from stowplan.framework.causes import Cause, Detail, NodeCause
from stowplan.objects.selectors import NodeTerm
from stowplan.objects.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim, StorageClass
from stowplan.plugins.nodes.default.claim_causes import of_class, volume_missing

NO_VOLUME = "no-volume"


def of_bound(
    claims: Sequence[PersistentVolumeClaim], nodes: Nodes, within_reach: Callable[[PersistentVolume, Nodes], Bools]
) -> Iterator[NodeCause]:
    """Yield the volumes of bound claims that nodes do not reach, or that do not exist."""
    for claim in {claim.key: claim for claim in claims}.values():
        volume = nodes.cluster.get(PersistentVolume, claim.spec.volume_name)
        if volume is None:
            yield NodeCause(np.ones(len(nodes), np.bool_), volume_missing(claim))
            continue
        rows = ~within_reach(volume, nodes)
        if rows.any():
            yield NodeCause(rows, _out_of_reach(volume, claim))


def _out_of_reach(volume: PersistentVolume, claim: PersistentVolumeClaim) -> Cause:
    terms = _shown(volume.node_terms)
    only = f": it is reachable from {few(terms, conjunction='or')} only" if terms else ""
    details: dict[str, Detail] = {"volume": volume.name, "claim": claim.key, "terms": listed(terms)}
    return Cause("volume-affinity", f"volume {volume.name} of claim {claim.name}{only}", details)


def _shown(terms: tuple[NodeTerm, ...] | None) -> list[str]:
    return [term_text(term) for term in terms or () if term.labels]


def of_unbound(claims: Sequence[PersistentVolumeClaim], nodes: Nodes, planner: VolumePlanner) -> Iterator[NodeCause]:
    """Yield the claims for which nodes have neither a volume nor room for a new one."""
    if not claims:
        return
    closed = ~planner.plan(claims, nodes).open
    left = closed.copy()
    for claim in {claim.key: claim for claim in claims}.values():
        alone = planner.plan([claim], nodes)
        for lacking, found in ((alone.no_volume, _no_volume), (alone.no_space, _no_space)):
            rows = None if lacking is None else lacking & closed
            if rows is not None and rows.any():
                left &= ~rows
                yield NodeCause(rows, found(claim, nodes.cluster))
    if left.any():
        names = sorted({claim.name for claim in claims})
        text = f"too few volumes for the claims {few(names)} together"
        yield NodeCause(left, Cause(NO_VOLUME, text, {"claims": listed(names)}))


def _no_volume(claim: PersistentVolumeClaim, cluster: Cluster) -> Cause:
    details: dict[str, Detail] = {"claim": claim.key, "class": claim.storage_class}
    if SELECTED_NODE in claim.annotations:
        node = claim.annotations[SELECTED_NODE]
        text = f"claim {claim.name} is being provisioned for node {node}"
        return Cause(NO_VOLUME, text, details | {"node": node})
    found = cluster.get(StorageClass, claim.storage_class)
    if found is None or found.provisioner in NO_PROVISIONER:
        exists = any(volume.storage_class == claim.storage_class for volume in cluster.every(PersistentVolume).values())
        where = "that the node reaches" if exists else "at all"
        text = f"claim {claim.name}: no free volume of {of_class(claim)} {where}, for {_size(claim)}"
        return Cause(NO_VOLUME, text, details)
    places = [
        f"{part.key}={few(part.values, conjunction='or')}"
        for term in found.allowed_topologies
        for part in term.match_label_expressions
    ]
    text = f"claim {claim.name}: {of_class(claim)} makes volumes in {few(places, conjunction='or')} only"
    return Cause(NO_VOLUME, text, details | {"topologies": listed(places)})


def _no_space(claim: PersistentVolumeClaim, cluster: Cluster) -> Cause:  # noqa: ARG001
    details: dict[str, Detail] = {"claim": claim.key, "class": claim.storage_class, "wanted": _size(claim)}
    text = f"claim {claim.name}: {of_class(claim)} has no capacity for {_size(claim)} there"
    return Cause("no-capacity", text, details)


def _size(claim: PersistentVolumeClaim) -> str:
    return str(claim.spec.resources.requests.get("storage", "any size"))
