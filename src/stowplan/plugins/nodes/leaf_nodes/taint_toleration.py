"""LeafNodeTaintToleration: TaintToleration's filter, with the taint of Kosmos' leaf nodes tolerated by every pod.

A leaf node stands for a member cluster, or for one of its nodes. Kosmos gives it the taint kosmos.io/node:NoSchedule,
whose value does not matter, so that other schedulers leave it alone. A configuration lists this plugin at filter
instead of TaintToleration, which still scores.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from stowplan.objects.pods import Pod
from stowplan.objects.taints import Taint
from stowplan.plugins.nodes.default.taint_toleration import TaintFilter

LEAF_KEY, LEAF_EFFECT = "kosmos.io/node", "NoSchedule"


class LeafNodeTaintToleration(TaintFilter):
    instead_of: ClassVar = {"filter": "TaintToleration"}

    def _untolerated(self, taints: Iterable[Taint], pod: Pod) -> bool:
        others = (taint for taint in taints if (taint.key, taint.effect) != (LEAF_KEY, LEAF_EFFECT))
        return super()._untolerated(others, pod)
