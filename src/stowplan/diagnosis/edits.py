"""An edit: one change that a remedy may consist of. Edits are made together, and each as small as it can be.

`minimal` makes a set of edits smaller until none can be left out, and none be made smaller by a step, without the pod
losing its node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stowplan.diagnosis.remedy import ObjectChange


@dataclass(frozen=True, slots=True)
class Scale:
    """The amount of an edit that can be made larger or smaller.

    amount    as it is
    none      the amount that is no change at all
    step      the smallest difference; positive if a larger amount is a smaller change, else negative
    at        the same edit with another amount
    """

    amount: int
    none: int
    step: int
    at: Callable[[int], Edit]


@dataclass(frozen=True, slots=True)
class Edit:
    """One change. `code` is the kind of remedy, `text` says it to people, `size` compares edits of one kind.

    ranked_as   its name in the table of `ranking`, if that is not its code
    gone        namespace/name of pods that a controller takes away because of it, in this order
    also        what else is to be said of it, a sentence
    """

    code: str
    text: str
    changes: tuple[ObjectChange, ...]
    size: float = 0.0
    scale: Scale | None = None
    ranked_as: str = ""
    gone: tuple[str, ...] = ()
    also: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Edit) and (self.code, self.changes) == (other.code, other.changes)

    __hash__ = None  # type: ignore[assignment]


Edits: TypeAlias = tuple[Edit, ...]
Fits: TypeAlias = Callable[[Sequence[Edit]], bool]


def distinct(edits: Sequence[Edit]) -> Edits:
    """Return the edits without repetitions: one toleration may do for two plugins."""
    found: list[Edit] = []
    for edit in edits:
        if edit not in found:
            found.append(edit)
    return tuple(found)


def minimal(edits: Edits, fits: Fits) -> Edits:
    """Return the edits, which fit, without those that are not needed, and each as small as possible."""
    at = 0
    while at < len(edits) and len(edits) > 1:
        without = (*edits[:at], *edits[at + 1 :])
        if fits(without):
            edits = without
        else:
            at += 1
    for place, edit in enumerate(edits):
        if edit.scale is not None:
            edits = (*edits[:place], _smallest(edits, place, edit.scale, fits), *edits[place + 1 :])
    return edits


def _smallest(edits: Edits, place: int, scale: Scale, fits: Fits) -> Edit:
    def with_steps(steps: int) -> Edit:
        return scale.at(scale.amount + steps * scale.step)

    def enough(steps: int) -> bool:
        return fits((*edits[:place], with_steps(steps), *edits[place + 1 :]))

    most = (scale.none - scale.amount) // scale.step
    if most <= 1 or not enough(1):
        return edits[place]
    low, high = 1, most  # so many steps are fine; so many are none at all
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return with_steps(low)
