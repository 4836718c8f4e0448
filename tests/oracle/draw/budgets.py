"""Pod disruption budgets, with any number of disruptions allowed."""

from __future__ import annotations

from tests.oracle.draw.labels import selector
from tests.oracle.draw.pods import DELETED
from tests.oracle.draw.scenario import Obj, Scenario


def budgets(s: Scenario) -> None:
    d, pods = s.d, s.cluster["pods"]
    for i in range(d.one(0, 1, 2, 3, 5, 8)):
        spec: Obj = d.one({"minAvailable": 1}, {"maxUnavailable": 1}, {"minAvailable": "50%"}, {"maxUnavailable": 0})
        sel = selector(d, d.choice(pods)["metadata"].get("labels") if pods else None)
        if sel is not None:
            spec["selector"] = sel
        if d.chance(0.15):
            spec["unhealthyPodEvictionPolicy"] = d.one("IfHealthyBudget", "AlwaysAllow")
        status: Obj = {
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "expectedPods": 0,
            "disruptionsAllowed": d.one(0, 0, 1, 2, 5),
        }
        names = [p["metadata"]["name"] for p in pods]
        if d.chance(0.3) and names:
            status["disruptedPods"] = dict.fromkeys(d.some(names, 1, 3), DELETED)
        meta: Obj = {"name": f"pdb-{i}", "namespace": d.one("default", "default", "default", "prod", "bare")}
        s.add("podDisruptionBudgets", {"metadata": meta, "spec": spec, "status": status})
