"""Trying changes for a group: they are made in a trial, and the whole group is rehearsed in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stowplan.diagnosis.edits import Edit
from stowplan.diagnosis.rehearsing import Rehearsing
from stowplan.engine.groups.group import GroupState
from stowplan.engine.preemption.group_preemption import PreemptionPlan
from stowplan.engine.rehearsal import Rehearsal
from stowplan.engine.scheduler import Scheduler
from stowplan.engine.unit import Unit
from stowplan.objects.errors import ConfigError, PluginError
from stowplan.objects.pods import Pod


class GroupTrying(Rehearsing):
    """`unit` has the group's waiting pods, `members` all its pods."""

    def __init__(self, scheduler: Scheduler, unit: Unit, found: GroupState) -> None:
        super().__init__(scheduler.state, scheduler.profiles, [*found.pods.values(), *unit.pods.values()])
        self.scheduler, self.unit, self.found = scheduler, unit, found
        self.profile = scheduler.profiles[unit.profile]
        self.failure: PluginError | None = None  # the last one

    @property
    def waiting(self) -> list[Pod]:
        return list(self.unit.pods.values())

    def where(self, edits: Sequence[Edit], *, seed: int = 0) -> dict[str, str] | None:
        found = self.rehearse(edits, seed=seed)
        return found.nodes if found is not None and found.runs else None

    def rehearse(self, edits: Sequence[Edit], *, seed: int = 0) -> Rehearsal | None:
        """Return how an attempt would go with these edits made; None if an object cannot be like this."""
        try:
            with self.changed(edits) as members:
                return self.scheduler.rehearsals.rehearse(self.unit, self._by_uid(members), seed=seed)
        except (ConfigError, LookupError, ValueError):
            return None
        except PluginError as error:
            self.failure = error
            return None

    def plan(self, edits: Sequence[Edit]) -> PreemptionPlan | None:
        """Return whom the scheduler would evict for the group with these edits made; None if nobody."""
        try:
            with self.changed(edits) as members:
                found = self.scheduler.rehearsals.rehearse(self.unit, self._by_uid(members))
                return None if found is None or found.runs else self.scheduler.rehearsals.plan(found)
        except (ConfigError, LookupError, ValueError, PluginError):
            return None

    def _by_uid(self, members: Mapping[str, Pod]) -> dict[str, Pod]:
        return {pod.uid: self.classed(pod) for pod in members.values()}
