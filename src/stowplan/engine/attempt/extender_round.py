"""Asking HTTP extenders about the pods of a unit.

An attempt that needs extenders ends with questions. Nothing is assumed meanwhile. When the last answer has arrived, the
attempt is made again with all answers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine.attempt.placer import UnitOutcome
from stowplan.engine.outbox import Outbox
from stowplan.engine.queue.record import QueueStage
from stowplan.engine.unit import Unit
from stowplan.framework.config.settings import Extender
from stowplan.framework.extenders import Consultation, labels_for
from stowplan.framework.profile import Profile
from stowplan.objects.actions import Ask
from stowplan.objects.changes import Result
from stowplan.objects.pods import Pod


class ExtenderRound:
    """A unit, what extenders said about its pods, and which of their answers are still to come."""

    __slots__ = ("_attempt", "awaited", "consultations", "unit")

    def __init__(self, unit: Unit) -> None:
        self.unit, self._attempt = unit, unit.attempts
        self.consultations: dict[str, Consultation] = {}
        self.awaited: set[int] = set()

    @property
    def is_current(self) -> bool:
        """True if the unit is still in the same attempt."""
        return self.unit.queued.stage is QueueStage.IN_FLIGHT and self.unit.attempts == self._attempt


class ExtenderRounds:
    def __init__(
        self, profiles: Mapping[str, Profile], state: ClusterState, outbox: Outbox, extenders: Sequence[Extender]
    ) -> None:
        self._profiles, self._state, self._outbox, self.extenders = profiles, state, outbox, extenders
        self.asking: dict[Hashable, ExtenderRound] = {}  # by the unit's key
        self.answered: list[ExtenderRound] = []  # to be attempted again

    def clear(self, extenders: Sequence[Extender]) -> None:
        """Other extenders from now on. Attempts that wait for answers of the old ones are forgotten."""
        for each in self.asking.values():
            self._outbox.forget(each.awaited)
        self.asking.clear()
        self.answered.clear()
        self.extenders = extenders

    def consult(self, extender_round: ExtenderRound) -> Mapping[str, Consultation]:
        """What is known about each pod of the unit, including pods that joined after the first try."""
        unit = extender_round.unit
        profile = self._profiles[unit.profile]

        def labels(pod: Pod) -> dict[str, str]:
            return labels_for(pod, profile, Cluster(self._state))

        for uid, pod in unit.pods.items():
            if uid not in extender_round.consultations:
                extender_round.consultations[uid] = Consultation(self.extenders, pod, labels)
        return extender_round.consultations

    def ask(self, extender_round: ExtenderRound, outcome: UnitOutcome, now: float) -> None:
        """Send the questions of an attempt."""
        self.asking[extender_round.unit.key] = extender_round
        for question in (question for decision in outcome.decisions for question in decision.asks):
            within = self.extenders[question.extender].http_timeout
            receiver = partial(self._was_answered, extender_round, question)
            extender_round.awaited.add(self._outbox.send(question, now, receiver, within=within).id)

    def _was_answered(self, extender_round: ExtenderRound, question: Ask, result: Result, _: float) -> None:
        extender_round.awaited.discard(result.id)
        extender_round.consultations[question.pod.uid].answer(question, result)
        if not extender_round.awaited:
            self.asking.pop(extender_round.unit.key, None)
            self.answered.append(extender_round)
