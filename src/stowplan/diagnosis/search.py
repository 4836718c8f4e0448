"""The diagnosis of one pod: what would help it, found and tried.

diagnose
  1  the pod as it is      is there a node, or would evictions help?
  2  offers                what each plugin that rejects nodes could be given (`remedies/`)
  3  combining             the fewest offers that open a node: of the pod alone, and of pod and cluster
  4  trying                each is tried, made as small as it can be, and ranked
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import combinations

from stowplan.columns.arrays import Rows
from stowplan.columns.state import ClusterState
from stowplan.diagnosis import failing_plugins, patches, ranking, waiting
from stowplan.diagnosis.case import IMPOSSIBLE, Case
from stowplan.diagnosis.causes import cause_groups, not_tried, pod_causes
from stowplan.diagnosis.combining import Combinations
from stowplan.diagnosis.diagnosis import Diagnosis
from stowplan.diagnosis.edits import Edits, minimal
from stowplan.diagnosis.never import never
from stowplan.diagnosis.node_templates import NodeTemplate
from stowplan.diagnosis.rejections import rejections
from stowplan.diagnosis.remedies import (
    budgets,
    claims,
    free_room,
    lower_request,
    more_nodes,
    node_labels,
    own_fields,
    priority,
    scale_down,
    scheduler_name,
    terms,
    toleration,
)
from stowplan.diagnosis.remedy import AddNodes, DeleteObject, Remedy
from stowplan.diagnosis.single_edits import joined, single_edits
from stowplan.diagnosis.trying import Trying
from stowplan.framework.evaluation import schedule_one
from stowplan.framework.profile import Profile
from stowplan.objects.errors import PluginError
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod

OFFERING = (lower_request, toleration, node_labels, terms, own_fields)
MOST_CHANGES = 3
TOO_MANY = f"no more than {MOST_CHANGES} changes were tried together"
MOST_OF_A_KIND = 3  # remedies with the same code that are shown
MOST_TRIES = 300
MOST_SETS, MOST_SETS_OF_MANY, MANY_PODS = 60, 6, 5_000  # of edits beside which deletions and more nodes are tried
POOL_LABEL = "karpenter.sh/nodepool"


def diagnose(
    pod: Pod,
    state: ClusterState,
    profile: Profile | None,
    *,
    profiles: Mapping[str, Profile] | None = None,
    templates: Mapping[str, Node] | None = None,
    pool_label: str = POOL_LABEL,
    most_tries: int = MOST_TRIES,
    others: Iterable[Pod] = (),
) -> Diagnosis:
    """Say what keeps a pod from a node, and what would help.

    profile      of the pod's scheduler name; None if nobody serves it
    profiles     all profiles, by scheduler name: the pod could ask for another one
    templates    nodes that could be added, by name
    pool_label   nodes with the same value of this label serve as templates of their pool
    others       pods that wait, too: what is theirs is not proposed

    Plugins that fail are named, and the search is made without them.
    """
    others, failed = list(others), dict[str, PluginError]()
    while True:
        working = None if profile is None else failing_plugins.without(profile, failed) if failed else profile
        known = dict(profiles or {}) if working is None else {**(profiles or {}), pod.scheduler_name: working}
        search = Search(pod, state, working, known, dict(templates or {}), pool_label, most_tries, others)
        try:
            return failing_plugins.noted(search.diagnosis(), failed, search.node)
        except PluginError as error:
            if error.plugin in failed:
                raise
            failed[error.plugin] = error
        finally:
            search.trying.order.restore()


@dataclass
class Proposals:
    """What could be tried: combinations of offers by scope (the pod alone or not), more nodes, pods to delete."""

    sets: dict[bool, tuple[int, list[Edits]]] = field(default_factory=dict)
    more_nodes: list[Edits] = field(default_factory=list)
    deletions: list[Edits] = field(default_factory=list)
    terminating: list[Pod] = field(default_factory=list)
    single: list[Edits] = field(default_factory=list)  # that open no node alone
    promising: Rows | None = None  # where evictions are looked for; None: on all nodes


class Search:
    def __init__(
        self,
        pod: Pod,
        state: ClusterState,
        profile: Profile | None,
        profiles: Mapping[str, Profile],
        templates: Mapping[str, Node],
        pool_label: str,
        most_tries: int,
        others: Iterable[Pod],
    ) -> None:
        self.pod, self.state, self.profile = pod, state, profile
        self.templates, self.pool_label, self.most_tries = templates, pool_label, most_tries
        self.trying = Trying(pod, state, profiles, others)
        self.workloads = scale_down.Workloads(state)
        self.found: list[tuple[Edits, Remedy]] = []
        self.bounded: list[str] = []
        self.node: str | None = None  # that the pod gets as things are

    def diagnosis(self) -> Diagnosis:
        if self.profile is None:
            self._by_scheduler_name()
            return Diagnosis(remedies=self.remedies(), waits=(waiting.for_scheduler(self.pod),))
        decision = schedule_one(self.pod, self.state, self.profile)
        if decision.failure is not None:
            raise decision.failure
        self.node = decision.node
        found = rejections(self.pod, self.state, self.profile)
        causes = pod_causes(self.pod, found, self.state, self.profile)
        groups = cause_groups(self.pod, found, self.state, self.profile)
        if decision.node is not None:
            return Diagnosis(causes, groups)
        gates = own_fields.gates(self.pod) if decision.gated is not None else None
        made: Edits = () if gates is None else (gates,)
        proposals = self._combined(self.profile, made, whole=True)
        if not self.found and self.pod.shape.claims:
            for alternative in claims.alternatives(self.pod, self.state, self.trying.awaited_claims):
                self._combined(self.profile, (*made, *alternative))
            for alternative in () if self.found else claims.together(self.pod, self.state, self.trying.awaited_claims):
                if len(made) + len(alternative) <= MOST_CHANGES:
                    self._combined(self.profile, (*made, *alternative))
        preemption = decision.post_filter.candidate if decision.post_filter is not None else None
        self._by_scheduler_name()
        self._whole(proposals)
        if preemption is None:
            self._new_nodes(self.profile, made)
        if not self.found and preemption is None:
            self._last_resort(self.profile, made, proposals.single)
        if not self.found and self.state.table.live_count:
            self.bounded.append(not_tried(causes) or TOO_MANY)
        failed = found.failed | self.trying.failed
        if failed and not self.found:  # whatever opens a node meets the plugin that fails
            raise next(iter(failed.values()))
        if preemption is None and decision.gated is None:
            self._by_priority(proposals.promising)
        return Diagnosis(
            causes,
            groups,
            preemption=preemption,
            remedies=self.remedies(),
            waits=tuple(waiting.waits(self.trying, self.profile, proposals.terminating)),
            never=never(self.pod, self.state, self.profile, groups),
            bounded="; ".join(dict.fromkeys(self.bounded)),
        )

    def remedies(self) -> tuple[Remedy, ...]:
        """Return the remedies, the best first, and of one code only a few."""
        shown: list[Remedy] = []
        codes: dict[str, int] = {}
        for _, remedy in sorted(self.found, key=lambda pair: ranking.rank(pair[0])):
            codes[remedy.ranked_as] = codes.get(remedy.ranked_as, 0) + 1
            if codes[remedy.ranked_as] <= MOST_OF_A_KIND:
                shown.append(remedy)
        return tuple(shown)

    # -- combinations of offers

    def _combined(self, profile: Profile, made: Edits, *, whole: bool = False) -> Proposals:
        """Find remedies that are combinations of offers: the fewest changes of the pod, and the fewest of all.

        made    edits that are made in any case: without them no node is looked at
        """
        proposals = self._proposals(profile, made, None, whole=whole)
        for own, (fewest, sets) in proposals.sets.items():
            helps = [self.try_edits((*made, *edits)) for edits in sets]
            for changes in range(fewest + 1, MOST_CHANGES - len(made) + 1):
                if not any(helps):  # edits may have side effects, so that a further one is needed
                    _, sets = self._proposals(profile, made, changes).sets[own]
                    helps = [self.try_edits((*made, *edits)) for edits in sets]
        return proposals

    def _proposals(self, profile: Profile, made: Edits, changes: int | None, *, whole: bool = False) -> Proposals:
        """Return sets of edits of the pod alone (True) and of any objects (False): with so many changes, or the fewest.

        whole   nodes to add and pods to delete, too
        """
        found = Proposals()
        with self._beside_nominated(made) as pod:
            case = Case(pod, profile, rejections(pod, self.state, profile), self.trying, made)
            if made and case.open_nodes().any():  # what is made in any case is enough
                found.sets[True] = 0, [()]
                return found
            sets_of_offers = Combinations(case, (offer for kind in OFFERING for offer in kind.offers(case)))
            for own in (True, False):
                fewest = int(sets_of_offers.fewest(own=own).min(initial=IMPOSSIBLE)) if changes is None else changes
                sets = sets_of_offers.of(fewest, own=own) if fewest <= MOST_CHANGES - len(made) else ()
                found.sets[own] = fewest, sorted(sets, key=ranking.rank)
            if whole:
                found.single = single_edits(
                    case, [each for offers in sets_of_offers.offers.values() for each in offers]
                )
            if sets_of_offers.cut:
                self.bounded.append("not every group of nodes was looked at")
            if whole and not case.found.refused:
                found.more_nodes = [
                    (*made, *edits) for edits in more_nodes.proposals(case, self.templates, self.pool_label)
                ]
                room = free_room.Room(case)
                found.deletions = [(*made, *edits) for edits in room.proposals()]
                found.terminating = room.terminating()
                found.promising = room.rows(priority.MOST_NODES)
                if room.too_many:
                    self.bounded.append(f"no more than {free_room.MOST_DELETED} pods were deleted from one node")
                if room.cut:
                    self.bounded.append(
                        f"pods to delete were looked for only on the {free_room.MOST_NODES} nodes that lack the least"
                    )
        return found

    def _new_nodes(self, profile: Profile, made: Edits) -> None:
        """Try new nodes beside the changes of the pod that such a node asks for: a toleration, another selector.

        Not if something is found that costs the pod nothing, and evicts nothing.
        """
        if any(ranking.row(edits) <= ranking.ADDING for edits, _ in self.found):
            return
        with self._beside_nominated(made) as pod:
            case = Case(pod, profile, rejections(pod, self.state, profile), self.trying, made)
            known = more_nodes.every_kind(case, self.templates, self.pool_label)
        for template in known:
            self._new_node(profile, made, template)

    def _new_node(self, profile: Profile, made: Edits, template: NodeTemplate) -> None:
        added, change = more_nodes.adding(1, template), AddNodes(1, template.name, template.document)
        (node,) = patches.added_nodes(change, self.state.table.row_of)
        with self._beside_nominated((*made, added)) as pod:
            case = Case(pod, profile, rejections(pod, self.state, profile), self.trying, (*made, added))
            only = case.nodes.position(node["metadata"]["name"])
            opening = Combinations(case, (offer for kind in OFFERING for offer in kind.offers(case)), only)
            fewest = int(opening.fewest(own=True).min(initial=IMPOSSIBLE))
            if len(made) + 1 + fewest > MOST_CHANGES:
                self.bounded += [TOO_MANY] if fewest < IMPOSSIBLE else []
                return
            sets = sorted(opening.of(fewest, own=True), key=ranking.rank)
        for edits in sets:
            if not self.found or ranking.row((*edits, added)) <= ranking.ADDING:
                self.try_edits((*made, *edits, added))

    def _last_resort(self, profile: Profile, made: Edits, single: list[Edits]) -> None:
        """Try pods to delete and nodes to add beside one edit of the pod, then beside two."""
        pairs = (joined(*pair) for pair in combinations(single, 2))
        sets = [*single, *(pair for pair in pairs if pair is not None)]
        for place, edits in enumerate(sorted(sets, key=len)):
            if self.found and len(edits) > 1:
                return
            if place >= (MOST_SETS if len(self.state.pods) < MANY_PODS else MOST_SETS_OF_MANY):
                self.bounded.append("not every pair of changes was tried together with deletions and new nodes")
                return
            if len(made) + len(edits) <= MOST_CHANGES and len(edits) > 1 and self.try_edits((*made, *edits)):
                continue
            if len(made) + len(edits) < MOST_CHANGES:
                self._whole(self._proposals(profile, (*made, *edits), None, whole=True))

    def _whole(self, proposals: Proposals) -> None:
        """Try nodes to add and pods to delete: the first few that help."""
        helps, number = 0, 0.0
        for edits in proposals.more_nodes:
            if helps and (helps >= MOST_OF_A_KIND or edits[-1].size > number):
                break
            number = edits[-1].size
            helps += self.try_edits(edits)
        helps = 0
        for edits in proposals.deletions:
            helps += self.try_edits(edits)
            if helps >= MOST_OF_A_KIND:
                break

    def _by_scheduler_name(self) -> None:
        for edits in scheduler_name.proposals(self.pod, self.trying.profiles):
            self.try_edits(edits)

    def _by_priority(self, promising: Rows | None) -> None:
        if promising is not None:
            if not len(promising):
                return
            self.bounded.append(f"evictions were looked for only on the {len(promising)} nodes that lack the least")
        found = priority.remedy(self.pod, self.state, self.trying, promising)
        if found is None:
            return
        edits, decision = found
        candidate = None if decision.post_filter is None else decision.post_filter.candidate
        if decision.node is None and candidate is not None:
            own = self.workloads.name_of(self.pod)
            siblings = [
                each.key for each in candidate.victims if own is not None and self.workloads.name_of(each) == own
            ]
            if siblings and len(siblings) == len(candidate.victims):
                return  # the pod and its siblings would only change places
            protected = f"{candidate.violations} of the evicted pods are protected by a PodDisruptionBudget"
            also = [protected] if candidate.violations else []
            if siblings:
                note = f"its own owner makes {', '.join(siblings)} again: this only moves the problem"
                edits = tuple(replace(edit, ranked_as=ranking.SIBLING, also=note) for edit in edits)
            self.keep(edits, candidate.node, [victim.key for victim in candidate.victims], also)
        else:
            self.keep(edits, decision.node)

    @contextmanager
    def _beside_nominated(self, made: Edits) -> Iterator[Pod]:
        """The cluster with `made`, and with nominated pods as if they were on their nodes; yields the pod then."""
        with self.trying.changed(made) as members, self.state.trial() as trial:
            pod = members[self.pod.key]
            nominated = self.state.nominated_pods
            for name, others in list(nominated.by_node.items()):
                for other in list(others.values()):
                    if other.uid != pod.uid and other.priority >= pod.priority and other.uid not in self.state.pods:
                        trial.add_pod(other, name, as_extension=True)
            yield pod

    # -- trying

    def try_edits(self, edits: Edits) -> bool:
        """Try edits; if they help, keep them as a remedy, as small as they can be. True if they help."""
        if self.trying.tries >= self.most_tries:
            self.bounded.append(f"the search stopped after {self.most_tries} tries")
            return False
        if self.is_known(edits):
            return True
        decision = self.trying.decide(edits)
        if decision is None or decision.node is None:
            return False
        smaller = minimal(edits, self.trying.fits)
        if self.trying.changes_of(smaller) != self.trying.changes_of(edits):
            decision = self.trying.decide(smaller)
        if not self.is_known(smaller) and decision is not None and decision.node is not None:
            if any(isinstance(change, DeleteObject) for edit in smaller for change in edit.changes):
                self._keep_deletions(smaller, decision.node)
            else:
                self.keep(smaller, decision.node)
        return True

    def _keep_deletions(self, edits: Edits, node: str) -> None:
        """Keep edits that delete pods, and what has the same effect: budgets that allow it, a workload scaled down."""
        pods = free_room.deleted_pods(edits, self.trying)
        also = free_room.consequences(edits, {self.pod.key: node}, self.trying)
        deleted = [change.key for edit in edits for change in edit.changes if isinstance(change, DeleteObject)]
        protected = budgets.violated(pods, self.state)
        edits = free_room.as_siblings(edits, self.pod, self.trying)
        if protected:
            changed = budgets.allowing(pods, self.state)
            if changed:
                self.keep((*changed, *edits), node, deleted, also)
            edits = free_room.against_budgets(edits, protected, self.state)
        self.keep(edits, node, deleted, also)
        if not any(edit.ranked_as for edit in edits if free_room.deletes(edit)):
            self._scale_down(edits, pods)

    def _scale_down(self, edits: Edits, pods: Sequence[Pod]) -> None:
        """Try to scale down the workload of pods instead of deleting them."""
        workload = self.workloads.of(pods)
        scaled = None if workload is None else scale_down.scaled(workload, pods)
        if workload is None or scaled is None or self.trying.tries >= self.most_tries:
            return
        self.trying.add_document(workload.kind, workload.key, {"spec": {}})
        others = (edit for edit in edits if not free_room.deletes(edit))
        smaller = minimal((*others, scaled), self.trying.fits)
        decision = self.trying.decide(smaller)
        if decision is not None and decision.node is not None and not self.is_known(smaller):
            self.keep(smaller, decision.node, [key for edit in smaller for key in edit.gone])

    def is_known(self, edits: Edits) -> bool:
        changes = self.trying.changes_of(edits)
        return any(remedy.changes == changes for _, remedy in self.found)

    def keep(self, edits: Edits, node: str | None, evicted: Sequence[str] = (), also: Sequence[str] = ()) -> None:
        text = "; ".join(edit.text for edit in edits)
        changes = self.trying.changes_of(edits)
        more = (*also, *dict.fromkeys(edit.also for edit in edits if edit.also))
        name = ranking.name(edits)
        remedy = Remedy(ranking.code(edits), text, changes, node, tuple(evicted), more, ranked_as=name)
        self.found.append((edits, remedy))
