"""What comes and goes: pods of several policies, alone or as groups."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from tests.controlplane.stowplan_process import a_live_pod

POD_GROUP = "pod-group.scheduling.kubenexus.io"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
GROUP_LABEL = "soak-group"


@dataclass(frozen=True)
class Batch:
    """Pods that come and go together: one, or the members of a group."""

    pods: tuple[dict[str, Any], ...]
    lives: float  # seconds, once it is bound


class Workload:
    """Draws batches. The same seed gives the same pods."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._number = 0

    def batch(self) -> Batch:
        kind = self._dice.choices(("plain", "spread", "apart", "flavour", "policy", "group"), (55, 10, 10, 10, 10, 5))[
            0
        ]
        lives = self._dice.uniform(5, 25)
        if kind != "group":
            return Batch((self._pod(kind),), lives)
        self._number += 1
        members, name = self._dice.randint(2, 6), f"group-{self._number}"
        return Batch(tuple(self._member(name, members) for _ in range(members)), lives)

    def _pod(self, kind: str) -> dict[str, Any]:
        name, labels = self._name(kind), {"app": f"{kind}-{self._dice.randrange(20)}"}
        term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": labels}}
        match kind:
            case "spread":
                constraint = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
                found = a_live_pod(
                    name, topologySpreadConstraints=[constraint | {"labelSelector": term["labelSelector"]}]
                )
            case "apart":
                preferred = [{"weight": 10, "podAffinityTerm": term}]
                away = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
                found = a_live_pod(name, affinity={"podAntiAffinity": away})
            case "flavour":
                found = a_live_pod(name, scheduler="secondary-scheduler")
                labels["flavour"] = self._dice.choice(("gold", "silver"))
            case "policy":
                found = a_live_pod(name, scheduler="kosmos-scheduler")
                labels["workload-policy.kosmos.io"] = "spread-out"
            case _:
                found = a_live_pod(name, cpu=self._dice.choice(("10m", "100m", "500m")))
        found["metadata"]["labels"] = labels
        return found

    def _member(self, group: str, members: int) -> dict[str, Any]:
        found = a_live_pod(self._name("member"), scheduler="kubenexus-scheduler")
        labels = {f"{POD_GROUP}/name": group, f"{POD_GROUP}/min-available": str(members), GROUP_LABEL: group}
        found["metadata"]["labels"] = labels
        return found

    def _name(self, kind: str) -> str:
        self._number += 1
        return f"{kind}-{self._number}"
