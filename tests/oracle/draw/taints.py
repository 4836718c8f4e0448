"""Taints of nodes and tolerations of pods, out of one short list of keys and values so that they often meet."""

from __future__ import annotations

from tests.oracle.draw.scenario import Draw, Obj

UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
TAINT_KEYS = [
    "dedicated", "gpu", "spot", "zone-drain", "example.com/maintenance", "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable", UNSCHEDULABLE, "node.kubernetes.io/memory-pressure",
]  # fmt: skip
TAINT_VALUES = ["db", "ml", "true", "1", ""]
EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]


def make_taints(d: Draw, low: int, high: int) -> list[Obj]:
    """No two of one key and effect: the API refuses those."""
    out: dict[tuple[str, str], Obj] = {}
    for _ in range(d.randint(low, high)):
        taint: Obj = {"key": d.choice(TAINT_KEYS), "effect": d.choice(EFFECTS)}
        if d.chance(0.6):
            taint["value"] = d.choice(TAINT_VALUES)
        out[taint["key"], taint["effect"]] = taint
    return list(out.values())


def tolerations(d: Draw, low: int, high: int) -> list[Obj]:
    return [toleration(d) for _ in range(d.randint(low, high))]


def toleration(d: Draw) -> Obj:
    kind = d.random()
    out: Obj = {}
    if kind < 0.1:
        out = {"operator": "Exists"}
    elif kind < 0.45:
        out = {"key": d.choice(TAINT_KEYS), "operator": "Exists"}
    else:
        out = {"key": d.choice(TAINT_KEYS), "value": d.choice(TAINT_VALUES)}
        if d.chance(0.7):
            out["operator"] = "Equal"
    if d.chance(0.6):
        out["effect"] = d.choice(EFFECTS)
    if out.get("effect") == "NoExecute" and d.chance(0.5):
        out["tolerationSeconds"] = d.one(0, 30, 300, -1)
    return out
