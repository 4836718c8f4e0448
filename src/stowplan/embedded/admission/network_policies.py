"""NetworkPolicies: the directions that they are about. Nothing enforces them, since no container runs."""

from __future__ import annotations

from stowplan.embedded.documents import Document


def defaults(policy: Document) -> None:
    spec = policy["spec"]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for rule in (*spec.get("ingress", ()), *spec.get("egress", ())):
        for port in rule.get("ports", ()):
            port.setdefault("protocol", "TCP")
