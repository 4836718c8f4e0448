"""The diagnosis of one group of pods: why it does not run as a whole, and the smallest changes after which it does.

Other pods that wait are not looked at: after a change they may take the room first, if they come first in the queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stowplan.diagnosis import causes, deletions, failing_plugins, ranking, waiting
from stowplan.diagnosis.cluster_proposals import FREE_ROOM, ClusterProposals
from stowplan.diagnosis.diagnosis import CauseGroup, NamedCause, Wait
from stowplan.diagnosis.edits import Edit, Edits
from stowplan.diagnosis.group_causes import group_causes
from stowplan.diagnosis.groups import members
from stowplan.diagnosis.groups.members import MemberProposals
from stowplan.diagnosis.groups.never import group_never
from stowplan.diagnosis.groups.trying import GroupTrying
from stowplan.diagnosis.proposals import Proposal, ProposalSearch
from stowplan.diagnosis.rejections import rejections
from stowplan.diagnosis.remedy import DeleteObject, PatchObject, Remedy
from stowplan.diagnosis.reservations import ReservationProposals
from stowplan.diagnosis.search import POOL_LABEL
from stowplan.diagnosis.workload_policies import WorkloadPolicyProposals
from stowplan.engine.preemption.group_preemption import PreemptionPlan
from stowplan.engine.rehearsal import Rehearsal
from stowplan.engine.scheduler import Scheduler
from stowplan.engine.unit import QueueStage
from stowplan.framework.decision import Decision
from stowplan.framework.group import UNKNOWN
from stowplan.objects.applications import is_driver
from stowplan.objects.errors import PluginError
from stowplan.objects.nodes import Node

MOST_TRIES = 800
MOST_OF_A_KIND = 3  # remedies with the same code that are shown


@dataclass(frozen=True, slots=True)
class MemberCauses:
    """Members that find no node beside the others, and why: pods of one shape are one entry."""

    members: tuple[str, ...]
    pod_causes: tuple[NamedCause, ...]
    groups: tuple[CauseGroup, ...]


@dataclass(frozen=True, slots=True)
class GroupDiagnosis:
    """What keeps a group from running, and what would help.

    existing    members that exist and may be attempted, or are on nodes
    minimum     members that must have a node; None if nobody says how many
    nodes       where members would go now, by namespace/name, if that were enough
    because     why it does not run, in one sentence; empty if it would run now
    group_causes  what the group lacks as a whole: members, or room in the cluster
    causes      which members find no node, and why
    preemption  which pods the scheduler would evict for it, if that helps, and where members would go then
    remedies    the smallest changes that help, the best first; each was tried
    waits       what may help without a change
    never       why it could not run in this cluster; or an empty text
    bounded     what was not searched, because the search stopped at a bound; or an empty text
    """

    name: str
    existing: int = 0
    minimum: int | None = None
    nodes: Mapping[str, str] | None = None
    because: str = ""
    group_causes: tuple[NamedCause, ...] = ()
    causes: tuple[MemberCauses, ...] = ()
    preemption: PreemptionPlan | None = None
    remedies: tuple[Remedy, ...] = ()
    waits: tuple[Wait, ...] = ()
    never: str = ""
    bounded: str = ""


def diagnose_group(
    scheduler: Scheduler,
    name: str,
    *,
    templates: Mapping[str, Node] | None = None,
    pool_label: str = POOL_LABEL,
    most_tries: int = MOST_TRIES,
) -> GroupDiagnosis:
    """Say why a waiting group does not run, and what would help. `name`: its namespace/name.

    templates    nodes that could be added, by name
    pool_label   nodes with the same value of this label serve as templates of their pool
    """
    unit, found = scheduler.queue.units.get(name), scheduler.groups.get(name)
    if unit is None or found is None:
        return GroupDiagnosis(name)
    trying = GroupTrying(scheduler, unit, found)
    trying.order.keep_all()
    try:
        return GroupSearch(trying, most_tries).diagnosis(dict(templates or {}), pool_label)
    except PluginError as error:
        return GroupDiagnosis(name, because=str(error), group_causes=(failing_plugins.cause(error),))
    finally:
        trying.order.restore()


class GroupSearch:
    def __init__(self, trying: GroupTrying, most_tries: int) -> None:
        self._trying, self._most_tries = trying, most_tries

    def diagnosis(self, templates: Mapping[str, Node], pool_label: str) -> GroupDiagnosis:
        trying, now = self._trying, self._trying.rehearse(())
        if now is None:
            own = () if trying.failure is None else (failing_plugins.cause(trying.failure),)
            because = trying.unit.broken or str(trying.failure or "it would be no group any more")
            return GroupDiagnosis(trying.unit.group, because=because, group_causes=own)
        minimum = now.group.minimum if now.group.minimum < UNKNOWN else None
        existing = trying.found.placed + len(now.unit.ready)
        if now.runs:
            return GroupDiagnosis(trying.unit.group, existing, minimum, now.nodes)
        failed = [decision.failure for decision in self._failed(now) if decision.failure is not None]
        if failed:
            return self._with_failing(failed[0], now, existing, minimum)
        plan = trying.plan(())
        search = ProposalSearch(trying.runs, self._most_tries)
        proposals = [
            *MemberProposals(trying, now).all(),
            *self._of_plugins(now),
            *ClusterProposals(trying, now.unit.needed, templates, pool_label).all(),
        ]
        sets = [edits for edits in search.run(proposals) if trying.surely_runs(edits)]
        remedies = [*self._shown(sets), *([] if plan is not None else self._by_priority(now))]
        return GroupDiagnosis(
            trying.unit.group,
            existing,
            minimum,
            now.nodes,
            now.because,
            group_causes(trying.unit.lead, trying.state, trying.profile),
            self._causes(now),
            plan,
            tuple(sorted(remedies, key=ranking.order)),
            tuple(self._waits(now, existing)),
            group_never(now.unit, trying.members.values(), trying.state, trying.profile),
            search.bounded,
        )

    def _with_failing(self, failure: PluginError, now: Rehearsal, existing: int, minimum: int | None) -> GroupDiagnosis:
        """What can be said while a plugin ends every attempt: causes, but no remedies."""
        return GroupDiagnosis(
            self._trying.unit.group,
            existing,
            minimum,
            now.nodes,
            now.because,
            (failing_plugins.cause(failure),),
            self._causes(now),
            bounded=f"what would help the group while plugin {failure.plugin} fails",
        )

    # -- remedies

    def _of_plugins(self, now: Rehearsal) -> Iterator[Proposal]:
        """Executors of drivers among the members, and the policy of the members."""
        for pod in self._trying.waiting:
            if is_driver(pod):
                least = now.group.minimum - len(now.unit.ready) if now.group.minimum < UNKNOWN else 0
                yield from ReservationProposals(self._trying, pod, max(least, 0)).all()
        for each in WorkloadPolicyProposals(self._trying, self._trying.unit.lead).all():
            if all(not isinstance(change, PatchObject) or change.kind != "Pod" for change in each.edit.changes):
                yield each

    def _shown(self, sets: list[Edits]) -> list[Remedy]:
        shown: list[Remedy] = []
        codes: dict[str, int] = {}
        for edits in sorted(deletions.variants(sets, self._trying), key=ranking.rank):
            code = ranking.code(edits)
            codes[code] = codes.get(code, 0) + 1
            if codes[code] <= (1 if code == FREE_ROOM else MOST_OF_A_KIND):
                shown.append(self._remedy(edits))
        return shown

    def _remedy(self, edits: Edits, plan: PreemptionPlan | None = None) -> Remedy:
        found, changes = self._trying.rehearse(edits), self._trying.changes_of(edits)
        keys = {pod.uid: pod.key for pod in self._trying.members.values()}
        nodes = {} if found is None else found.nodes
        evicted = deletions.gone(edits, changes)
        if plan is not None:
            nodes = {keys[uid]: node for uid, node in plan.nodes.items() if uid in keys}
            evicted = tuple(pod.key for pod in plan.victims)
        text = "; ".join(edit.text for edit in edits)
        node = next(iter(nodes.values()), None)
        left = 0 if found is None else len(found.unit.pods) - len(nodes)
        whom = f"{left} member{'s' if left > 1 else ''} beyond the minimum"
        more = (f"{whom} would wait on, and evict pods if that helps them",) if left > 0 else ()
        also = (*deletions.consequences(edits, nodes, self._trying), *more)
        return Remedy(ranking.code(edits), text, changes, node, evicted, also, nodes, ranked_as=ranking.name(edits))

    def _by_priority(self, now: Rehearsal) -> list[Remedy]:
        """The lowest priority with which the scheduler would evict pods for the group."""
        for edit in members.priorities(self._trying, now):
            plan = self._trying.plan([edit])
            if plan is not None and plan.victims:
                return [self._remedy((edit,), plan)]
        return []

    # -- causes and waits

    def _causes(self, now: Rehearsal) -> tuple[MemberCauses, ...]:
        """Why members find no node, with the members that found one on theirs."""
        if now.outcome is None:
            return ()
        state, profile, found = self._trying.state, self._trying.profile, dict[bytes, list[str]]()
        for decision in now.outcome.failed:
            found.setdefault(decision.pod.shape.key, []).append(decision.pod.key)
        pods = {decision.pod.shape.key: decision.pod for decision in now.outcome.failed}
        with state.trial() as trial:
            for each in now.outcome.assumed_pods:
                trial.add_pod(each.pod, each.node_name)
            listed = []
            for shape, keys in found.items():
                rejected = rejections(pods[shape], state, profile)
                own = causes.pod_causes(pods[shape], rejected, state, profile)
                groups = causes.cause_groups(pods[shape], rejected, state, profile)
                listed.append(MemberCauses(tuple(keys), own, groups))
        return tuple(listed)

    def _failed(self, now: Rehearsal) -> Sequence[Decision]:
        return () if now.outcome is None else now.outcome.failed

    def _waits(self, now: Rehearsal, existing: int) -> list[Wait]:
        waits = []
        if now.group.minimum < UNKNOWN and existing < now.group.minimum:
            text = f"{now.group.minimum - existing} of {now.group.minimum} members do not exist yet"
            waits.append(Wait("missing-members", text))
        leaving = [each.pod.key for each in self._trying.state.pods.values() if each.pod.terminating]
        changes = tuple(DeleteObject("Pod", key) for key in leaving)
        if leaving and self._trying.runs([Edit("free-room", "", changes)]):
            waits.append(
                Wait("terminating-pods", f"pods are terminating whose room would do: {', '.join(leaving[:5])}")
            )
        for pod in {decision.pod.shape.key: decision.pod for decision in self._failed(now)}.values():
            waits += list(waiting.nodes_to_mend(pod, self._trying.state, self._trying.profile))
        if self._trying.unit.stage is QueueStage.BACKOFF:
            waits.append(Wait("backoff", "its next attempt comes after a backoff"))
        return list(dict.fromkeys(waits))
