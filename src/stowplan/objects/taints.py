"""Taints and tolerations."""

from __future__ import annotations

from collections.abc import Iterable

from stowplan.objects.meta import CompleteApiValue

NO_SCHEDULE = "NoSchedule"
PREFER_NO_SCHEDULE = "PreferNoSchedule"
NO_EXECUTE = "NoExecute"
HARD_EFFECTS = (NO_SCHEDULE, NO_EXECUTE)


class Taint(CompleteApiValue, frozen=True):
    key: str
    effect: str
    value: str = ""


class Toleration(CompleteApiValue, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        match self.operator:
            case "" | "Equal":
                return self.value == taint.value
            case "Exists":
                return True
            case _:  # Gt and Lt have a feature gate, which is off
                return False


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(toleration.tolerates(taint) for toleration in tolerations)


def has_untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> bool:
    """True if there is a NoSchedule or NoExecute taint without a toleration."""
    return any(taint.effect in HARD_EFFECTS and not tolerated(taint, tolerations) for taint in taints)
