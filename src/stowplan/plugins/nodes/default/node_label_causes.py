"""Which condition of a nodeSelector or of a node affinity nodes do not meet, and which values nodes have instead."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.columns.arrays import Bools
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.framework.cause_texts import condition, few, listed, nearest, term_text
from stowplan.framework.causes import Cause, Detail, NodeCause
from stowplan.objects.pods import Pod
from stowplan.objects.selectors import LabelRequirement, NodeTerm

SELECTOR, AFFINITY, ADDED = "node-selector", "node-affinity", "added-affinity"
MOST_COMPARED = 2000  # values or keys among which the nearest spelling is looked for


def causes(pod: Pod, nodes: Nodes, added: tuple[NodeTerm, ...] | None) -> Iterator[NodeCause]:
    """Yield a cause for each condition that some of these nodes do not meet. `added`: by the configuration."""
    if added is not None:
        yield from _of_terms(added, nodes, ADDED, "node affinity that the scheduler's configuration adds")
    for wanted in pod.shape.node_labels:
        yield from _unmet(wanted, nodes, SELECTOR, "nodeSelector")
    if pod.shape.node_terms is not None:
        yield from _of_terms(pod.shape.node_terms, nodes, AFFINITY, "node affinity")


def conflict(pod: Pod) -> Cause:
    """The terms of the pod's node affinity name nodes, and none that meets a whole term."""
    required = pod.spec.affinity.node_affinity.required
    terms = () if required is None else required.node_selector_terms
    names = sorted({name for term in terms for field in term.match_fields for name in field.values})
    text = f"node affinity wants a node to have several names at once: {few(names)}"
    return Cause("affinity-conflict", text, {"names": listed(names)})


def _of_terms(terms: tuple[NodeTerm, ...], nodes: Nodes, code: str, what: str) -> Iterator[NodeCause]:
    if len(terms) == 1:
        (term,) = terms
        for field in term.named:
            yield from _not_named(field, nodes, code, what)
        for wanted in term.labels:
            yield from _unmet(wanted, nodes, code, what)
        return
    rows: Bools = ~nodes.matching_any(terms)
    if not rows.any():
        return
    if not terms:
        text = f"{what}: no term of it can match a node"
    elif all(len(term.named) == 1 and not term.labels for term in terms):
        names = [term.named[0].values[0] for term in terms]
        yield NodeCause(rows, _limited(names, nodes.cluster, code, what))
        return
    else:
        text = f"{what}: none of {few([f'({term_text(term)})' for term in terms])}"
    yield NodeCause(rows, Cause(code, text, {"terms": listed(map(term_text, terms))}))


def _not_named(field: LabelRequirement, nodes: Nodes, code: str, what: str) -> Iterator[NodeCause]:
    rows = ~nodes.matching_term(NodeTerm((), (field,)))
    if not rows.any():
        return
    if field.key == "metadata.name" and field.operator == "In":
        yield NodeCause(rows, _limited(list(field.values), nodes.cluster, code, what))
    else:
        yield NodeCause(rows, Cause(code, f"{what} {condition(field)}", _details(field)))


def _limited(names: list[str], cluster: Cluster, code: str, what: str) -> Cause:
    missing = [name for name in names if cluster.nodes.position(name) is None]
    gone = f" ({few(missing)} {'do' if len(missing) > 1 else 'does'} not exist)" if missing else ""
    text = f"the pod is limited to {few(names)} by its {what}{gone}"
    return Cause(code, text, {"nodes": listed(names), "missing": listed(missing)})


def _unmet(wanted: LabelRequirement, nodes: Nodes, code: str, what: str) -> Iterator[NodeCause]:
    rows = ~nodes.label(wanted.key).meets(wanted)
    if rows.any():
        remark, more = _instead(wanted, nodes.cluster)
        yield NodeCause(rows, Cause(code, f"{what} {condition(wanted)}{remark}", _details(wanted) | more))


def _details(wanted: LabelRequirement) -> dict[str, Detail]:
    return {"key": wanted.key, "operator": wanted.operator, "values": listed(wanted.values)}


def _instead(wanted: LabelRequirement, cluster: Cluster) -> tuple[str, dict[str, Detail]]:
    """What nodes have instead, if no node of the cluster has what is wanted."""
    if wanted.operator not in ("In", "Exists"):
        return "", {}
    if not cluster.has_label(wanted.key):
        keys = sorted(cluster.state.table.label_keys)[:MOST_COMPARED]
        near = nearest((wanted.key,), keys)
        remark = f": no node has a label {wanted.key}" + (f" (there is {near})" if near else "")
        return remark, {"nearestKey": near or None}
    found = cluster.nodes.label(wanted.key).numbers()
    more: dict[str, Detail] = {"found": listed(found)}
    if wanted.operator == "Exists" or any(value in found for value in wanted.values):
        return "", more
    near = nearest(wanted.values, list(found)[:MOST_COMPARED])
    ordered = [near, *(value for value in found if value != near)] if near else list(found)
    return f": nodes have {few(ordered)}", more | {"nearest": near or None}
