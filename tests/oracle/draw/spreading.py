"""Topology spread: a pod's own constraints, and the services and controllers that default constraints go by."""

from __future__ import annotations

from tests.oracle.draw.labels import TIERS, TOPOLOGIES, expression, selector, unused_keys
from tests.oracle.draw.scenario import Draw, Obj, Scenario


def add_constraints(d: Draw, spec: Obj, own: dict[str, str], hard: float = 0.5, high: int = 3) -> None:
    """Constraints, no two of one topology and kind: the API refuses those."""
    seen: dict[tuple[str, str], Obj] = {}
    for _ in range(d.randint(1, high)):
        c = constraint(d, own, hard)
        seen[c["topologyKey"], c["whenUnsatisfiable"]] = c
    spec["topologySpreadConstraints"] = list(seen.values())


def constraint(d: Draw, own: dict[str, str], hard: float = 0.5) -> Obj:
    out: Obj = {
        "maxSkew": d.one(1, 1, 2, 3, 5),
        "topologyKey": d.choice(TOPOLOGIES[:5] if d.chance(0.95) else TOPOLOGIES),
        "whenUnsatisfiable": "DoNotSchedule" if d.chance(hard) else "ScheduleAnyway",
    }
    sel = selector(d, own)
    if sel is not None:
        out["labelSelector"] = sel
    if out["whenUnsatisfiable"] == "DoNotSchedule" and d.chance(0.25):
        out["minDomains"] = d.one(1, 2, 3, 4, 8)
    if d.chance(0.2):
        out["nodeAffinityPolicy"] = d.one("Honor", "Ignore")
    if d.chance(0.3):
        out["nodeTaintsPolicy"] = d.one("Honor", "Ignore")
    if sel is not None and d.chance(0.15):
        free = unused_keys(sel)
        if free:
            out["matchLabelKeys"] = d.some(free, 1, 2)
    return out


def owners(s: Scenario) -> None:
    """Services and controllers that give the pod its default constraints."""
    services(s)
    if s.d.chance(0.35):
        controller(s)


def services(s: Scenario) -> None:
    d, meta = s.d, s.pod["metadata"]
    ns, app = meta["namespace"], meta["labels"].get("app", "web")
    for i in range(d.randint(0, 2)):
        sel: Obj | None = d.one({"app": app}, {"app": app}, {"app": "nobody"}, {"tier": "front"}, {}, None)
        spec: Obj = {"clusterIP": "None"}
        if sel is not None:
            spec["selector"] = sel
        s.add("services", {"metadata": {"name": f"svc{i}", "namespace": d.one(ns, ns, "prod")}, "spec": spec})


def controller(s: Scenario) -> None:
    """The pod's controller; sometimes one that the pod names and that does not exist."""
    d, meta = s.d, s.pod["metadata"]
    own = meta["labels"]
    kind, plural, version = d.one(
        ("ReplicaSet", "replicaSets", "apps/v1"),
        ("StatefulSet", "statefulSets", "apps/v1"),
        ("ReplicationController", "replicationControllers", "v1"),
    )
    meta["ownerReferences"] = [
        {"apiVersion": version, "kind": kind, "name": "own", "uid": "own-uid", "controller": True}
    ]
    if not d.chance(0.85):
        return
    labels = d.one({"app": own.get("app", "web")}, dict(own), {"tier": d.choice(TIERS)})
    if kind == "ReplicationController":
        spec: Obj = {"selector": labels}
    else:
        spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {}, "spec": {"containers": []}}}
        if d.chance(0.3):
            spec["selector"] = {"matchExpressions": [expression(d)]}
    if kind == "StatefulSet":
        spec["serviceName"] = "svc0"
    s.add(plural, {"metadata": {"name": "own", "namespace": meta["namespace"], "uid": "own-uid"}, "spec": spec})
