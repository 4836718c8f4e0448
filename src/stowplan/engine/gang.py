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


@dataclass
class Outcome:
    """Who got a node, and who did not; `whole` says whether those who did are enough.

    `refused`: why one that got a node was refused what goes with it, by which plugin or because of what error.
    """

    placings: list[Placing] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    failed: list[Decision] = field(default_factory=list)
    refused: Verdict | str | None = None
    whole: bool = False

    @property
    def asking(self) -> bool:
        """Is all this provisional, because extenders must be asked first?"""
        return any(decision.asks for decision in self.decisions)


def place(
    unit: Unit,
    state: ClusterState,
    profile: Profile,
    generator: np.random.Generator,
    search: Search,
    consultations: Mapping[str, Consultation],
) -> Outcome:
    """Find nodes for a unit's pods. If they are enough, all is reserved; if not, nothing is left of the attempt."""
    if len(unit.pods) == 1:
        return _place_one(unit, state, profile, generator, search, consultations)
    members = sorted(unit.pods.values(), key=lambda pod: (-pod.priority, pod.uid))
    outcome, can_fail = Outcome(), len(members) - unit.needed
    with state.trial() as trial:
        for pod in members:
            said = consultations.get(pod.uid)
            decision = schedule_one(
                pod, state, profile, generator, gate=False, make_room=False, search=search, consultation=said
            )
            outcome.decisions.append(decision)
            if decision.node is None:
                outcome.failed.append(decision)
                if len(outcome.failed) > can_fail:
                    break
            else:
                placing = Placing(pod, decision.node, unit, profile, state)
                outcome.refused = placing.take_room()
                if outcome.refused is not None:
                    break
                outcome.placings.append(placing)
        enough = len(outcome.failed) <= can_fail and bool(outcome.placings)
        outcome.whole = enough and outcome.refused is None and not outcome.asking
        if outcome.whole:
            trial.keep()
        else:
            _release(outcome)
    return outcome


def _release(outcome: Outcome) -> None:
    """What plugins hold besides the state is not undone with the what-if; the state is, even if one of them raises."""
    for placing in reversed(outcome.placings):
        try:
            placing.release()
        except PluginError:
            continue


def _place_one(
    unit: Unit,
    state: ClusterState,
    profile: Profile,
    generator: np.random.Generator,
    search: Search,
    consultations: Mapping[str, Consultation],
) -> Outcome:
    """One pod alone is decided and then placed: there is nothing to undo, so no journal is kept."""
    ((uid, pod),) = unit.pods.items()
    decision = schedule_one(
        pod,
        state,
        profile,
        generator,
        gate=False,
        make_room=not unit.group,  # nobody is evicted for a part of a group
        search=search,
        consultation=consultations.get(uid),
    )
    outcome = Outcome(decisions=[decision])
    if decision.node is None:
        outcome.failed.append(decision)
    elif not decision.asks:
        placing = Placing(pod, decision.node, unit, profile, state)
        outcome.refused = placing.take_room()
        if outcome.refused is None:
            outcome.placings.append(placing)
            outcome.whole = True
    return outcome


def blocked(unit: Unit, outcome: Outcome, decision: Decision) -> str:
    """A member's own reason, and what its group lacks."""
    own = decision.full_message if decision.node is None else f"pod would fit on {decision.node}"
    lacks = (
        f"{unit.needed} of its {len(unit.pods)} pods need a node, {len(outcome.placings)} got one before one did not"
    )
    return f"{own} Pod group {unit.group}: {lacks}."
