"""SchedulingGates: gate a pod while its spec lists scheduling gates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.causes import Cause
from stowplan.framework.decision import RejectPod
from stowplan.framework.interfaces import Wake
from stowplan.objects.pods import Pod


class SchedulingGates:
    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> RejectPod | None:  # noqa: ARG002
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return RejectPod(
            (f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]",), resolvable=False
        )

    def pod_causes(self, pod: Pod, cluster: Cluster) -> Iterator[Cause]:  # noqa: ARG002
        for gate in pod.spec.scheduling_gates:
            yield Cause("gate", f"scheduling gate {gate.name}", {"gate": gate.name})

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Pod", ("UpdatePodSchedulingGatesEliminated",), own=True)
