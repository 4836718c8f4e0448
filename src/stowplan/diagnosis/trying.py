"""Trying changes for one pod: the decision for it in the changed cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from stowplan.columns.arrays import Rows
from stowplan.columns.state import ClusterState
from stowplan.diagnosis import patches
from stowplan.diagnosis.changed_cluster import ChangedCluster
from stowplan.diagnosis.edits import Edit
from stowplan.diagnosis.remedy import ObjectChange, PatchObject
from stowplan.framework.decision import FEASIBLE, Decision
from stowplan.framework.evaluation import Evaluation, schedule_one
from stowplan.framework.profile import Profile
from stowplan.objects import kinds
from stowplan.objects.errors import ConfigError, PluginError
from stowplan.objects.pods import Pod

Answer = TypeVar("Answer")


class Trying(ChangedCluster):
    """Tries changes for one pod. `tries` counts them, so that a search can stop. `others`: pods that wait, too."""

    def __init__(
        self, pod: Pod, state: ClusterState, profiles: Mapping[str, Profile], others: Iterable[Pod] = ()
    ) -> None:
        super().__init__(state, profiles, [pod])
        self.pod = pod
        self.tries = 0
        self.failed: dict[str, PluginError] = {}  # plugins that failed in a try, by name
        self.awaited_claims = frozenset(key for other in others if other.uid != pod.uid for key in other.shape.claims)

    def variant(self, changes: Iterable[ObjectChange]) -> Pod:
        """Return the pod as it would be, without making the changes of other objects."""
        for change in changes:
            if isinstance(change, PatchObject) and change.kind == "Pod" and change.key == self.pod.key:
                return kinds.convert(Pod, patches.patched(self["Pod", self.pod.key], change.operations))
        return self.pod

    def decide(self, edits: Sequence[Edit], *, preempt: bool = False, within: Rows | None = None) -> Decision | None:
        """Return the decision with these edits made; None if an object cannot be like this.

        within   the only rows that are looked at
        """
        decision = self._ask(
            edits, lambda pod, profile: schedule_one(pod, self.state, profile, preempt=preempt, within=within)
        )
        if decision is not None and decision.failure is not None:
            self.failed.setdefault(decision.failure.plugin, decision.failure)
            return None
        return decision

    def fits(self, edits: Sequence[Edit]) -> bool:
        """True if any node is feasible with these edits made. Nothing is scored."""
        return bool(self._ask(edits, lambda pod, profile: fits_somewhere(pod, self.state, profile)))

    def _ask(self, edits: Sequence[Edit], question: Callable[[Pod, Profile], Answer]) -> Answer | None:
        """Ask with these edits made. None if an object cannot be like this, or nobody serves the pod then."""
        self.tries += 1
        try:
            with self.changed(edits) as members:
                pod = members[self.pod.key]
                profile = self.profiles.get(pod.scheduler_name)
                return None if profile is None else question(pod, profile)
        except PluginError as error:
            self.failed.setdefault(error.plugin, error)
        except (ConfigError, LookupError, ValueError):
            pass
        return None


def fits_somewhere(pod: Pod, state: ClusterState, profile: Profile) -> bool:
    """True if any node is feasible for the pod, in the cluster as it is now."""
    names, _ = state.offers(pod, None)
    with state.released(names):
        evaluation = Evaluation(pod, state, profile)
        if evaluation.gate() is not None:
            return False
        evaluation.pre_filter()
        if evaluation.pre_filters.refused is not None:
            return False
        evaluation.filter()
        return bool((evaluation.trail.verdict_of == FEASIBLE).any())
