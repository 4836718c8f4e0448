"""What to write of a cluster's scores, if anything: a value decides, the writer only carries it out.

Written is what changed, and what would expire before somebody looks again. A score that stays the same and is valid
for long enough costs no request at all, and wakes no Placement.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from stowplan.objects.clusters import AddOnPlacementScoreStatus as Status
from stowplan.objects.clusters import ClusterCondition, ScoreItem
from stowplan.objects.errors import ConfigError

UPDATED = "AddOnPlacementScoreUpdated"  # both type and reason, as in OCM's own examples
_MESSAGE = "AddOnPlacementScore updated successfully"


class Validity(msgspec.Struct, frozen=True):
    """How long scores count: at most `seconds`; None: for ever.

    They are written again when no more than `margin` seconds are left. `jitter` is the share of the time that a random
    number takes off, so that the scores of a fleet that was written at once do not all expire at once.
    """

    seconds: float | None = 600.0
    margin: float = 180.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        if not 0 <= self.jitter < 1:
            raise ConfigError(f"found {self.jitter:g}, expected a share of 0 or more and less than 1", path="jitter")
        if self.seconds is not None and self.seconds * (1 - self.jitter) <= self.margin:
            problem = f"scores that are valid for {self.seconds:g} s would be due again at once"
            raise ConfigError(problem, remedy=f"expected more than {self.margin / (1 - self.jitter):g} s")

    def until(self, now: datetime, draw: float) -> datetime | None:
        """When scores written now expire, in whole seconds as the API has them; `draw` is a random number of 0..1."""
        if self.seconds is None:
            return None
        lifetime = self.seconds * (1 - self.jitter * draw)
        return (now + timedelta(seconds=lifetime)).replace(microsecond=0)

    def is_due(self, known: datetime | None, now: datetime) -> bool:
        """Whether scores that expire at that time must be written again."""
        if known is None or self.seconds is None:
            return (known is None) != (self.seconds is None)
        left = (known - now).total_seconds()
        return left <= self.margin or left > self.seconds  # the latter: somebody else's idea of how long they count


def published(status: Status) -> dict[str, int]:
    return {score.name: score.value for score in status.scores}


def status_due(
    known: Status, scores: Mapping[str, int], now: datetime, *, validity: Validity, draw: float
) -> Status | None:
    """The status to write, None if the known one will do."""
    condition = _condition(known, now, "True", UPDATED, _MESSAGE)
    same = published(known) == dict(scores) and _found(known) == condition
    if same and not validity.is_due(known.valid_until, now):
        return None
    items = tuple(ScoreItem(name, value) for name, value in scores.items())
    return Status(_with(known, condition), items, validity.until(now, draw))


def status_failed(known: Status, reason: str, message: str, now: datetime) -> Status | None:
    """The same scores, which expire when they expire, and why there are no new ones; None if that is said already."""
    condition = _condition(known, now, "False", reason, message)
    if _found(known) == condition:
        return None
    return msgspec.structs.replace(known, conditions=_with(known, condition))


def _condition(known: Status, now: datetime, status: str, reason: str, message: str) -> ClusterCondition:
    before = _found(known)
    same = before is not None and before.status == status
    since = before.last_transition_time if before is not None and same else now.replace(microsecond=0)
    return ClusterCondition(UPDATED, status, reason, message, last_transition_time=since)


def _found(known: Status) -> ClusterCondition | None:
    return next((each for each in known.conditions if each.type == UPDATED), None)


def _with(known: Status, condition: ClusterCondition) -> tuple[ClusterCondition, ...]:
    """Conditions of others stay."""
    return (*(each for each in known.conditions if each.type != condition.type), condition)
