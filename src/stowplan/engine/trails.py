"""The last decisions with their trails, in a ring bounded in bytes. What comes in throws out what is oldest."""

from __future__ import annotations

from collections import OrderedDict

from stowplan.framework.verdict import Decision

DEFAULT_BYTES = 32 * 1024 * 1024
PER_DECISION = 512  # what a decision takes besides its arrays, roughly


class Trails:
    def __init__(self, limit: int = DEFAULT_BYTES) -> None:
        self._limit = limit
        self._bytes = 0
        self._decisions: OrderedDict[str, tuple[int, Decision]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._decisions)

    @property
    def nbytes(self) -> int:
        return self._bytes

    def keep(self, decision: Decision) -> None:
        """Remember this decision as the pod's latest."""
        size = weight(decision)
        self._forget(decision.pod.uid)
        self._decisions[decision.pod.uid] = (size, decision)
        self._bytes += size
        while self._bytes > self._limit and len(self._decisions) > 1:
            self._forget(next(iter(self._decisions)))

    def latest(self, uid: str) -> Decision | None:
        found = self._decisions.get(uid)
        return None if found is None else found[1]

    def _forget(self, uid: str) -> None:
        found = self._decisions.pop(uid, None)
        if found is not None:
            self._bytes -= found[0]


def weight(decision: Decision) -> int:
    """Bytes of the arrays that a decision holds."""
    trail = decision.trail
    scores = sum(column.nbytes for _, column in trail.scores.values() if not isinstance(column, int))
    return PER_DECISION + trail.verdict_of.nbytes + trail.feasible.nbytes + trail.totals.nbytes + scores
