"""Draws of pods that a WorkloadPolicy keeps from nodes, and of Spark applications without room, with their clusters."""

from __future__ import annotations

from typing import Any

from stowplan.objects.meta import Object
from stowplan.testing.builders import a_node, a_pod
from tests.diagnosis.dice import Dice
from tests.plugins.nodes.resource_reservation.reservations import a_driver, a_reservation, annotated, needs
from tests.plugins.nodes.workload_policy.policies import a_member, a_policy

POD = "incoming"
DRIVER = "app-driver"


class ApplicationDice(Dice):
    # -- policies

    def policy(self) -> list[Object]:
        """Nodes in zones, pods of a policy there, the policy, and a pod that comes."""
        zones = ["a", "b", "c"][: self.number(1, 3)]
        found: list[Object] = []
        nodes = [f"{zone}{at}" for zone in zones for at in range(self.number(1, 2))]
        for name in nodes:
            labels = {"zone": name[0]} if not self.often(8) else {}
            taints = ["dedicated=gpu:NoSchedule"] if self.often(10) else []
            found.append(a_node(name, cpu=self.number(2, 4), labels=labels, taints=taints))
        for at in range(self.number(0, 5)):
            found.append(a_member(f"p{at}", cpu="500m", node=self.one_of(nodes)))
        found.append(self.definition(zones))
        labels = {"app": "y"} if self.often(8) else {}
        named = self.one_of(("polcy", "other")) if self.often(8) else "policy"
        cpu = "6" if self.often(8) else "500m"
        return [*found, a_member(POD, policy=named, cpu=cpu, labels=labels)]

    def definition(self, zones: list[str]) -> Object:
        listed = [zone for zone in zones if not self.often(4)] or ["z"]
        spec: dict[str, Any] = {"allocationType": self.one_of(("Required", "Required", "Preferred"))}
        if self.often(8):
            spec["allocationType"] = "Requierd"
        if self.often(4):
            spec["strictTopology"] = True
        if self.often(5):
            share = 100 // (len(listed) + self.number(0, 1))
            return a_policy(dict.fromkeys(listed, f"{share}%"), **spec)
        return a_policy({zone: self.number(0, 2) for zone in listed}, **spec)

    # -- reservations

    def application(self) -> list[Object]:
        """Nodes with pods and with room that is reserved, and a driver that comes."""
        nodes = [f"n{at}" for at in range(self.number(1, 4))]
        found: list[Object] = []
        for name in nodes:
            taints = ["dedicated=gpu:NoSchedule"] if self.often(8) else []
            cpu = self.number(2, 5)
            found.append(a_node(name, cpu=cpu, memory="8Gi", taints=taints, unschedulable=self.often(10)))
            found += [a_pod(f"{name}-p{at}", cpu=1, memory="1Gi", node=name) for at in range(self.number(0, cpu - 1))]
        if self.often(3):
            amounts = {"cpu": str(self.number(1, 2)), "memory": "1Gi"}
            name = "app" if self.often(3) else "kept"
            found.append(a_reservation(name, slot_1=(self.one_of(nodes), amounts)))
        count, cpu_each = self.number(1, 8), self.one_of(("500m", "1", "2", "3"))
        if self.often(4):
            annotations = needs(least=count, most=count + 2, cpu=cpu_each)
        else:
            annotations = needs(count, cpu=cpu_each, memory=self.one_of(("1Gi", "3Gi")))
        if self.often(10):
            annotations["spark_executor_count"] = "three"
        driver = annotated(a_driver(cpu=self.one_of((1, 1, 2, 6))), **annotations)
        return [*found, driver]


def drawn_policy(seed: int) -> list[Object]:
    return ApplicationDice(seed).policy()


def drawn_application(seed: int) -> list[Object]:
    return ApplicationDice(seed).application()
