"""Histories by hand: what a watch shows of a cluster and its scheduler, and what `Shadow` says of it."""

from __future__ import annotations

import msgspec

from stowplan.framework.profile import Profile
from stowplan.objects.changes import Gone, Put
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pod_parts import PodCondition
from stowplan.objects.pods import Pod
from stowplan.shadow.judge import ShadowSettings
from stowplan.shadow.shadow import Shadow
from stowplan.shadow.verdict import ShadowVerdict
from stowplan.testing.builders import a_node, a_profile

NAME = "default-scheduler"


class Story:
    """A change takes a millisecond. `nodes` and `others` were there before."""

    def __init__(
        self, *others: Object, nodes: tuple[Node | str, ...] = ("a", "b"), profile: Profile | None = None,
        settings: ShadowSettings | None = None,
    ) -> None:  # fmt: skip
        self.now = 100.0
        self.shadow = Shadow({NAME: profile or a_profile()}, settings)
        self.pods: dict[str, Pod] = {}
        for each in (*(a_node(node) if isinstance(node, str) else node for node in nodes), *others):
            self.shadow.handle(Put(each), self.now, judged=False)
        self.verdicts: list[ShadowVerdict] = self.wait(10.0)

    def put(self, *objects: Object) -> None:
        for each in objects:
            self._change(Put(each))

    def gone(self, *objects: Object) -> None:
        for each in objects:
            self._change(Gone(self.pods.get(each.key, each) if isinstance(each, Pod) else each))

    def bind(self, pod: Pod, node: str, version: str = "") -> None:
        now = self.pods[pod.key]
        metadata = msgspec.structs.replace(now.metadata, resource_version=version)
        spec = msgspec.structs.replace(now.spec, node_name=node)
        self.put(msgspec.structs.replace(now, metadata=metadata, spec=spec))

    def report(self, pod: Pod, message: str = "0/2 nodes are available", nominated: str = "") -> None:
        """The scheduler found no node."""
        now, condition = self.pods[pod.key], PodCondition("PodScheduled", "False", "Unschedulable", message)
        status = msgspec.structs.replace(now.status, conditions=(condition,), nominated_node_name=nominated)
        self.put(msgspec.structs.replace(now, status=status))

    def wait(self, seconds: float) -> list[ShadowVerdict]:
        """Let time pass. Return the verdicts of that time."""
        found, until = list[ShadowVerdict](), self.now + seconds
        while self.now < until:
            self.now = min(self.now + 0.25, until)
            while self.shadow.is_due(self.now):
                found += self.shadow.step(self.now)
        return found

    def ending(self) -> list[ShadowVerdict]:
        """Return the verdicts of the time until all decisions are due, which is shorter than a grace period."""
        return self.wait(ShadowSettings().patience + 1.0)

    def _change(self, change: Put | Gone) -> None:
        self.now += 0.001
        if isinstance(change.object, Pod):
            self.pods[change.object.key] = change.object
        self.shadow.handle(change, self.now)
