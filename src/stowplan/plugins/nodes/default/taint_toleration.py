"""TaintToleration: reject nodes with taints that the pod does not tolerate; prefer those with fewer soft ones.

Tolerations compare numbers (Gt, Lt) if the feature gate TaintTolerationComparisonOperators is on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.columns.arrays import Ints
from stowplan.columns.nodes.one_node import OneNode
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.causes import Cause, NodeCause
from stowplan.framework.decision import Reject
from stowplan.framework.feature_gates import DEFAULT_GATES
from stowplan.framework.interfaces import Wake
from stowplan.framework.scoring import MAX_SCORE, normalized
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.taints import PREFER_NO_SCHEDULE, Taint, has_untolerated, tolerated

REASON = "node(s) had untolerated taint(s)"


class TaintFilter:
    """The filter alone; what counts as tolerated is up to `_untolerated`."""

    local = "node"
    filters_by_row = True
    ignores_requests = ignores_volumes = True
    feature_gates = DEFAULT_GATES

    @property
    def _compares(self) -> bool:
        return self.feature_gates.taint_toleration_comparison_operators

    def _untolerated(self, taints: Iterable[Taint], pod: Pod) -> bool:
        return has_untolerated(taints, pod.tolerations, compares=self._compares)

    def filter(self, pod: Pod, nodes: Nodes) -> Iterator[Reject]:
        if nodes.taints.all_empty():
            return
        untolerated = nodes.taints.where(lambda taints: self._untolerated(taints, pod))
        yield Reject(untolerated, REASON, resolvable=False)

    def fits(self, pod: Pod, node: OneNode) -> tuple[str, bool] | None:
        return (REASON, False) if node.taints and self._untolerated(node.taints, pod) else None

    def causes(self, pod: Pod, nodes: Nodes) -> Iterator[NodeCause]:
        def untolerated(taints: tuple[Taint, ...]) -> list[Taint]:
            return [taint for taint in taints if self._untolerated((taint,), pod)]

        for taint, rows in nodes.taints.having(untolerated):
            value = f"={taint.value}" if taint.value else ""
            details = {"key": taint.key, "value": taint.value, "effect": taint.effect}
            yield NodeCause(rows, Cause("taint", f"taint {taint.key}{value}:{taint.effect}", details))

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Node", ("Add", "UpdateNodeTaint"), hint="taints_tolerated_now")
        yield Wake("Pod", ("UpdatePodToleration",), own=True)

    def taints_tolerated_now(self, pod: Pod, old: Node | None, new: Node | None) -> bool:
        was_rejected = old is None or self._untolerated(old.taints, pod)
        return new is not None and was_rejected and not self._untolerated(new.taints, pod)


class TaintToleration(TaintFilter):
    configurable_at = ("preScore",)
    scores_by_node = True

    def score(self, pod: Pod, nodes: Nodes) -> Ints | int:
        if nodes.taints.all_empty():
            return MAX_SCORE
        soft = [toleration for toleration in pod.tolerations if toleration.effect in ("", PREFER_NO_SCHEDULE)]
        compares = self._compares

        def untolerated(taints: tuple[Taint, ...]) -> int:
            return sum(
                taint.effect == PREFER_NO_SCHEDULE and not tolerated(taint, soft, compares=compares) for taint in taints
            )

        if not any(map(untolerated, nodes.taints.values)):
            return MAX_SCORE
        return normalized(nodes.taints.number(untolerated), reverse=True)
