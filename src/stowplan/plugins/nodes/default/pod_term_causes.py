"""Which term of an affinity between pods keeps a pod off nodes, and which pods are behind it.

pod-affinity              a required term of the pod: no pod matches it, or those that do are in other domains
pod-anti-affinity         a required term of the pod, and the pods that match it
existing-anti-affinity    required terms of other pods that this pod matches, and these pods
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stowplan.columns.arrays import Bools, Ints
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.tally import Tally
from stowplan.framework.cause_texts import MOST_LISTED, few, listed, nearest, selector_text
from stowplan.framework.causes import Cause, Detail, NodeCause
from stowplan.objects.affinity import AffinityTerm, PodQuery
from stowplan.objects.pods import Pod
from stowplan.objects.shape import REQUIRED_ANTI
from stowplan.plugins.nodes.default.holders import first_pods, rows_of


def unmet_affinity(pod: Pod, nodes: Nodes, refused: Bools) -> Iterator[NodeCause]:
    """Yield the terms of the pod's affinity that `refused` nodes do not meet."""
    terms, cluster = pod.shape.required_affinity, nodes.cluster
    if not terms or not refused.any():
        return
    tally = cluster.count(*(cluster.query(term) for term in terms))  # a pod must match all terms at once
    for term in terms:
        counts, label = cluster.by_domain(tally, term.topology_key), nodes.label(term.topology_key)
        rows = refused & ~(counts[label.codes] > 0)
        if not rows.any():
            continue
        details = _details(term)
        what, matches = f"pod affinity to {_subject(term)}", "matches" if len(terms) == 1 else "matches all terms"
        if not cluster.has_label(term.topology_key):
            remark = f"no node has the label {term.topology_key}"
        elif counts.any():
            domains = _domains(nodes, term.topology_key, counts)
            remark = f"pods that match are in {term.topology_key} {few(domains)}"
            details["domains"] = listed(domains)
        elif tally.empty:
            near = _nearest(term, cluster)
            remark = f"no pod {matches}" + (f" (there is {near})" if near else "")
            details["nearest"] = near or None
        else:
            remark = f"pods that match are on nodes without the label {term.topology_key}"
        yield NodeCause(rows, Cause("pod-affinity", f"{what}: {remark}", details))


def own_anti_affinity(pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
    """Yield the terms of the pod's anti-affinity for which nodes are in a domain of pods that match."""
    cluster = nodes.cluster
    for term in pod.shape.required_anti_affinity:
        query, label = cluster.query(term), nodes.label(term.topology_key)
        tally = cluster.count(query)
        counts = cluster.by_domain(tally, term.topology_key)
        rows: Bools = counts[label.codes] > 0
        if not rows.any():
            continue
        domains = np.unique(label.codes[rows])
        count, pods = int(counts[domains].sum()), _matching(cluster, query, tally, term.topology_key, domains)
        details = _details(term) | {"pods": tuple(pods), "count": count}
        text = f"anti-affinity with {few(pods, count)} ({_subject(term)})"
        yield NodeCause(rows, Cause("pod-anti-affinity", text, details))


def anti_affinity_of_others(pod: Pod, nodes: Nodes, key: str, counts: Ints) -> Iterator[NodeCause]:
    """Yield the pods with an anti-affinity against this pod in these nodes' domains of one topology key."""
    label, cluster = nodes.label(key), nodes.cluster
    rows: Bools = counts[label.codes] > 0
    if not rows.any():
        return
    domains, pods = np.unique(label.codes[rows]), dict[str, None]()
    selectors: dict[str, None] = {}
    for term, tally in cluster.terms_matching(REQUIRED_ANTI, pod):
        if not isinstance(term, AffinityTerm) or term.topology_key != key:
            continue
        where = rows_of(tally)
        where = where[np.isin(label.all_codes[where], domains)]
        found = first_pods(cluster, where, (REQUIRED_ANTI, term))
        pods |= dict.fromkeys(found)
        selectors |= {selector_text(term.selector): None} if found else {}
        if len(pods) >= MOST_LISTED:
            break
    names = list(pods)[:MOST_LISTED]
    count = len(names) if len(names) < MOST_LISTED else int(counts[domains].sum())
    text = f"anti-affinity of {few(names, count)} against the pod ({few(list(selectors))} by {key})"
    details: dict[str, Detail] = {"topologyKey": key, "selectors": listed(selectors), "pods": tuple(names)}
    yield NodeCause(rows, Cause("existing-anti-affinity", text, details | {"count": count}))


def _subject(term: AffinityTerm) -> str:
    return f"{selector_text(term.selector)} by {term.topology_key}"


def _details(term: AffinityTerm) -> dict[str, Detail]:
    return {"topologyKey": term.topology_key, "selector": selector_text(term.selector)}


def _domains(nodes: Nodes, key: str, counts: Ints) -> list[str]:
    """Return the domains with pods, those with the most nodes first."""
    label = nodes.cluster.nodes.label(key)
    there = {value: label.code(value) for value in label.numbers()}
    return [value for value, code in there.items() if code is not None and counts[code] > 0]


def _matching(cluster: Cluster, query: PodQuery, tally: Tally, key: str, domains: Ints) -> list[str]:
    """Return namespace/name of the first pods that match a query, in these domains. `tally`: the query's."""
    label, found, rows = cluster.nodes.label(key), list[str](), rows_of(tally)
    wanted = np.zeros(label.size, np.bool_)
    wanted[domains] = True
    for row in rows[wanted[label.all_codes[rows]]].tolist():
        there = (placed.pod for placed in cluster.state.pods_on[row].values())
        found += [pod.key for pod in there if query.matches(pod.namespace, pod.labels)]
        if len(found) >= MOST_LISTED:
            break
    return found[:MOST_LISTED]


def _nearest(term: AffinityTerm, cluster: Cluster) -> str:
    """Return the label of pods that is spelled most like one that the term wants and no pod has."""
    for wanted in term.selector or ():
        values = cluster.pod_label_values(wanted.key)
        if wanted.operator == "In" and values.isdisjoint(wanted.values):
            near = nearest(wanted.values, sorted(values)[:2000])
            return f"{wanted.key}={near}" if near else ""
    return ""
