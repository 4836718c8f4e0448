"""HorizontalPodAutoscalers: the metric and the behaviour that they have by default."""

from __future__ import annotations

import copy

from stowplan.embedded.documents import Document

_CPU: Document = {
    "type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}  # fmt: skip
_PERCENT = {"type": "Percent", "value": 100, "periodSeconds": 15}
_PODS = {"type": "Pods", "value": 4, "periodSeconds": 15}


def defaults(autoscaler: Document) -> None:
    spec = autoscaler["spec"]
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        spec["metrics"] = [copy.deepcopy(_CPU)]
    if "behavior" in spec:
        up, down = spec["behavior"].setdefault("scaleUp", {}), spec["behavior"].setdefault("scaleDown", {})
        up.setdefault("stabilizationWindowSeconds", 0)
        up.setdefault("policies", [dict(_PODS), dict(_PERCENT)])
        down.setdefault("policies", [dict(_PERCENT)])
        for rules in (up, down):
            rules.setdefault("selectPolicy", "Max")
