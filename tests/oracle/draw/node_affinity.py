"""Node affinity: expressions on node labels and fields, mostly with values that some node has."""

from __future__ import annotations

from tests.oracle.draw.labels import HOST, ZONE
from tests.oracle.draw.scenario import Draw, Obj

KEYS = [ZONE, ZONE, "rack", "rack", "pool", "pool", "gen", "gen", "ssd", "kubernetes.io/arch", HOST]


def node_affinity(
    d: Draw,
    pools: dict[str, list[str]],
    required: float = 0.6,
    preferred: float = 0.6,
    fields: float = 0.2,
    odd: bool = True,
) -> Obj:
    """Odd integers of Gt and Lt are stored by the API in required terms, and are an error elsewhere."""
    out: Obj = {}
    if d.chance(required):
        terms = [node_term(d, pools, fields, odd) for _ in range(d.randint(1, 3))]
        if d.chance(fields / 2):
            terms = [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [n]}]}
                for n in d.some([*pools["metadata.name"], "absent-node"], 1, 3)
            ]
        out["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if d.chance(preferred):
        out["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": d.one(1, 100, d.randint(1, 100)), "preference": node_term(d, pools, fields / 2)}
            for _ in range(d.randint(1, 3))
        ]
    return out


def node_term(d: Draw, pools: dict[str, list[str]], fields: float = 0.2, odd: bool = False) -> Obj:
    term: Obj = {}
    if d.chance(0.85):
        term["matchExpressions"] = [node_expression(d, pools, odd) for _ in range(d.randint(1, 2))]
    if d.chance(fields):
        names = [*pools["metadata.name"], "absent-node"]
        term["matchFields"] = [
            {"key": "metadata.name", "operator": d.one("In", "In", "NotIn"), "values": [d.choice(names)]}
        ]
        if d.chance(0.2):
            term["matchFields"].append(
                {"key": "metadata.name", "operator": d.one("In", "NotIn"), "values": [d.choice(names)]}
            )
    return term


def node_expression(d: Draw, pools: dict[str, list[str]], odd: bool) -> Obj:
    key = d.choice(KEYS)
    if d.chance(0.08):
        key = "missing-key"
    if key == "gen":
        op = d.one("Gt", "Lt", "In", "NotIn")
    else:
        op = d.one("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
    out: Obj = {"key": key, "operator": op}
    if op in ("In", "NotIn"):
        out["values"] = d.some([*pools.get(key, []), *pools.get(key, []), "x"], 1, 3)
        out["values"] = list(dict.fromkeys(out["values"]))
    elif op in ("Gt", "Lt"):
        if not odd or d.chance(0.85):
            out["values"] = [d.one("1", "2", "5", "0", "007", "10")]
        else:
            out["values"] = [d.one("abc", "1.5", "", "9223372036854775808", "1e3", "0x1")]
    return out
