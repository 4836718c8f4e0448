"""Finding nodes for the pods of a unit: one pod, or all members of a group inside one what-if.

Members are placed one by one, the largest first, and kept together or not at all. As soon as too many members have
failed, no more are tried. If the members differ, one more order is tried: pods of the shape that failed go first,
unless there is too little room in any order (`capacity_check`). If extenders must be asked, members are placed
provisionally, so that all questions come up at once.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine.binding.assumed_pod import AssumedPod
from stowplan.engine.preemption.capacity_check import CapacityCheck
from stowplan.engine.reports import GroupAttempted
from stowplan.engine.unit import Unit
from stowplan.framework.decision import WOULD_FIT, Decision, Verdict
from stowplan.framework.evaluation import MoreVictims, schedule_one, slot_pods
from stowplan.framework.extenders import Consultation
from stowplan.framework.profile import Profile
from stowplan.framework.ranking import Draw
from stowplan.framework.search import NodeSearch
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod


@dataclass(slots=True)
class UnitOutcome:
    """Which pods of a unit got a node and which did not.

    whole    enough pods got a node
    refused  why a pod that got a node was refused at reserve or permit: by a plugin, or because of an error
    asking   all this is provisional, because extenders must be asked first
    slots    in a rehearsal: the nodes of the slots that would be held for other pods, by the uid of their owner
    """

    assumed_pods: list[AssumedPod] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    failed: list[Decision] = field(default_factory=list)
    refused: Verdict | str | None = None
    whole: bool = False
    asking: bool = False
    slots: dict[str, list[str]] = field(default_factory=dict)


class Placer:
    def __init__(self, state: ClusterState, generator: Draw, more_victims: MoreVictims | None = None) -> None:
        self._state, self._generator, self._search = state, generator, NodeSearch()
        self._more_victims = more_victims

    def place(self, unit: Unit, profile: Profile, consultations: Mapping[str, Consultation]) -> UnitOutcome:
        """Find nodes for a unit's pods. If enough pods get one, all are assumed; otherwise nothing is left."""
        if len(unit.pods) > 1:
            return self._in_either_order(unit, profile, consultations, unit.needed)
        outcome = UnitOutcome()
        (pod,) = unit.pods.values()
        # A single pod needs no what-if. No pod is evicted here for a part of a group.
        self._try(pod, unit, profile, consultations, outcome, provisionally=False, preempt=not unit.group)
        outcome.whole = bool(outcome.assumed_pods)
        return outcome

    def rehearse(self, unit: Unit, profile: Profile, needed: int) -> UnitOutcome:
        """The same inside a what-if of the caller; nothing is left of it. `needed`: how many pods must get a node."""
        return self._in_either_order(unit, profile, {}, needed, keep=False)

    def _in_either_order(
        self, unit: Unit, profile: Profile, consultations: Mapping[str, Consultation], needed: int, *, keep: bool = True
    ) -> UnitOutcome:
        members = largest_first(unit.ready, self._state)
        if not members:
            return UnitOutcome()
        outcome = self._all_or_none(members, unit, profile, consultations, needed, keep=keep)
        if outcome.whole or outcome.asking or outcome.refused is not None or outcome.failed[-1].error:
            return outcome
        again = _hardest_first(members, outcome.failed)
        if again == members or CapacityCheck(self._state, unit, None, profile, outcome.decisions).most(()) < needed:
            return outcome
        second = self._all_or_none(again, unit, profile, consultations, needed, keep=keep)
        return second if second.whole or second.asking else outcome

    def _all_or_none(
        self,
        pods: Sequence[Pod],
        unit: Unit,
        profile: Profile,
        consultations: Mapping[str, Consultation],
        needed: int,
        *,
        keep: bool = True,
    ) -> UnitOutcome:
        outcome, may_fail = UnitOutcome(), len(pods) - needed
        owners = self._owners_of_slots(pods, profile)
        with self._deciding(pods), self._state.trial() as trial:
            for pod in sorted(pods, key=lambda pod: pod.uid not in owners) if owners else pods:
                self._try(pod, unit, profile, consultations, outcome, provisionally=True, preempt=False)
                if outcome.failed and outcome.failed[-1].pod.uid in owners:
                    may_fail = -1  # slots count as members, but without their owner there are none
                if outcome.refused is not None or len(outcome.failed) > may_fail:
                    break
            enough = len(outcome.failed) <= may_fail and bool(outcome.assumed_pods)
            outcome.whole = enough and outcome.refused is None and not outcome.asking
            if outcome.whole and keep:
                trial.keep()
            else:
                outcome.slots = self._slots(outcome)
                _release(outcome)
        return outcome

    @contextmanager
    def _deciding(self, pods: Sequence[Pod]) -> Iterator[None]:
        """Plugins may know which pods are decided together: these may share what one of them reserved."""
        self._state.deciding = frozenset(pod.uid for pod in pods)
        try:
            yield
        finally:
            self._state.deciding = frozenset()

    def _owners_of_slots(self, pods: Sequence[Pod], profile: Profile) -> Container[str]:
        """The pods with which slots for other pods are held; they go first, so that the others can take the slots."""
        if not profile.slot_pod_plugins:
            return ()
        cluster = Cluster(self._state)
        return {pod.uid for pod in pods if slot_pods(pod, profile, cluster) is not None}

    def _slots(self, outcome: UnitOutcome) -> dict[str, list[str]]:
        rooms = self._state.held_rooms.values()
        found = ((each.uid, room.for_pod(each.pod)) for room in rooms for each in outcome.assumed_pods)
        owned = ((uid, slots) for uid, slots in found if slots is not None and slots.owner == uid)
        return {uid: [slot.node for slot in slots.free.values()] for uid, slots in owned if slots.free}

    def _try(
        self,
        pod: Pod,
        unit: Unit,
        profile: Profile,
        consultations: Mapping[str, Consultation],
        outcome: UnitOutcome,
        *,
        provisionally: bool,
        preempt: bool,
    ) -> None:
        """Decide about one pod and assume it. If extenders must be asked first, assume it only `provisionally`."""
        decision = schedule_one(
            pod,
            self._state,
            profile,
            self._generator,
            gate=False,
            preempt=preempt,
            search=self._search,
            consultation=consultations.get(pod.uid),
            more_victims=self._more_victims,
        )
        outcome.decisions.append(decision)
        outcome.asking = outcome.asking or bool(decision.asks)
        if decision.node is None:
            outcome.failed.append(decision)
        elif provisionally or not decision.asks:
            idle = decision.skipped & profile.skip_is_final
            assumed_pod = AssumedPod(pod, decision.node, unit, profile, self._state, idle)
            outcome.refused = assumed_pod.assume()
            if outcome.refused is None:
                outcome.assumed_pods.append(assumed_pod)


def _release(outcome: UnitOutcome) -> None:
    """Let plugins unreserve. The what-if undoes only the state; it does so even if a plugin raises here."""
    for assumed_pod in reversed(outcome.assumed_pods):
        try:
            assumed_pod.release()
        except PluginError:
            continue


def largest_first(pods: Iterable[Pod], state: ClusterState) -> list[Pod]:
    """Pods by the largest share that each requests of any resource, on the node that offers most of it.

    Pods of a higher priority go first. Only members of a group that has a priority of its own may differ in that.
    """
    pods = sorted(pods, key=lambda pod: (-pod.priority, pod.uid))
    sizes: dict[bytes, float] = {}
    for pod in pods:
        shape = pod.shape
        if shape.key not in sizes:
            sizes[shape.key] = _share(shape.request, state)
    if len(sizes) < 2:
        return pods
    return sorted(pods, key=lambda pod: (-pod.priority, -sizes[pod.shape.key]))


def _share(request: Mapping[str, int], state: ClusterState) -> float:
    columns = state.table.allocatable
    offered = {name: int(columns[name].max(initial=0)) for name in request if name in columns}
    return max((amount / offered[name] for name, amount in request.items() if offered.get(name)), default=0.0)


def _hardest_first(pods: list[Pod], failed: Iterable[Decision]) -> list[Pod]:
    """Pods of the shapes that failed first, then the others in the same order."""
    shapes = {decision.pod.shape.key for decision in failed}
    return sorted(pods, key=lambda pod: pod.shape.key not in shapes)


def group_report(unit: Unit, outcome: UnitOutcome) -> GroupAttempted:
    """The attempt at a group as a report."""
    refused, failed = outcome.refused, outcome.failed[-1:]
    message = "" if outcome.whole or not failed else failed[0].full_message
    if refused is not None:
        message = refused if isinstance(refused, str) else ", ".join(refused.reasons)
    error = isinstance(refused, str) or any(each.error for each in failed)
    found = len(outcome.assumed_pods)
    return GroupAttempted(
        unit.group, unit.profile, found, unit.needed, outcome.whole, error and not outcome.whole, message
    )


def member_message(unit: Unit, outcome: UnitOutcome, decision: Decision) -> str:
    """Why a member of a group has no node: its own reason, how many members fit, and which one did not, and why."""
    own = decision.full_message if decision.node is None else f"{WOULD_FIT} on {decision.node}."
    culprit, tried = outcome.failed[-1], len(outcome.decisions)
    lacks = f"{len(outcome.assumed_pods)} of {tried} pods tried found a node, {unit.needed} of {len(unit.ready)} must"
    if culprit.pod.uid != decision.pod.uid:
        lacks = f"{lacks}; pod {culprit.pod.name} did not: {culprit.full_message.rstrip('.')}"
    return f"{own} Pod group {unit.group}: {lacks}."
