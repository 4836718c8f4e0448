"""One decision: what each plugin says about a pod, put together as kube-scheduler does.

    schedule_one
      1  gate         is the pod held back?                                   pre_enqueue
      2  narrow       is it refused as a whole, or bound to certain nodes?    pre_filter, all of them
      3  sift         which nodes are left, and which plugin refused which?   filter, in order, survivors only
                      what do extenders say?                                  their answers, where they are there
                      which are to be had only if there is no other?          avoid
      4  rank         which of them is best?                                  score, weighted; extenders' scores
      5  make room    if none was left: could evictions help?                 post_filter

A plugin that raises, or answers with a wrong shape or range, ends this decision with its name in `Decision.error`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np

from stowplan.columns.arrays import Bools, Ints, Rows
from stowplan.columns.nodes.answer_cache import VERDICT, CachedAnswers
from stowplan.columns.nodes.views import Cluster, Nodes
from stowplan.columns.state import ClusterState
from stowplan.framework.extenders import Consultation
from stowplan.framework.plugin_calls import ask, ask_filter, ask_score, expect
from stowplan.framework.profile import EnabledPlugin, Profile
from stowplan.framework.search import NodeSearch
from stowplan.framework.verdict import (
    FEASIBLE,
    SKIP,
    UNRESOLVABLE,
    UNSCHEDULABLE,
    UNSEEN,
    Avoid,
    Candidate,
    Decision,
    Only,
    PostFilterResult,
    Refuse,
    Trail,
    Verdict,
)
from stowplan.framework.verdict_codes import VerdictCodes, Verdicts
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod

MOST_VERDICTS = 256  # a filter that puts numbers into its reasons would fill a kept book without end
HIGHEST_OF_USERS = 1_000_000_000  # the greatest priority that is not the system's own
LOCALITY = ("", "pods", "resources", "node")
PROFILE = "(profile)"  # the note that answers for `passing`

# For this pod, candidates with all who would have to go besides their victims.
Join: TypeAlias = Callable[[Pod, list[Candidate]], list[Candidate]]


def schedule_one(
    pod: Pod,
    state: ClusterState,
    profile: Profile,
    generator: np.random.Generator | None = None,
    *,
    gate: bool = True,
    make_room: bool = True,
    search: NodeSearch | None = None,
    consultation: Consultation | None = None,
    join: Join | None = None,
) -> Decision:
    """Where the pod should go as things stand. Ties are drawn by `generator`; without one the first node wins.

    `gate` is off for pods that already passed it, on their way into a queue; `make_room` for those for whom alone
    nobody is evicted. With a `search` the pod's nominated node is taken if it will do, and `percentageOfNodesToScore`
    is honoured; without one every node is looked at. If extenders must be asked first, their questions are in
    `Decision.asks` and the rest is provisional. `join` says who would have to go besides victims. Room that is reserved
    for the pod is free for it: a few places first, and if it finds no node with those, all of them.
    """
    names, more = state.offers(pod)
    if more:
        with state.released(names):
            decision = _decided(pod, state, profile, generator, gate, False, search, consultation, None)
        if decision.node is not None or decision.error or decision.gated is not None:
            return decision
        names, _ = state.offers(pod, None)
    with state.released(names):
        return _decided(pod, state, profile, generator, gate, make_room, search, consultation, join)


def _decided(
    pod: Pod,
    state: ClusterState,
    profile: Profile,
    generator: np.random.Generator | None,
    gate: bool,
    make_room: bool,
    search: NodeSearch | None,
    consultation: Consultation | None,
    join: Join | None,
) -> Decision:
    evaluation = Evaluation(pod, state, profile, search, consultation, join)
    decision = Decision(pod, None, evaluation.trail)
    try:
        decision.gated = evaluation.gate() if gate else None
        if decision.gated is None:
            evaluation.decide(decision, generator, make_room=make_room)
    except PluginError as error:
        decision.node, decision.error = None, str(error)
    if consultation:
        decision.asks, consultation.open = tuple(consultation.open), []
    return decision


def passing(pod: Pod, cluster: Cluster) -> Bools:
    """Which nodes would another pod pass, by the filters of the profile whose decision this cluster belongs to?"""
    profile = cluster.notes.get(PROFILE)
    found: Bools = np.ones(len(cluster.nodes), np.bool_) if profile is None else profile(pod)
    return found


def _passing(state: ClusterState, profile: Profile, pod: Pod) -> Bools:
    evaluation = Evaluation(pod, state, profile)
    evaluation.narrow()
    if evaluation.narrowed.refused is not None:
        return np.zeros(len(evaluation.nodes), np.bool_)
    evaluation.sift()
    found: Bools = evaluation.trail.verdict_of == FEASIBLE
    return found


@dataclass
class Narrowed:
    """What the pre-filters said: who has nothing to do, which nodes are left, or why the pod is refused."""

    skipped: set[str] = field(default_factory=set)
    names: frozenset[str] | None = None
    by: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    refused: Verdict | None = None


class Evaluation:
    """One pod's way through a profile. Post-filters use it to ask the same questions of a changed cluster."""

    def __init__(
        self,
        pod: Pod,
        state: ClusterState,
        profile: Profile,
        search: NodeSearch | None = None,
        consultation: Consultation | None = None,
        join: Join | None = None,
    ) -> None:
        self.pod, self.state, self.profile, self.search, self.consultation = pod, state, profile, search, consultation
        self.join = join
        self.cluster = Cluster(state, {PROFILE: partial(_passing, state, profile)})
        self.nodes = self.cluster.nodes
        self.narrowed = Narrowed()
        self.answers: CachedAnswers | None = None
        self.trail = Trail(state.table.live_names(), np.full(len(self.nodes), FEASIBLE, np.int32), [])

    def gate(self) -> Verdict | None:
        for bound in self.profile.at("preEnqueue"):
            refused = expect(bound, "pre_enqueue", Refuse, ask(bound, "pre_enqueue", self.pod, self.cluster))
            if refused is not None:
                return Verdict(bound.name, refused.code, refused.reasons)
        return None

    def decide(self, decision: Decision, generator: np.random.Generator | None, *, make_room: bool = True) -> None:
        self.narrow()
        decision.refused, decision.narrowed = self.narrowed.refused, self.narrowed.names
        decision.narrowed_by, decision.skipped = tuple(self.narrowed.by), self.narrowed.skipped
        if decision.refused is None:
            if not self.sift_nominated():
                self.sift()
            self.rank()
            decision.node = choose(self.trail, generator)
        if decision.node is None and make_room and len(self.nodes):
            decision.post_filter = self.make_room(decision)

    # -- pre-filters

    def narrow(self) -> None:
        said = self.narrowed
        if not len(self.nodes):
            said.refused = Verdict("", UNRESOLVABLE, ("no nodes available to schedule pods",))
            return
        for bound in self.profile.at("preFilter"):
            said.asked.append(bound.name)
            if not hasattr(bound.plugin, "pre_filter"):
                continue
            answer = ask(bound, "pre_filter", self.pod, self.cluster)
            if answer is None:
                continue
            if answer is SKIP:
                said.skipped.add(bound.name)
            elif isinstance(answer, Refuse):
                said.refused = Verdict(bound.name, answer.code, answer.reasons)
                if not answer.resolvable:
                    said.names = None
                    return
            elif isinstance(answer, Only):
                said.by.append(bound.name)
                said.names = answer.names if said.names is None else said.names & answer.names
                if not said.names:
                    said.refused = Verdict("", UNRESOLVABLE, (nobody_satisfies(said.by),))
                    return
            else:
                raise PluginError(bound.name, "pre_filter", f"answered {answer!r}; None, SKIP, Only or Refuse was due")

    # -- filters

    def sift_nominated(self) -> bool:
        """The node that was promised to the pod, looked at alone: if it will do, no other is."""
        if self.search is None:
            return False
        name = self.pod.nominated_node or self.state.nominations.node_of(self.pod.uid)
        at = self.nodes.position(name) if name else None
        if at is None or self.verdicts(self.nodes.rows[at : at + 1]) != [None]:
            return False
        if self.consultation and self.consultation.refused([name]):
            return False
        self.trail.verdict_of[:] = UNSEEN
        self.trail.verdict_of[at] = FEASIBLE
        return True

    def sift(self) -> None:
        """Fill in the trail: every node's first rejection, with nominated pods where they count."""
        if self.narrowed.names is not None:
            book, verdict_of = self._sift_named(self.narrowed.names)
        else:
            book, verdict_of = self._sift_all()
        for at, verdict in self.beside_nominated(self.nodes):
            if verdict_of[at] == FEASIBLE or book.verdicts[int(verdict_of[at])].plugin:
                verdict_of[at] = book.number(verdict)
        if self.search is not None and self.narrowed.names is None:
            self.search.stop(self.nodes, verdict_of, self.profile)
        if self.consultation:
            self._sift_by_extenders(self.consultation, book, verdict_of)
        for bound in self.profile.avoiding:
            self._leave_out(bound, book, verdict_of)
        self.trail.verdicts, self.trail.verdict_of = book.verdicts, verdict_of

    def _leave_out(self, bound: EnabledPlugin, book: VerdictCodes, verdict_of: Verdicts) -> None:
        """Nodes that a plugin would rather not have are refused as long as another one is left."""
        avoided = expect(bound, "avoid", Avoid, ask(bound, "avoid", self.pod, self.cluster))
        if avoided is None:
            return
        named = np.zeros(len(verdict_of), np.bool_)
        named[[at for name in avoided.names if (at := self.nodes.position(name)) is not None]] = True
        left = verdict_of == FEASIBLE
        out = left & (named != avoided.others)
        if out.any() and (left & ~out).any():
            verdict_of[out] = book.number(Verdict(bound.name, UNSCHEDULABLE, (avoided.reason,)))

    def _sift_by_extenders(self, consultation: Consultation, book: VerdictCodes, verdict_of: Verdicts) -> None:
        names = {self.trail.names[at]: at for at in (verdict_of == FEASIBLE).nonzero()[0].tolist()}
        for name, verdict in consultation.refused(list(names)).items():
            verdict_of[names[name]] = book.number(verdict)

    def _sift_named(self, names: frozenset[str]) -> tuple[VerdictCodes, Verdicts]:
        """Only nodes of these names are looked at; the others are refused by whoever narrowed the search."""
        nodes, book = self.nodes, VerdictCodes()
        reason = f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(self.narrowed.by))}]"
        verdict_of = np.full(len(nodes), book.number(Verdict("", UNRESOLVABLE, (reason,))), np.int32)
        named = np.array(sorted(at for name in names if (at := nodes.position(name)) is not None), np.int64)
        verdict_of[named] = self.filtered(self.view(nodes.rows[named]), self.filters(), book)
        return book, verdict_of

    def _sift_all(self) -> tuple[VerdictCodes, Verdicts]:
        """Filters that judge by the row alone are asked about rows that changed; the others about those still left."""
        filters = self.filters()
        steady = leading(filters, self.pod)
        answers = self.steady(steady)
        verdict_of = self.nodes.copy_of(answers.columns[VERDICT])
        book: VerdictCodes = answers.verdict_codes.copy()
        rest = filters[len(steady) :]
        if rest:
            left = (verdict_of == FEASIBLE).nonzero()[0]
            if len(left) == len(self.nodes):
                return book, self.filtered(self.nodes, rest, book)
            verdict_of[left] = self.filtered(self.view(self.nodes.rows[left]), rest, book)
        return book, verdict_of

    def steady(self, filters: tuple[EnabledPlugin, ...]) -> CachedAnswers:
        """The verdicts of filters, and the scores of plugins, that depend on pod's shape and row alone."""
        table, kept = self.state.table, self.state.answer_cache
        key = (self.profile, self.pod.shape.key, tuple(bound.name for bound in filters))
        found = kept.get(key)
        worn = found is not None and len(found.verdict_codes.verdicts) > MOST_VERDICTS
        answers = CachedAnswers(VerdictCodes()) if found is None or worn else found
        stale, capacity = answers.stale(table, table.capacity), table.capacity
        if len(stale):
            nodes = self.nodes if len(stale) == len(self.nodes) else self.view(stale)
            answers.put(VERDICT, stale, self.filtered(nodes, filters, answers.verdict_codes), capacity)
            for bound in self.profile.at("score"):
                if getattr(bound.plugin, "scores_by_row", False):
                    score = ask_score(bound, self.pod, nodes)
                    if score is not None:
                        answers.put(bound.name, stale, np.asarray(score, np.uint8), capacity)
            kept.keep(key, answers)
        answers.clock = table.clock
        self.answers = answers
        return answers

    def filters(self) -> tuple[EnabledPlugin, ...]:
        """The filters that have something to do for this pod."""
        return tuple(bound for bound in self.profile.at("filter") if bound.name not in self.narrowed.skipped)

    def filtered(self, nodes: Nodes, filters: Iterable[EnabledPlugin], book: VerdictCodes) -> Verdicts:
        """Every filter in order, each asked only about the nodes that are left; the number of each node's verdict."""
        verdict_of: Verdicts = np.full(len(nodes), FEASIBLE, np.int32)
        left, refused = nodes, None
        places: Rows | None = None  # where the nodes that are left are; all of them as long as none was refused
        for bound in filters:
            if refused is not None:
                passed = (~refused).nonzero()[0]
                left, places = left.where(passed), passed if places is None else places[passed]
            if not len(left):
                break
            refused = book.enter(bound, ask_filter(bound, self.pod, left), verdict_of, places)
        return verdict_of

    def beside_nominated(self, nodes: Nodes) -> Iterator[tuple[int, Verdict]]:
        """Nodes promised to other pods of equal or higher priority must fit this one beside them, too."""
        evicts = self.pod.spec.preemption_policy != "Never" or self.pod.priority > HIGHEST_OF_USERS
        firm = () if evicts else self.state.nominations.firm
        for name, pods in list(self.state.nominations.by_node.items()):
            rivals = (other for other in pods.values() if other.priority >= self.pod.priority or other.uid in firm)
            others = [other for other in rivals if other.uid != self.pod.uid and other.uid not in self.state.pods]
            at = nodes.position(name) if others else None
            if at is None:
                continue
            with self.state.trial() as trial:
                for other in others:
                    trial.add_pod(other, name, as_extension=True)
                book = VerdictCodes()
                beside = self.filtered(self.view(nodes.rows[at : at + 1]), self.filters(), book)
            if beside[0] != FEASIBLE:
                yield at, book.verdicts[int(beside[0])]

    def view(self, rows: Rows) -> Nodes:
        """These rows as they are now: what was read before a trial changed something must not be read again."""
        return Nodes(self.state, rows, False, Cluster(self.state, self.cluster.notes))

    # -- scores

    def rank(self) -> None:
        trail = self.trail
        trail.feasible = (trail.verdict_of == FEASIBLE).nonzero()[0]
        if not len(trail.feasible):
            return
        everybody = len(trail.feasible) == len(self.nodes)
        nodes = self.nodes if everybody else self.nodes.where(trail.feasible)
        trail.totals = np.zeros(len(nodes), np.int64 if self.consultation else self.profile.points_type)
        pre_scored = {bound.name for bound in self.profile.at("preScore")}
        for bound in self.profile.at("score"):
            score = self.score_of(bound, nodes)
            splits = "preScore" in getattr(bound.plugin, "configurable_at", ())
            if score is None and splits and bound.name not in pre_scored:
                # Saying "nothing to score" is PreScore's part; with that point switched off kube-scheduler scores 0.
                score = 0
            if score is not None:
                trail.scores[bound.name] = (bound.weight, score)
                add_weighted(trail.totals, score, bound.weight)
        if self.consultation and len(trail.feasible) > 1:
            for name, weight, scores in self.consultation.scores([trail.names[at] for at in trail.feasible.tolist()]):
                trail.scores[name] = (weight, scores)
                add_weighted(trail.totals, scores, weight)

    def score_of(self, bound: EnabledPlugin, nodes: Nodes) -> Ints | int | None:
        column = None if self.answers is None else self.answers.columns.get(bound.name)
        if column is None or not len(nodes):
            return ask_score(bound, self.pod, nodes)
        return nodes.copy_of(column)  # type: ignore[no-any-return]

    # -- post-filters

    def make_room(self, decision: Decision) -> PostFilterResult | None:
        reasons: tuple[str, ...] = ()
        breaks = False
        for bound in self.profile.at("postFilter"):
            answer = ask(bound, "post_filter", self.pod, decision, self)
            if not isinstance(answer, PostFilterResult):
                raise PluginError(bound.name, "post_filter", f"answered {answer!r}; PostFilterResult was due")
            result = answer
            if result.candidate is not None or result.settles:
                return result
            reasons, breaks = reasons + result.reasons, breaks or result.breaks_promise
        return PostFilterResult(reasons, breaks_promise=breaks) if reasons else None

    def verdicts(self, rows: Rows) -> list[Verdict | None]:
        """What the filters would say about these rows, as things stand now (inside a trial, say); None: feasible."""
        nodes, book = self.view(rows), VerdictCodes()
        verdict_of = self.filtered(nodes, self.filters(), book)
        for at, verdict in self.beside_nominated(nodes):
            verdict_of[at] = book.number(verdict)
        return [None if number == FEASIBLE else book.verdicts[number] for number in verdict_of.tolist()]

    def joined(self, candidates: list[Candidate]) -> list[Candidate]:
        """With those who would have to go besides the victims."""
        return candidates if self.join is None else self.join(self.pod, candidates)

    def consulted(self, candidates: list[Candidate]) -> list[Candidate]:
        """What extenders leave of nodes where evictions would make room."""
        return self.consultation.candidates(candidates) if self.consultation else candidates

    def pre_filtered(self, plugin: str) -> bool:
        return plugin in self.narrowed.asked

    def local(self) -> str:
        """The most that any filter for this pod looks at: "node", "resources", "pods" of one node, or "" for more."""
        marks = (getattr(bound.plugin, "local", "") for bound in self.filters())
        known = (mark if mark in LOCALITY else "" for mark in marks)
        return min(known, key=LOCALITY.index, default="node")


def add_weighted(totals: Ints, score: Ints | int, weight: int) -> None:
    """Scores may be kept as bytes, which must not be multiplied as such."""
    if weight == 1 or isinstance(score, int):
        totals += score * weight
    else:
        totals += np.multiply(score, weight, dtype=totals.dtype)


def choose(trail: Trail, generator: np.random.Generator | None) -> str | None:
    """One of the nodes with the highest total."""
    if not len(trail.feasible):
        return None
    if generator is None:
        return trail.names[int(trail.feasible[int(trail.totals.argmax())])]
    best = (trail.totals == trail.totals.max()).nonzero()[0]
    return trail.names[int(trail.feasible[int(best[int(generator.integers(len(best)))])])]


def leading(filters: tuple[EnabledPlugin, ...], pod: Pod) -> tuple[EnabledPlugin, ...]:
    """The filters up to the first one whose answer for a node needs more than the pod's shape and that node's row."""
    for at, bound in enumerate(filters):
        by_row = getattr(bound.plugin, "filters_by_row", False)
        if not (ask(bound, "filters_by_row", pod) if callable(by_row) else by_row):
            return filters[:at]
    return filters


def nobody_satisfies(plugins: list[str]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"
