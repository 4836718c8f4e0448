"""Placing the pods of a unit, one or many: member by member inside a what-if, then kept whole, or not at all.

The most important member goes first. As soon as too many have failed for the rest to be enough, no more are tried. If
extenders must be asked about members, each is placed provisionally, so that all questions come up at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from stowplan.columns.state import ClusterState
from stowplan.engine.placing import Placing
from stowplan.engine.unit import Unit
from stowplan.framework.evaluate import schedule_one
from stowplan.framework.extending import Consultation
from stowplan.framework.profile import Profile
from stowplan.framework.search import Search
from stowplan.framework.verdict import Decision, Verdict
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod


@dataclass(slots=True)
class Outcome:
    """Who got a node, and who did not; `whole` says whether those who did are enough.

    `refused`: why one that got a node was refused what goes with it, by which plugin or because of what error.
    `asking`: all this is provisional, because extenders must be asked first.
    """

    placings: list[Placing] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    failed: list[Decision] = field(default_factory=list)
    refused: Verdict | str | None = None
    whole: bool = False
    asking: bool = False


class Placer:
    """Finds nodes for the pods of one unit after the other."""

    def __init__(self, state: ClusterState, generator: np.random.Generator) -> None:
        self._state, self._generator, self._search = state, generator, Search()

    def place(self, unit: Unit, profile: Profile, consultations: Mapping[str, Consultation]) -> Outcome:
        """Find nodes for a unit's pods. If they are enough, all is reserved; if not, nothing is left of the attempt."""
        outcome = Outcome()
        if len(unit.pods) == 1:  # one pod alone is decided and then placed: nothing to undo, so no journal is kept
            (pod,) = unit.pods.values()
            # Nobody is evicted for a part of a group.
            self._try(pod, unit, profile, consultations, outcome, provisionally=False, make_room=not unit.group)
            outcome.whole = bool(outcome.placings)
            return outcome
        can_fail = len(unit.pods) - unit.needed
        with self._state.trial() as trial:
            for pod in sorted(unit.pods.values(), key=lambda pod: (-pod.priority, pod.uid)):
                self._try(pod, unit, profile, consultations, outcome, provisionally=True, make_room=False)
                if outcome.refused is not None or len(outcome.failed) > can_fail:
                    break
            enough = len(outcome.failed) <= can_fail and bool(outcome.placings)
            outcome.whole = enough and outcome.refused is None and not outcome.asking
            if outcome.whole:
                trial.keep()
            else:
                _release(outcome)
        return outcome

    def _try(
        self, pod: Pod, unit: Unit, profile: Profile, consultations: Mapping[str, Consultation], outcome: Outcome,
        *, provisionally: bool, make_room: bool,
    ) -> None:  # fmt: skip
        """Decide about one pod, and reserve; if extenders must be asked first, only where that can be undone."""
        decision = schedule_one(
            pod, self._state, profile, self._generator,
            gate=False, make_room=make_room, search=self._search, consultation=consultations.get(pod.uid),
        )  # fmt: skip
        outcome.decisions.append(decision)
        outcome.asking = outcome.asking or bool(decision.asks)
        if decision.node is None:
            outcome.failed.append(decision)
        elif provisionally or not decision.asks:
            idle = decision.skipped & profile.done_by_skipping
            placing = Placing(pod, decision.node, unit, profile, self._state, idle)
            outcome.refused = placing.take_room()
            if outcome.refused is None:
                outcome.placings.append(placing)


def _release(outcome: Outcome) -> None:
    """What plugins hold besides the state is not undone with the what-if; the state is, even if one of them raises."""
    for placing in reversed(outcome.placings):
        try:
            placing.release()
        except PluginError:
            continue


def blocked(unit: Unit, outcome: Outcome, decision: Decision) -> str:
    """A member's own reason, and what its group lacks."""
    own = decision.full_message if decision.node is None else f"pod would fit on {decision.node}"
    lacks = (
        f"{unit.needed} of its {len(unit.pods)} pods need a node, {len(outcome.placings)} got one before one did not"
    )
    return f"{own} Pod group {unit.group}: {lacks}."
