"""Labels of pods and nodes, and the selectors that look for them.

The words are few on purpose: a random selector should match some pod about as often as none.
"""

from __future__ import annotations

from tests.oracle.draw.scenario import Draw, Obj, Scenario

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
HOST = "kubernetes.io/hostname"
TOPOLOGIES = [HOST, ZONE, "rack", REGION, "pool", "missing-key"]

APPS = ["web", "api", "db", "cache", "batch"]
TIERS = ["front", "back", "mid"]


def pod_labels(d: Draw) -> dict[str, str]:
    out = {"app": d.choice(APPS)}
    if d.chance(0.5):
        out["tier"] = d.choice(TIERS)
    if d.chance(0.3):
        out["version"] = d.one("v1", "v2")
    if d.chance(0.2):
        out["tenant"] = d.one("t1", "t2", "")
    return out


def selector(d: Draw, own: dict[str, str] | None = None) -> Obj | None:
    """A selector of pods; with `own` labels it often matches the pod that carries it."""
    kind = d.random()
    if kind < 0.04:
        return {}
    if kind < 0.07:
        return None
    if own and kind < 0.5:
        return {"matchLabels": {k: own[k] for k in d.some(list(own), 1, 1)}}
    if kind < 0.65:
        return {"matchLabels": {"app": d.choice(APPS)}}
    out: Obj = {"matchExpressions": [expression(d) for _ in range(d.randint(1, 2))]}
    if d.chance(0.2):
        out["matchLabels"] = {"tier": d.choice(TIERS)}
    return out


def expression(d: Draw) -> Obj:
    key = d.one("app", "tier", "version", "tenant", "absent")
    op = d.one("In", "NotIn", "Exists", "DoesNotExist")
    out: Obj = {"key": key, "operator": op}
    if op in ("In", "NotIn"):
        pool = {"app": APPS, "tier": TIERS, "version": ["v1", "v2"]}.get(key, ["t1", "t2", ""])
        out["values"] = d.some(pool, 1, 3)
    return out


def unused_keys(sel: Obj) -> list[str]:
    """Keys that `matchLabelKeys` may still name: the API refuses one the selector already uses."""
    used = {e["key"] for e in sel.get("matchExpressions", [])} | set(sel.get("matchLabels", {}))
    return [k for k in ("tier", "version", "tenant", "absent") if k not in used]


def label_pools(s: Scenario) -> dict[str, list[str]]:
    """The label values nodes have, and their names under metadata.name."""
    out: dict[str, list[str]] = {"metadata.name": s.node_names()}
    for node in s.nodes:
        for key, value in node["metadata"]["labels"].items():
            pool = out.setdefault(key, [])
            if value not in pool:
                pool.append(value)
    return out


def node_zones(s: Scenario) -> list[str]:
    return sorted({n["metadata"]["labels"][ZONE] for n in s.nodes if ZONE in n["metadata"]["labels"]}) or ["az1"]
