"""Draws of small clusters with one gang: too little room, taints, gates, typing errors, disruption budgets."""

from __future__ import annotations

from typing import Any

from stowplan.objects import kinds
from stowplan.objects.meta import Object
from stowplan.objects.pod_groups import PodGroup, SigsPodGroup
from stowplan.objects.workloads import PodDisruptionBudget
from stowplan.testing.builders import a_node, a_pod
from tests.diagnosis.dice import Dice
from tests.plugins.nodes.coscheduling.pod_groups import GROUP, MIN, NAME, created

KEY = "default/gang"
DISKS = ("ssd", "hdd")


class GangDice(Dice):
    def objects(self) -> list[Object]:
        found: list[Object] = []
        for at in range(self.number(1, 4)):
            found += self.node(f"n{at}")
        if self.often(3):
            found.append(a_budget(self.number(0, 1)))
        return [*found, *self.gang()]

    def node(self, name: str) -> list[Object]:
        cpu = self.number(2, 5)
        labels = {"disk": self.one_of(DISKS)}
        taints = ["dedicated=gpu:NoSchedule"] if self.often(5) else []
        node = a_node(name, cpu=cpu, memory="8Gi", labels=labels, taints=taints, unschedulable=self.often(6))
        pods = [self.pod(f"{name}-p{at}", name) for at in range(self.number(0, cpu))]
        return [node, *pods]

    def pod(self, name: str, node: str) -> Object:
        labels, priority = {"app": self.one_of(("web", "db"))}, self.one_of((0, 0, 10, 100))
        return a_pod(name, cpu=1, memory="1Gi", node=node, labels=labels, priority=priority)

    def gang(self) -> list[Object]:
        sort, count = self.one_of(("labels", "sigs", "kubernetes")), self.number(2, 6)
        minimum = max(count - (self.number(1, 2) if self.often(4) else 0), 2)
        asked = minimum + (self.number(1, 2) if self.often(6) else 0)
        labels, spec, found = self.definition(sort, asked)
        if self.often(4):
            spec["nodeSelector"] = {"disk": self.one_of((*DISKS, "sdd"))}
        priority = self.one_of((0, 0, 0, 10))
        cpu = self.one_of(("500m", "1", "1500m", "2", "3"))
        members: list[Object] = []
        for at in range(count):
            own = dict(spec)
            if self.often(15):
                own["schedulingGates"] = [{"name": "wait"}]
            size = "1" if at == 0 and self.often(3) else cpu
            pod = a_pod(f"gang-{at}", labels=labels, cpu=size, memory="512Mi", priority=priority, **own)
            members.append(created(pod, at))
        return [*found, *members]

    def definition(self, sort: str, minimum: int) -> tuple[dict[str, str], dict[str, Any], list[Object]]:
        metadata = {"name": "gang", "namespace": "default"}
        if sort == "labels":
            return {NAME: "gang", MIN: str(minimum)}, {}, []
        if self.often(12):
            minimum_object: list[Object] = []
        elif sort == "sigs":
            resources = {"minResources": {"cpu": str(self.number(2, 9))}} if self.often(2) else {}
            document = {"metadata": metadata, "spec": {"minMember": minimum, **resources}}
            minimum_object = [kinds.convert(SigsPodGroup, document)]
        else:
            spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
            minimum_object = [kinds.convert(PodGroup, {"metadata": metadata, "spec": spec})]
        if sort == "sigs":
            return {GROUP: "gang"}, {}, list(minimum_object)
        return {}, {"schedulingGroup": {"podGroupName": "gang"}}, list(minimum_object)


def a_budget(allowed: int) -> PodDisruptionBudget:
    """A budget of all pods with the label app=db that allows so many evictions."""
    spec = {"maxUnavailable": allowed, "selector": {"matchLabels": {"app": "db"}}}
    document = {"metadata": {"name": "db", "namespace": "default"}, "spec": spec}
    return kinds.convert(PodDisruptionBudget, {**document, "status": {"disruptionsAllowed": allowed}})


def drawn_gang(seed: int) -> list[Object]:
    return GangDice(seed).objects()
