"""A trial: changes of the state as a what-if, undone exactly.

    with state.trial() as trial:
        trial.add_pod(pod, "node-7")
        mark = trial.savepoint()
        trial.remove_pod(victim.uid)
        ...
        trial.undo_to(mark)
        trial.keep()            # otherwise all of it is undone at the end

A journal records how to undo each operation; nothing is copied. (The order of dictionaries may differ afterwards.)
Trials nest: an inner trial that is kept becomes a part of the outer one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import dropwhile
from types import TracebackType
from typing import TYPE_CHECKING

from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod

if TYPE_CHECKING:
    from stowplan.columns.state import ClusterState


class Trial:
    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._kept = False

    def __enter__(self) -> Trial:
        self._outer = self._state._journal
        self._journal: list[Callable[[], object]] = []
        self._state._journal = self._journal
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._kept or error is not None:
            self.undo_to(0)
        self._state._journal = self._outer
        if self._outer is not None:
            self._outer.extend(self._journal)

    def keep(self) -> None:
        """Keep the changes."""
        self._kept = True

    def savepoint(self) -> int:
        return len(self._journal)

    def undo_to(self, savepoint: int) -> None:
        """Undo all changes since the savepoint, the last one first."""
        self._state._journal = None  # undoing must not be recorded
        try:
            while len(self._journal) > savepoint:
                self._journal.pop()()
        finally:
            self._state._journal = self._journal

    def add_pod(self, pod: Pod, node_name: str, *, as_extension: bool = False) -> None:
        self._state.add_pod(pod, node_name, as_extension=as_extension)

    def remove_pod(self, uid: str, *, as_extension: bool = False) -> None:
        self._state.remove_pod(uid, as_extension=as_extension)

    def assume(self, found: Object) -> None:
        """Assume that a volume, a claim or any other object is like this."""
        self._state.put(found)

    def hold(self, name: str, node_name: str, amounts: Mapping[str, int]) -> None:
        self._state.hold(name, node_name, amounts)

    def release(self, name: str) -> None:
        self._state.release(name)

    def discard(self, found: Object) -> None:
        self._state.discard(found)

    def drop_nomination(self, uid: str) -> None:
        self._state.nominated_pods.drop(uid)

    def nominate(self, pod: Pod, node_name: str) -> None:
        self._state.nominated_pods.add(pod, node_name)


@contextmanager
def without_pods(state: ClusterState, uids: Sequence[str]) -> Iterator[Trial]:
    """A trial without these pods. Afterwards the order of all pods is as before: ties are broken by it."""
    indexes = [state.pods, *(state.pods_on[row] for row in {state.pods[uid].row for uid in uids})]
    removed = frozenset(uids)
    behind = [list(dropwhile(lambda uid: uid not in removed, index)) for index in indexes]
    try:
        with state.trial() as trial:
            for uid in uids:
                trial.remove_pod(uid)
            yield trial
    finally:
        for index, order in zip(indexes, behind, strict=True):
            for uid in order:  # a trial puts a removed pod back as the last one
                if uid in index:  # if its node is deleted, it may be on another row now
                    index[uid] = index.pop(uid)
