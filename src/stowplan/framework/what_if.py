"""Many nodes at once, each judged as if pods had left it, or come to it, and nothing else had changed.

The resources in use are shifted. A filter that looks at more (`filter_what_if`) is told how the counts of each node
would change. Filters that look at the node object alone are asked once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from stowplan.columns.arrays import Ints, Rows
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.pods.ranked_pods import PRESUMED, RankedBlock
from stowplan.columns.pods.row_changes import RowChanges
from stowplan.columns.shifted_resources import ShiftedResources
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import FEASIBLE, Reject
from stowplan.framework.interfaces import FilterPlugin
from stowplan.framework.plugin_calls import call_filter, call_list
from stowplan.framework.profile import EnabledPlugin
from stowplan.framework.verdict_codes import VerdictCodes, Verdicts
from stowplan.objects.pods import Pod

ALONE = ("node", "resources")  # what a filter may look at, to be asked when only resources are shifted


@runtime_checkable
class WhatIfFilterPlugin(Protocol):
    """A filter that looks at more than one node, and can judge many nodes at once in a dry run of preemption."""

    def filter_what_if(self, pod: Pod, nodes: Nodes, changes: RowChanges) -> Iterable[Reject]:
        """Return the same as `filter` would for each of these nodes, if its own changes alone had been made."""


def has_form(enabled: EnabledPlugin[FilterPlugin]) -> bool:
    """True if the filter can judge many what-ifs at once."""
    return getattr(enabled.plugin, "local", "") in ALONE or hasattr(enabled.plugin, "filter_what_if")


class WhatIf:
    """`rivals`: pods nominated to nodes, beside which the pod must fit, too."""

    def __init__(
        self,
        pod: Pod,
        state: ClusterState,
        filters: Sequence[EnabledPlugin[FilterPlugin]],
        notes: dict[str, Any],
        rivals: Mapping[int, Sequence[Pod]],
    ) -> None:
        self._pod, self._state, self._filters, self._notes, self._rivals = pod, state, filters, notes, rivals
        self._about_pods = [each for each in filters if getattr(each.plugin, "local", "") != "node"]
        self._changes: RowChanges | None = None
        self._coming: dict[str, Ints] = {}
        self._presumed: dict[str, Ints] = {}
        self._crowded: Rows = np.zeros(0, np.int64)

    def begin(self, leaving: RankedBlock) -> RowChanges:
        """The rows of these pods are to be judged, and these pods may leave."""
        rows = leaving.rows
        crowded = [place for place, row in enumerate(rows.tolist()) if row in self._rivals] if self._rivals else []
        others = [(place, other) for place in crowded for other in self._rivals[int(rows[place])]]
        places = np.array([place for place, _ in others], np.int64)
        coming = [other for _, other in others]
        self._crowded = rows[np.array(crowded, np.int64)]
        at = np.searchsorted(self._crowded, rows[places]).tolist()
        self._coming = self._amounts(at, [each.shape.taken for each in coming])
        presumed = [tuple(zip(PRESUMED, each.shape.presumed, strict=True)) for each in coming]
        self._presumed = self._amounts(at, presumed)
        self._changes = RowChanges(self._state, self._pod, leaving, (places, coming))
        return self._changes

    def verdicts(
        self, resources: ShiftedResources, rows: Rows, *, again: bool = False
    ) -> tuple[VerdictCodes, Verdicts]:
        """The verdict on each of these rows, as a code. `again`: only pods have changed since they were feasible."""
        filters = self._about_pods if again else self._filters
        codes = VerdictCodes()
        verdict_of = self._run(rows, filters, codes)
        if len(self._crowded) and self._changes is not None:
            self._beside_rivals(resources, rows, filters, codes, verdict_of)
        return codes, verdict_of

    def _beside_rivals(
        self,
        resources: ShiftedResources,
        rows: Rows,
        filters: Iterable[EnabledPlugin[FilterPlugin]],
        codes: VerdictCodes,
        verdict_of: Verdicts,
    ) -> None:
        """A pod must fit with the pods that are nominated to its node, and without them."""
        assert self._changes is not None
        resources.shift(self._crowded, self._coming, self._presumed, +1)
        self._changes.come[:] = 1
        places = np.isin(rows, self._crowded).nonzero()[0]
        beside = self._run(rows[places], filters, codes)
        self._changes.come[:] = 0
        resources.undo()
        refused = (beside != FEASIBLE).nonzero()[0]
        verdict_of[places[refused]] = beside[refused]

    def _amounts(self, places: Sequence[int], taken: Sequence[Sequence[tuple[str, int]]]) -> dict[str, Ints]:
        """What pods take of the crowded rows, by resource."""
        amounts: dict[str, Ints] = {}
        for place, amounts_of_one in zip(places, taken, strict=True):
            for name, amount in amounts_of_one:
                if name not in amounts:
                    self._state.table.resource(name)
                    amounts[name] = np.zeros(len(self._crowded), np.int64)
                amounts[name][place] += amount
        return amounts

    def _run(self, rows: Rows, filters: Iterable[EnabledPlugin[FilterPlugin]], codes: VerdictCodes) -> Verdicts:
        nodes = Nodes(self._state, rows, False, Cluster(self._state, self._notes))
        return codes.ask_in_order(filters, nodes, self._rejections)

    def _rejections(self, enabled: EnabledPlugin[FilterPlugin], nodes: Nodes) -> list[Reject]:
        plugin: Any = enabled.plugin
        if getattr(plugin, "local", "") in ALONE:
            return call_filter(enabled, self._pod, nodes)
        return call_list(enabled, plugin.filter_what_if, Reject, self._pod, nodes, self._changes)
