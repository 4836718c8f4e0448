"""Why a WorkloadPolicy rejects a pod or nodes: the policy, the domains, and how many pods they have and should have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from stowplan.columns.nodes.table import ABSENT
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.tally import Tally
from stowplan.framework.cause_texts import MOST_LISTED, few, listed, nearest
from stowplan.framework.causes import Cause, Detail, NodeCause
from stowplan.objects.meta import OwnerReference
from stowplan.objects.pods import Pod
from stowplan.objects.workload_policies import AllocationRule, WorkloadPolicy
from stowplan.plugins.nodes.workload_policy.naming import policy_name


def of_pod(pod: Pod, cluster: Cluster) -> Iterator[Cause]:
    """Yield what is wrong with the pod's policy."""
    name = policy_name(pod, cluster)
    if isinstance(name, OwnerReference):
        text = f"{name.kind} {name.name}, which may name a WorkloadPolicy, is not known yet"
        yield Cause("owner-unknown", text, {"kind": name.kind, "name": name.name})
        return
    policy, details = cluster.get(WorkloadPolicy, f"{pod.namespace}/{name}"), {"policy": f"{pod.namespace}/{name}"}
    if policy is None:
        others = [each.name for each in cluster.every(WorkloadPolicy).values() if each.namespace == pod.namespace]
        near = nearest((name,), others)
        remark = f" (there is {near})" if near else ""
        text = f"WorkloadPolicy {name} does not exist{remark}"
        yield Cause("policy-missing", text, {**details, "nearest": near or None})
    elif policy.rule.problems:
        text = f"WorkloadPolicy {name} is not valid: {few(policy.rule.problems)}"
        yield Cause("policy-invalid", text, {**details, "problems": listed(policy.rule.problems)})
    else:
        yield Cause(
            "policy-selector", f"the pod's labels don't match the labelSelector of WorkloadPolicy {name}", details
        )


def of_nodes(
    name: str, rule: AllocationRule, desired: Mapping[str, int], tally: Tally, nodes: Nodes
) -> Iterator[NodeCause]:
    """Yield why nodes are outside of the policy's domains, or in full ones. `desired`: pods by listed domain."""
    label, policy, key = nodes.label(rule.topology_key), f"WorkloadPolicy {name}", rule.topology_key
    details: dict[str, Detail] = {"policy": name, "topologyKey": key}
    if not label.present.all():
        yield NodeCause(~label.present, Cause("policy-label", f"{policy}: the node has no label {key}", details))
    unlisted = label.present & ~label.isin(desired)
    if unlisted.any():
        text = f"{policy} lists {key} {few(list(desired)) or 'nothing'} only"
        yield NodeCause(unlisted, Cause("policy-domain", text, details | {"domains": listed(desired)}))
    if not rule.required:
        return
    counts = nodes.cluster.by_domain(tally, key)
    codes = {domain: label.code(domain) for domain in desired}
    there = {domain: 0 if code is None else int(counts[code]) for domain, code in codes.items()}
    over = np.zeros(label.size, np.bool_)
    over[[code for domain, code in codes.items() if code is not None and there[domain] >= desired[domain]]] = True
    over[ABSENT] = False
    full = over[label.codes]
    if full.any():
        filled = [domain for domain in desired if there[domain] >= desired[domain]]
        shown = few([f"{domain} ({there[domain]} of {desired[domain]})" for domain in filled])
        pods: dict[str, Detail] = {domain: {"pods": there[domain], "desired": desired[domain]} for domain in filled}
        details["domains"] = dict(list(pods.items())[:MOST_LISTED])
        yield NodeCause(full, Cause("policy-full", f"{policy} has filled {key} {shown}", details))
