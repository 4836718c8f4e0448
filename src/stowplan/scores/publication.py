"""Decides what to write of the scores of a cluster, if anything. The writer carries it out.

Changed scores are written, and scores that would expire before the next round. A score that stays the same and is valid
for long enough costs no request, and requeues no Placement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from stowplan.objects.clusters import AddOnPlacementScoreStatus as Status
from stowplan.objects.clusters import ClusterCondition, ScoreItem
from stowplan.objects.errors import ConfigError

UPDATED = "AddOnPlacementScoreUpdated"  # both the type and the reason, as in the examples of OCM
_MESSAGE = "AddOnPlacementScore updated successfully"


class Validity(msgspec.Struct, frozen=True):
    """How long scores are valid: at most `seconds`, or without limit if None.

    Scores are written again when no more than `margin` seconds are left. `jitter` is the share of the time that a
    random number can take off, so that the scores of a fleet do not all expire at once.
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
        """When scores that are written now expire, in whole seconds; `draw` is a random number of 0..1."""
        if self.seconds is None:
            return None
        lifetime = self.seconds * (1 - self.jitter * draw)
        exact = timedelta(microseconds=math.floor(lifetime * 1e6))  # rounded up it could last longer than `seconds`
        return (now + exact).replace(microsecond=0)

    def is_due(self, known: datetime | None, now: datetime) -> bool:
        """True if scores with this expiry must be written again."""
        if known is None or self.seconds is None:
            return (known is None) != (self.seconds is None)
        left = (known - now).total_seconds()
        return left <= self.margin or left > self.seconds  # the latter: another producer set a longer validity


def published(status: Status) -> dict[str, int]:
    return {score.name: score.value for score in status.scores}


def status_due(
    known: Status, scores: Mapping[str, int], now: datetime, *, validity: Validity, draw: float
) -> Status | None:
    """The status to write; None if the known status is still valid."""
    condition = _condition(known, now, "True", UPDATED, _MESSAGE)
    same = published(known) == dict(scores) and _found(known) == condition
    if same and not validity.is_due(known.valid_until, now):
        return None
    items = tuple(ScoreItem(name, value) for name, value in scores.items())
    return Status(_with(known, condition), items, validity.until(now, draw))


def status_failed(known: Status, reason: str, message: str, now: datetime) -> Status | None:
    """The status with the same scores and a condition with the reason; None if it has that condition already."""
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
    """The conditions with one of them set; all others stay."""
    return (*(each for each in known.conditions if each.type != condition.type), condition)
