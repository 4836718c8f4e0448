"""One decision: where a pod should go, as kube-scheduler decides it.

    schedule_one
      1  gate           may the pod be scheduled at all?                         pre_enqueue
      2  pre_filter     is it refused as a whole, or limited to some nodes?      pre_filter of all plugins
      3  filter         which nodes are feasible, which plugin rejected which?   filter, in order; extenders; avoid
      4  score          which feasible node is best?                             score, weighted; extenders' scores
      5  post_filter    no node is feasible: could evictions help?               post_filter

A plugin that raises, or answers with a wrong shape or range, ends this decision with its name in `Decision.error`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from stowplan.columns.arrays import Bools, Rows
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework import pre_filtering, ranking
from stowplan.framework.best_node import KeptChoice, Scored, SiftedChoice
from stowplan.framework.decision import (
    FEASIBLE,
    UNSCHEDULABLE,
    UNSEEN,
    Avoid,
    Candidate,
    Decision,
    Names,
    PostFilterResult,
    RejectPod,
    Trail,
    Verdict,
)
from stowplan.framework.extenders import Consultation
from stowplan.framework.filtering import NodeFilters, SiftedNodes, view
from stowplan.framework.group import SlotPods
from stowplan.framework.interfaces import AvoidPlugin
from stowplan.framework.plugin_calls import call, call_optional, wrong
from stowplan.framework.pre_filtering import NO_NODES, PreFilterResult
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.framework.ranking import Draw
from stowplan.framework.search import NodeSearch
from stowplan.framework.verdict_codes import VerdictCodes, Verdicts
from stowplan.framework.what_if import WhatIf
from stowplan.objects.actions import AnyAction
from stowplan.objects.errors import DecisionError, PluginError
from stowplan.objects.lazy_value import lazy_value
from stowplan.objects.pods import Pod

NO_TRAIL = Trail((), np.zeros(0, np.int32), [])
PASSING = "(passing)"  # the note that answers for `passing`

# Adds further victims to the candidates for a pod: members of groups that would have too few members left.
MoreVictims: TypeAlias = Callable[[Pod, Sequence[Candidate]], Sequence[Candidate]]


def schedule_one(
    pod: Pod,
    state: ClusterState,
    profile: Profile,
    generator: Draw | None = None,
    *,
    gate: bool = True,
    preempt: bool = True,
    search: NodeSearch | None = None,
    consultation: Consultation | None = None,
    more_victims: MoreVictims | None = None,
    within: Rows | None = None,
) -> Decision:
    """Decide where the pod should go in the cluster as it is now.

    generator      draws one of several best nodes; without it the first of them is chosen
    gate           False for pods that passed the pre-enqueue plugins already, before they entered the queue
    preempt      False for pods that do not preempt on their own: members of groups
    search         evaluates the nominated node first, and honours `percentageOfNodesToScore`; without it all nodes are
                   evaluated
    consultation   the replies of HTTP extenders. If extenders must be asked first, the questions are in `Decision.asks`
                   and the rest of the decision is provisional
    more_victims   adds further victims to candidates for preemption
    within         the only rows to consider, for the pod itself and for victims

    Room that is held for the pod is free for it: a few held slots first and, if no node is feasible then, all of them.

    `within` gives the decision of a cluster with these nodes alone, as far as plugins judge by node: the N in
    `0/N nodes are available` counts them, and a percentage of nodes is a percentage of them. Counts over the whole
    cluster (topology spread, affinity to other pods, how common an image is) include the pods and nodes outside. In the
    trail the nodes outside are UNSEEN. Cached answers are refreshed for all rows, as in any other decision.
    """

    def decide(*, preempt: bool) -> Decision:
        evaluation = Evaluation(pod, state, profile, search, consultation, more_victims, within)
        return evaluation.decision(generator, gate=gate, preempt=preempt)

    names, more = state.offers(pod)
    if more:
        with state.released(names):
            decision = decide(preempt=False)
        if decision.node is not None or decision.error or decision.gated is not None:
            return decision
        names, _ = state.offers(pod, None)
    with state.released(names):
        return decide(preempt=preempt)


def passing(pod: Pod, cluster: Cluster) -> Bools:
    """Return which nodes another pod would pass, by the filters of the profile that this cluster view was made for."""
    by_profile = cluster.notes.get(PASSING)
    found: Bools = np.ones(len(cluster.nodes), np.bool_) if by_profile is None else by_profile(pod)
    return found


def slot_pods(pod: Pod, profile: Profile, cluster: Cluster) -> SlotPods | None:
    """Return the pods that this one needs besides itself and that do not exist yet; None if there are none."""
    for enabled in profile.slot_pod_plugins:
        found = call_optional(enabled, enabled.plugin.slot_pods, SlotPods, pod, cluster)
        if found is not None and found.number > 0:
            return found
    return None


def _passing(state: ClusterState, profile: Profile, pod: Pod) -> Bools:
    evaluation = Evaluation(pod, state, profile)
    evaluation.pre_filter()
    if evaluation.pre_filters.refused is not None:
        return np.zeros(len(evaluation.nodes), np.bool_)
    evaluation.filter()
    found: Bools = evaluation.trail.verdict_of == FEASIBLE
    return found


class Evaluation:
    """One pod, evaluated by a profile. Post-filters use it to evaluate the pod again in a changed cluster."""

    def __init__(
        self,
        pod: Pod,
        state: ClusterState,
        profile: Profile,
        search: NodeSearch | None = None,
        consultation: Consultation | None = None,
        more_victims: MoreVictims | None = None,
        within: Rows | None = None,
    ) -> None:
        self.pod, self.state, self.profile, self.search, self.consultation = pod, state, profile, search, consultation
        self.more_victims = more_victims
        self.cluster = Cluster(state, {PASSING: partial(_passing, state, profile)})
        self.nodes = self.cluster.nodes
        names: Names = state.table.live_names()
        if within is not None:
            rows = np.unique(within)
            self.nodes = view(state, rows[state.table.live[rows]], self.cluster.notes)
            names = self.nodes.names
        self._names = names
        self.pre_filters = PreFilterResult()
        self._sifted: SiftedNodes | None = None  # what filters answered already

    @lazy_value
    def trail(self) -> Trail:
        return Trail(self._names, self.state.table.same_for_all(len(self.nodes), FEASIBLE), [])

    @lazy_value
    def filters(self) -> NodeFilters:
        """The filters that the pre-filters left."""
        return NodeFilters(self.pod, self.state, self.profile, self.cluster.notes, self.pre_filters.skipped)

    def decision(self, generator: Draw | None, *, gate: bool, preempt: bool) -> Decision:
        decision = Decision(self.pod, None, NO_TRAIL)
        try:
            decision.gated = self.gate() if gate else None
            if decision.gated is None:
                self._decide(decision, generator, preempt=preempt)
        except PluginError as error:
            decision.node, decision.error = None, str(error)
            if not isinstance(error, DecisionError):
                decision.failure = PluginError(error.plugin, error.point, error.problem, error.place)
        if decision.trail is NO_TRAIL:
            decision.trail = self.trail
        if self.consultation:
            decision.asks, self.consultation.open = tuple(self.consultation.open), []
        if self.nodes is not self.cluster.nodes:
            self.trail.widen(self.state.table.live_names(), np.searchsorted(self.cluster.nodes.rows, self.nodes.rows))
        return decision

    def _decide(self, decision: Decision, generator: Draw | None, *, preempt: bool) -> None:
        self.pre_filter()
        decision.refused, decision.limited_to = self.pre_filters.refused, self.pre_filters.names
        decision.limited_by, decision.skipped = tuple(self.pre_filters.limited_by), self.pre_filters.skipped
        if decision.refused is None and not self.choose_kept(decision, generator):
            if not self.filter_nominated():
                self.filter()
            self.score()
            decision.node = ranking.choose(self.trail, generator)
        if decision.node is None and preempt and len(self.nodes):
            decision.trail = self.trail
            decision.post_filter = self.post_filter(decision)

    # -- the steps

    def gate(self) -> Verdict | None:
        """Return the first rejection by a pre-enqueue plugin, if there is one."""
        for enabled in self.profile.pre_enqueue:
            refused = call_optional(enabled, enabled.plugin.pre_enqueue, RejectPod, self.pod, self.cluster)
            if refused is not None:
                return Verdict(enabled.name, refused.code, refused.reasons)
        return None

    def pre_filter(self) -> None:
        if len(self.nodes):
            self.pre_filters = pre_filtering.pre_filter(self.pod, self.cluster, self.profile)
        else:
            self.pre_filters = PreFilterResult(refused=NO_NODES)

    def choose_kept(self, decision: Decision, generator: Draw | None) -> bool:
        """Choose by what is kept and what else must be asked, if every node is asked about."""
        if (
            self.pre_filters.names is not None
            or self.consultation
            or self.nodes is not self.cluster.nodes
            or self.profile.avoid_plugins
            or self.state.nominated_pods.by_node
            or self.pod.nominated_node
            or (self.search is not None and self.search.stops(len(self.nodes), self.profile))
        ):
            return False
        answers, table = self.filters.kept(), self.state.table
        known: Scored = {}
        if answers is not None:
            choice = KeptChoice(self.pod, self.cluster, self.profile, answers)
            if choice.same_for_all:
                row = choice.row(generator)
                if row is None:
                    return False
                decision.node, decision.trail = table.names[row], choice.trail(self.profile)
                return True
            known = choice.known()
        self._sifted = self.filters.sifted(self.nodes)
        sifted = SiftedChoice(self.pod, self.cluster, self.profile, self._sifted, known)
        row = sifted.row(generator, self.profile)
        if row is None:
            return False
        decision.node, decision.trail = table.names[row], sifted.trail()
        return True

    def filter_nominated(self) -> bool:
        """Evaluate the pod's nominated node alone. True if it is feasible: then no other node is evaluated."""
        if self.search is None:
            return False
        name = self.pod.nominated_node or self.state.nominated_pods.node_of(self.pod.uid)
        at = self.nodes.position(name) if name else None
        if at is None or self.filters.on_rows(self.nodes.rows[at : at + 1]) != [None]:
            return False
        if self.consultation and self.consultation.refused([name]):
            return False
        self.trail.verdict_of = np.full(len(self.nodes), UNSEEN, np.int32)
        self.trail.verdict_of[at] = FEASIBLE
        return True

    def filter(self) -> None:
        """Fill in the trail: every node's first rejection."""
        names = self.pre_filters.names
        if names is None:
            codes, verdict_of = self.filters.on_all(self.nodes, self._sifted)
        else:
            codes, verdict_of = self.filters.on_named(self.nodes, names, self.pre_filters.limited_by)
        for at, verdict in self.filters.beside_nominated(self.nodes):
            if verdict_of[at] == FEASIBLE or codes.verdicts[int(verdict_of[at])].plugin:
                verdict_of[at] = codes.number(verdict)
        if self.search is not None and names is None:
            self.search.stop(self.nodes, verdict_of, self.profile)
        if self.consultation:
            self._filter_by_extenders(self.consultation, codes, verdict_of)
        for enabled in self.profile.avoid_plugins:
            self._filter_avoided(enabled, codes, verdict_of)
        self.trail.verdicts, self.trail.verdict_of = codes.verdicts, verdict_of

    def _filter_by_extenders(self, consultation: Consultation, codes: VerdictCodes, verdict_of: Verdicts) -> None:
        feasible = {self.trail.names[at]: at for at in (verdict_of == FEASIBLE).nonzero()[0].tolist()}
        for name, verdict in consultation.refused(list(feasible)).items():
            verdict_of[feasible[name]] = codes.number(verdict)

    def _filter_avoided(self, enabled: EnabledPlugin[AvoidPlugin], codes: VerdictCodes, verdict_of: Verdicts) -> None:
        """Reject the nodes that a plugin avoids, while another node is feasible."""
        avoided = call_optional(enabled, enabled.plugin.avoid, Avoid, self.pod, self.cluster)
        if avoided is None:
            return
        named = np.zeros(len(verdict_of), np.bool_)
        named[[at for name in avoided.names if (at := self.nodes.position(name)) is not None]] = True
        feasible = verdict_of == FEASIBLE
        rejected = feasible & (named != avoided.others)
        if rejected.any() and (feasible & ~rejected).any():
            verdict_of[rejected] = codes.number(Verdict(enabled.name, UNSCHEDULABLE, (avoided.reason,)))

    def score(self) -> None:
        """Add the scores of the feasible nodes to the trail."""
        ranking.score(self.trail, self.pod, self.nodes, self.profile, self.filters.cached, self.consultation)

    def post_filter(self, decision: Decision) -> PostFilterResult | None:
        """Return the first candidate that a post-filter finds, or all reasons why there is none."""
        reasons: tuple[str, ...] = ()
        clears_nomination = with_slots = False
        actions: tuple[AnyAction, ...] = ()
        for enabled in self.profile.post_filters:
            result = call(enabled, enabled.plugin.post_filter, self.pod, decision, self)
            if not isinstance(result, PostFilterResult):
                raise wrong(enabled, enabled.plugin.post_filter, result, "PostFilterResult was due")
            actions += result.actions
            if result.candidate is not None or result.settles:
                return replace(result, actions=actions)
            reasons, clears_nomination = reasons + result.reasons, clears_nomination or result.clears_nomination
            with_slots = with_slots or result.with_slots
        if not reasons and not with_slots:
            return None
        return PostFilterResult(reasons, clears_nomination=clears_nomination, with_slots=with_slots, actions=actions)

    # -- what post-filters may ask (`Evaluator`)

    def pre_filtered(self, plugin: str) -> bool:
        return plugin in self.pre_filters.called

    def verdicts(self, rows: Rows) -> list[Verdict | None]:
        return self.filters.on_rows(rows)

    def with_more_victims(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        return candidates if self.more_victims is None else self.more_victims(self.pod, candidates)

    def accepted_by_extenders(self, candidates: Sequence[Candidate]) -> Sequence[Candidate]:
        return self.consultation.candidates(candidates) if self.consultation else candidates

    def local(self) -> str:
        return self.filters.locality()

    def what_if(self) -> WhatIf | None:
        return self.filters.what_if()

    def needs_slots(self) -> bool:
        return bool(self.profile.slot_pod_plugins) and slot_pods(self.pod, self.profile, self.cluster) is not None
