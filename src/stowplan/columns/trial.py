"""What if: a journal with savepoints over the one state, undone exactly.

    with state.trial() as trial:
        trial.add_pod(pod, "node-7")
        mark = trial.savepoint()
        trial.remove_pod(victim.uid)
        ...
        trial.undo_to(mark)
        trial.keep()            # otherwise all of it is undone at the end

Each operation notes how to undo it; nothing is copied. (What comes back may stand in another order among its equals.)
Trials nest: an inner one that is kept is part of the outer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from stowplan.columns.arrays import Ints, Rows
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
        """What was tried is to stay."""
        self._kept = True

    def savepoint(self) -> int:
        return len(self._journal)

    def undo_to(self, savepoint: int) -> None:
        """Undo everything since the savepoint, last first."""
        self._state._journal = None  # undoing is not itself to be undone
        try:
            while len(self._journal) > savepoint:
                self._journal.pop()()
        finally:
            self._state._journal = self._journal

    def add_pod(self, pod: Pod, node_name: str, *, as_extension: bool = False) -> None:
        self._state.add_pod(pod, node_name, as_extension=as_extension)

    def remove_pod(self, uid: str, *, as_extension: bool = False) -> None:
        self._state.remove_pod(uid, as_extension=as_extension)

    def shift(self, rows: Rows, amounts: Mapping[str, Ints], sign: int) -> None:
        """Many rows at once: what is taken of resources changes by so much each; the pods themselves stay.

        Made for dry runs of filters that look at resources only, and always undone, so that row versions stay too.
        """
        self._state.table.shift(rows, amounts, sign)
        self._journal.append(lambda: self._state.table.shift(rows, amounts, -sign))

    def assume(self, found: Object) -> None:
        """Take a volume, a claim or any other object for granted as it is here."""
        self._state.put(found)

    def hold(self, name: str, node_name: str, amounts: Mapping[str, int]) -> None:
        self._state.hold(name, node_name, amounts)

    def release(self, name: str) -> None:
        self._state.release(name)

    def discard(self, found: Object) -> None:
        self._state.discard(found)

    def drop_nomination(self, uid: str) -> None:
        self._state.drop_nomination(uid)

    def nominate(self, pod: Pod, node_name: str) -> None:
        self._state.nominate(pod, node_name)
