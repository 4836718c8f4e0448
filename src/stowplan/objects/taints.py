"""Taints and tolerations."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stowplan.objects.meta import CompleteApiValue

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"
HARD_EFFECTS = (NO_SCHEDULE, NO_EXECUTE)

# The numbers that Gt and Lt compare: no plus sign, no leading zeros, no more than 64 bits.
_DECIMAL = re.compile("0|-?[1-9][0-9]{0,18}")
_INT64 = range(-(2**63), 2**63)


class Taint(CompleteApiValue, frozen=True):
    key: str
    effect: str
    value: str = ""


class Toleration(CompleteApiValue, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint, *, compares: bool = False) -> bool:
        """`compares`: Gt and Lt compare the values as numbers; without it they tolerate nothing."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "" | "Equal":
                return self.value == taint.value
            case "Exists":
                return True
            case "Gt" | "Lt" if compares:
                return _compare(self.operator, taint.value, self.value)
            case _:
                return False


def _compare(operator: str, taint: str, toleration: str) -> bool:
    """True if the taint's number is greater (less) than the toleration's; False if one of them is no number."""
    theirs, ours = _number(taint), _number(toleration)
    if theirs is None or ours is None:
        return False
    return theirs > ours if operator == "Gt" else theirs < ours


def _number(text: str) -> int | None:
    found = int(text) if _DECIMAL.fullmatch(text) else None
    return found if found is not None and found in _INT64 else None


def tolerated(taint: Taint, tolerations: Iterable[Toleration], *, compares: bool = False) -> bool:
    return any(toleration.tolerates(taint, compares=compares) for toleration in tolerations)


def has_untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration], *, compares: bool = False) -> bool:
    """True if there is a NoSchedule or NoExecute taint without a toleration."""
    return any(
        taint.effect in HARD_EFFECTS and not tolerated(taint, tolerations, compares=compares) for taint in taints
    )
