"""A pod's case: what rejects it, and what each plugin would say to a changed pod.

Kinds of remedies are offers. An offer says for every node how many changes of this kind make one plugin accept the node
(0 where the plugin accepts it already), and makes the edits for a node that the search picks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from stowplan.columns.arrays import Bools, Floats, Ints
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.diagnosis.edits import Edit, Edits
from stowplan.diagnosis.rejections import Rejections
from stowplan.diagnosis.remedy import Operation, PatchObject
from stowplan.diagnosis.trying import Trying
from stowplan.framework.decision import SKIP, Only, RejectPod
from stowplan.framework.plugin_calls import call, call_filter, checked_rows
from stowplan.framework.profile import Profile
from stowplan.objects.pods import Pod

IMPOSSIBLE = 1_000  # changes: more than any remedy has


@dataclass(frozen=True)
class Offer:
    """How one plugin can be made to accept nodes.

    plugin   whose rejections this lifts
    steps    for each node the number of changes; 0 where the plugin accepts it, IMPOSSIBLE where this does not help
    edits    the changes for the node at a position
    own      they are changes of the pod alone
    alike    nodes with equal numbers need the same changes, up to amounts; None: all do
    weight   of nodes that are alike, the one with the least needs the smallest change; None: all are equal
    """

    plugin: str
    steps: Ints
    edits: Callable[[int], Sequence[Edit]]
    own: bool = True
    alike: Ints | None = None
    weight: Floats | None = None


class Case:
    """One pod, and every plugin's answer about every node. `made`: edits that are made in any case."""

    def __init__(self, pod: Pod, profile: Profile, found: Rejections, trying: Trying, made: Edits = ()) -> None:
        self.pod, self.profile, self.found, self.trying, self.made = pod, profile, found, trying, made
        self.state: ClusterState = trying.state
        self.nodes = found.nodes

    @cached_property
    def rejected(self) -> dict[str, Bools]:
        """Which nodes each plugin rejects. One that refuses the pod as a whole rejects all."""
        everywhere = np.ones(len(self.nodes), np.bool_)
        rows = {name: each.rows for name, each in self.found.filters.items()}
        rows |= dict.fromkeys(self.found.refused, everywhere)
        for name, only in self.found.only.items():
            if name not in rows:
                left_out = everywhere.copy()
                left_out[list(self.nodes.positions(only).values())] = False
                if left_out.any():
                    rows[name] = left_out
        return rows

    def open_nodes(self) -> Bools:
        """Return the nodes that no plugin rejects."""
        open_nodes = np.ones(len(self.nodes), np.bool_)
        for rows in self.rejected.values():
            open_nodes &= ~rows
        return open_nodes

    def rejects(self, plugin: str) -> Bools | None:
        """Return the nodes that a plugin rejects; None if it rejects none."""
        return self.rejected.get(plugin)

    def patched(self, *operations: Operation) -> Pod:
        """Return the pod with a patch."""
        return self.trying.variant(self.trying.changes_of([*self.made, self.edit("", "", *operations)]))

    def edit(self, code: str, text: str, *operations: Operation, size: float = 0.0) -> Edit:
        """Return an edit of the pod itself."""
        return Edit(code, text, (PatchObject("Pod", self.pod.key, operations),), size)

    def node_edit(self, code: str, text: str, name: str, *operations: Operation, size: float = 0.0) -> Edit:
        return Edit(code, text, (PatchObject("Node", name, operations),), size)

    def accepted(self, plugin: str, pod: Pod) -> Bools:
        """Return the nodes that one plugin would accept for a changed pod."""
        cluster = Cluster(self.state)
        accepted = np.ones(len(cluster.nodes), np.bool_)
        for enabled in self.profile.pre_filters:
            if enabled.name != plugin:
                continue
            answer = call(enabled, enabled.plugin.pre_filter, pod, cluster)
            if answer is SKIP:
                return accepted
            if isinstance(answer, RejectPod):
                return ~accepted
            if isinstance(answer, Only):
                accepted[:] = False
                accepted[list(cluster.nodes.positions(answer.names).values())] = True
        for each in self.profile.filters:
            if each.name == plugin:
                for reject in call_filter(each, pod, cluster.nodes):
                    accepted &= ~checked_rows(each, reject, len(accepted))
        return accepted

    def steps(self, rejected: Bools, needed: Ints | int, possible: Bools | None = None) -> Ints:
        """Return steps for an offer: `needed` on rejected nodes where it is possible, 0 on accepted ones."""
        steps = np.where(rejected, needed, 0).astype(np.int64)
        if possible is not None:
            steps[rejected & ~possible] = IMPOSSIBLE
        return steps


def combined(*codes: Ints | Bools) -> Ints:
    """Return numbers that are equal where all of these are equal."""
    if not codes:
        raise ValueError("nothing to combine")
    found: Ints = np.unique(codes[0], return_inverse=True)[1].astype(np.int64)
    for more in codes[1:]:
        numbers = np.unique(more, return_inverse=True)[1].astype(np.int64)
        found = np.unique(found * (int(numbers.max(initial=0)) + 1) + numbers, return_inverse=True)[1].astype(np.int64)
    return found
