"""The answer to a what-if, as a value and for programs: `-o json|yaml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stowplan.apps import json_output
from stowplan.apps.explain import answer_json
from stowplan.apps.explain.answers import Answer
from stowplan.objects.pods import Pod
from stowplan.simulation.administered_cluster import BlockedEviction
from stowplan.simulation.node_fill import NodeFill
from stowplan.simulation.pod_effects import Effects, GoneBy, GonePod, MovedPod, WorkloadRef

Json = dict[str, Any]

# What is told of a pod that is gone, by the reason; `lost` ones are named with it.
BECAUSE = {
    GoneBy.EVICTED: "evicted",
    GoneBy.PREEMPTED: "preempted",
    GoneBy.TAINT: "evicted for a taint",
    GoneBy.NODE: "its node is gone",
    GoneBy.DELETED: "deleted",
}


@dataclass(frozen=True)
class WhatIfAnswer:
    """`answers`: why pods wait that did not wait before. `before` and `after`: how full each node is, by name.

    `made`: how many controllers of pods were made up, because what was read leaves them out.
    """

    effects: Effects
    answers: Sequence[Answer]
    before: Mapping[str, NodeFill]
    after: Mapping[str, NodeFill]
    blocked: tuple[BlockedEviction, ...] = ()
    unseen: tuple[str, ...] = ()
    made: int = 0

    @property
    def worse(self) -> bool:
        """True if a pod waits that did not wait before, is lost, or cannot be evicted from a drained node."""
        return bool(self.effects.waiting or self.effects.lost or self.blocked)

    @property
    def changed_nodes(self) -> list[str]:
        """The nodes that are not as before, by name: first those that have fewer pods now."""
        names = [name for name in {**self.before, **self.after} if self.before.get(name) != self.after.get(name)]
        return sorted(names, key=lambda name: (_pods(self.after.get(name)) - _pods(self.before.get(name)) >= 0, name))

    def as_json(self) -> Json:
        found, workloads = self.effects, self.effects.workloads
        return {
            "apiVersion": json_output.VERSION,
            "kind": "WhatIf",
            "worse": self.worse,
            "moved": [_moved(each) for each in found.moved],
            "waiting": [_waiting(each, found) for each in found.waiting],
            "started": [{**_of(each, workloads[each.uid]), "node": each.node_name} for each in found.started],
            "gone": [_gone(each) for each in found.gone],
            "blocked": [{"pod": each.pod, "node": each.node, "message": each.message} for each in self.blocked],
            "explained": answer_json.listed(self.answers),
            "nodes": [
                {"name": name, "before": _fill(self.before.get(name)), "after": _fill(self.after.get(name))}
                for name in self.changed_nodes
            ],
            "pendingBefore": found.pending,
            "controllersMade": self.made,
            "unseen": list(self.unseen),
        }


def _pods(fill: NodeFill | None) -> int:
    return 0 if fill is None else fill.requested.get("pods", 0)


def _of(pod: Pod, workload: WorkloadRef) -> Json:
    return {"pod": pod.key, "workload": {"kind": workload.kind, "key": workload.key}}


def _moved(found: MovedPod) -> Json:
    return {
        **_of(found.before, found.workload), "from": found.before.node_name, "to": found.to,
        "replacement": found.after.key, "because": BECAUSE[found.gone_by],
    }  # fmt: skip


def _waiting(pod: Pod, effects: Effects) -> Json:
    old = effects.replaced.get(pod.uid)
    before: Json = {"from": None, "replaces": None, "because": "new"}
    if old is not None:
        before = {"from": old.before.node_name, "replaces": old.before.key, "because": BECAUSE[old.gone_by]}
    return {**_of(pod, effects.workloads[pod.uid]), **before}


def _gone(found: GonePod) -> Json:
    return {
        **_of(found.pod, found.workload), "from": found.pod.node_name or None, "because": BECAUSE[found.gone_by],
        "lost": found.lost,
    }  # fmt: skip


def _fill(fill: NodeFill | None) -> Json | None:
    if fill is None:
        return None
    return {
        "requested": _amounts(fill.requested), "allocatable": _amounts(fill.allocatable),
        "unschedulable": fill.unschedulable,
    }  # fmt: skip


def _amounts(found: Mapping[str, int]) -> Json:
    """Amounts as numbers: cores of cpu, bytes of memory, units of anything else."""
    return {name: amount / 1000 if name == "cpu" else amount for name, amount in found.items()}
