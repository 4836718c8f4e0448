"""The order of pods in the state, kept over what-ifs that must leave nothing behind: an explanation, say."""

from __future__ import annotations

from stowplan.columns.state import ClusterState, PlacedPod


class PodOrder:
    """The order of pods before any was removed: a trial puts a removed pod back as the last one, and ties go by it."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._pods: list[str] = []
        self._rows: dict[int, list[str]] = {}

    def keep(self, row: int) -> None:
        """Remember the order of a row's pods, which are about to be removed."""
        if not self._pods:
            self._pods = list(self._state.pods)
        if row not in self._rows:
            self._rows[row] = list(self._state.pods_on[row])

    def keep_all(self) -> None:
        """The same for all rows."""
        for row in range(len(self._state.pods_on)):
            self.keep(row)

    def restore(self) -> None:
        if self._pods:
            _reorder(self._state.pods, self._pods)
        for row, uids in self._rows.items():
            _reorder(self._state.pods_on[row], uids)


def _reorder(index: dict[str, PlacedPod], uids: list[str]) -> None:
    """Put an index into this order. There may be tens of thousands of pods, so nothing here is a loop of ours."""
    if not all(map(index.__contains__, uids)):  # nominated pods were here as if they were on their nodes
        uids = [uid for uid in uids if uid in index]
    if len(uids) == len(index):
        ordered = dict(zip(uids, map(index.__getitem__, uids), strict=True))
        index.clear()
        index.update(ordered)
