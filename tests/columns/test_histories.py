"""Any history of changes and trials leaves the columns as if they had been built from what is there now.

A machine makes changes to a state and to a model of plain dictionaries. After every step the columns must equal columns
rebuilt from the model, by node name; and a decision on the state, with all the answers that it has kept, must equal one
on the rebuilt state, must be drawn from the same best nodes, and must read the same later, when more has changed.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stowplan.columns.nodes import answer_cache, best_rows, table
from stowplan.columns.pods import carried_terms, match_counts
from stowplan.columns.pods.match_counts import Settled
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import Decision
from stowplan.framework.evaluation import schedule_one
from stowplan.objects.changes import Gone, Put
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.default import inter_pod_affinity
from stowplan.testing.builders import HOSTNAME, PREFERRED, REQUIRED, a_node, a_pod, a_profile
from stowplan.testing.comparison import contents, decision_contents, differences
from tests import strategies
from tests.columns.model import (
    QUERIES,
    Model,
    counted_by_hand,
    play,
    requested_by_hand,
    try_out,
)
from tests.strategies import NODE_NAMES, PODS, RESIZED_PODS, UIDS

PROFILE = a_profile()  # shared by all states, as it would be by a state that is built anew
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}
NEAR = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}
ON_N1 = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]}
IN_ZONE_A = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
PROBES = [
    a_pod("plain", cpu="100m", memory="64Mi", image="web", namespace="one", priority=7),
    a_pod(
        "liking",
        cpu="100m",
        memory="64Mi",
        namespace="one",
        affinity={"nodeAffinity": {PREFERRED: [{"weight": 3, "preference": IN_ZONE_A}]}},
    ),
    a_pod("named", cpu="100m", memory="64Mi", image="web", namespace="one", node="n1"),
    a_pod("large", requests={"example.com/gpu": 1, "cpu": 2}, ports=[80], tolerations=["k:"], namespace="two"),
    a_pod("spread", labels={"app": "x"}, namespace="one", topologySpreadConstraints=[SPREAD | {"minDomains": 2}]),
    a_pod(
        "softly",
        labels={"app": "x"},
        namespace="one",
        topologySpreadConstraints=[SPREAD | {"whenUnsatisfiable": "ScheduleAnyway"}],
    ),
    a_pod("away", labels={"app": "x"}, namespace="one", affinity={"podAntiAffinity": {REQUIRED: [NEAR]}}),
    a_pod(
        "near",
        labels={"tier": "front"},
        namespace="two",
        affinity={"podAffinity": {REQUIRED: [NEAR | {"namespaceSelector": {"matchLabels": {"team": "red"}}}]}},
    ),
    a_pod("choosy", node_selector={"zone": "a"}, affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [ON_N1]}}}),
]
PROBE = a_pod("probe", namespace="one", labels={"app": "x", "tier": "front"})
KEYS = ("zone", "rank", HOSTNAME)
ANYWHERE = (*NODE_NAMES, "never-a-node")

node_names, uids, probes = st.sampled_from(ANYWHERE), st.sampled_from(UIDS), strategies.from_pool(PROBES)
placed_pods = strategies.pods(on=ANYWHERE, among=RESIZED_PODS)
AMOUNTS = ({"cpu": 500}, {"memory": 2**30, "example.com/tpu": 3})


def kinds_of_operations(extended: bool) -> dict[str, tuple[st.SearchStrategy[Any], ...]]:
    """What a trial may do. `extended`: pods also come and go as kube-scheduler's dry runs count them."""
    as_extension = st.booleans() if extended else st.just(False)
    return {
        "add": (strategies.pods(), node_names, as_extension),
        "remove": (uids, as_extension),
        "hold": (st.sampled_from("gh"), node_names, st.sampled_from(AMOUNTS)),
        "release": (st.sampled_from("gh"),),
        "nominate": (strategies.pods(), node_names),
        "assume": (strategies.namespaces | strategies.services,),
        "ask": (st.integers(0, 5), st.booleans()),
        "decide": (probes,),
        "save": (),
        "undo": (),
    }


@st.composite
def programs(draw: st.DrawFn, extended: bool, depth: int = 2) -> list[tuple[Any, ...]]:
    """Operations, some of which are trials of their own."""
    kinds = kinds_of_operations(extended)
    program: list[tuple[Any, ...]] = []
    for kind in draw(st.lists(st.sampled_from((*kinds, *["trial"] * 2 * bool(depth))), min_size=1, max_size=6)):
        if kind == "trial":
            program.append((kind, draw(st.booleans()), draw(programs(extended, depth - 1))))
        else:
            program.append((kind, *(draw(argument) for argument in kinds[kind])))
    return program


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.state, self.model = ClusterState(), Model()
        self.keys: set[str] = set()
        self.unread: deque[tuple[Decision, dict[str, Any]]] = deque()  # decisions, and what they must say later
        self.steps = 0

    @initialize(nodes=st.lists(strategies.nodes(), max_size=4), pods=st.lists(placed_pods, max_size=4))
    def begin(self, nodes: list[Node], pods: list[Pod]) -> None:
        for node in nodes:
            self.put_node(node)
        for pod in pods:
            self.put_pod(pod)

    # -- changes

    @rule(node=strategies.nodes())
    def put_node(self, node: Node) -> None:
        self.state.apply(Put(node))
        self.model.nodes[node.name] = node

    @rule(name=node_names)
    def remove_node(self, name: str) -> None:
        self.state.apply(Gone(self.model.nodes.pop(name, a_node(name))))

    @rule(pod=placed_pods)
    def put_pod(self, pod: Pod) -> None:
        self.state.apply(Put(pod))
        self.model.put_pod(pod)

    @rule(pod=strategies.from_pool(PODS), uid=uids, name=node_names, phase=st.sampled_from(("", "Succeeded", "Failed")))
    def put_pod_without_a_node(self, pod: Pod, uid: str, name: str, phase: str) -> None:
        self.put_pod(strategies.placed(pod, uid, nominated=name, phase=phase))

    @rule(pod=strategies.from_pool(PODS), uid=uids, name=node_names)
    def finish_pod(self, pod: Pod, uid: str, name: str) -> None:
        self.put_pod(strategies.placed(pod, uid, name, phase="Succeeded"))

    @rule(uid=uids, pod=placed_pods)
    def remove_pod(self, uid: str, pod: Pod) -> None:
        """What is said of a pod that is gone need not be what was known of it."""
        self.state.apply(Gone(strategies.placed(pod, uid, pod.node_name)))
        self.model.drop_pod(uid)

    @rule(found=strategies.namespaces | strategies.services)
    def put_other(self, found: Object) -> None:
        self.state.apply(Put(found))
        self.model.others[type(found), found.key] = found

    @rule(found=strategies.namespaces | strategies.services)
    def remove_other(self, found: Object) -> None:
        self.state.apply(Gone(found))
        self.model.others.pop((type(found), found.key), None)

    # -- questions

    @rule(number=st.integers(0, len(QUERIES) - 1), settled=st.sampled_from((False, True, "always")))
    def ask(self, number: int, settled: Settled) -> None:
        """From now on this count is kept in step."""
        self.state.count(*QUERIES[number], settled=settled)

    @rule(key=st.sampled_from(KEYS))
    def look_at_label(self, key: str) -> None:
        self.keys.add(key)

    @rule(pod=probes)
    def decide(self, pod: Pod) -> None:
        fresh = schedule_one(pod, self.model.rebuilt(), PROFILE)
        assert not fresh.error
        mine = schedule_one(pod, self.state, PROFILE)
        assert list(differences(decision_contents(mine), decision_contents(fresh))) == []
        best = mine.trail.best()
        for seed in range(2):
            later = schedule_one(pod, self.state, PROFILE, np.random.default_rng(seed), preempt=False)
            place = int(np.random.default_rng(seed).integers(len(best))) if len(best) > 1 else 0
            assert later.node == (best[place] if best else None)
            self.unread.append((later, decision_contents(fresh) | {"room": None}))

    @rule(pod=probes, uid=uids, seed=st.integers(0, 3))
    def schedule(self, pod: Pod, uid: str, seed: int) -> None:
        """Place a pod where a decision wants it."""
        decision = schedule_one(pod, self.state, PROFILE, np.random.default_rng(seed), preempt=False)
        if decision.node is not None:
            self.put_pod(strategies.placed(pod, uid, decision.node))

    @rule(number=st.integers(1, 4))
    def read_decisions_made_before(self, number: int) -> None:
        for _ in range(min(number, len(self.unread))):
            decision, expected = self.unread.popleft()
            assert list(differences(decision_contents(decision), expected)) == []

    def teardown(self) -> None:
        self.read_decisions_made_before(len(self.unread))

    # -- what if

    @rule(program=programs(extended=False))
    def what_if_and_stay_with_it(self, program: list[Any]) -> None:
        try_out(program, self.state, self.model, PROFILE, kept=True)

    @rule(program=programs(extended=True))
    def what_if_and_undo_it(self, program: list[Any]) -> None:
        try_out(program, self.state, self.model, PROFILE, kept=False)

    @rule(program=programs(extended=True))
    def what_if_that_fails(self, program: list[Any]) -> None:
        class FailedError(Exception):
            pass

        try:
            with self.state.trial() as trial:
                play(program, self.state, trial, self.model.copy(), PROFILE)
                trial.keep()
                raise FailedError
        except FailedError:
            pass

    # -- what must hold

    @invariant()
    def columns_equal_rebuilt_columns(self) -> None:
        questions, sums = self.state.match_counts.questions, self.state.match_counts.sums
        mine = contents(self.state, questions, self.keys, PROBE, sums)
        assert list(differences(mine, contents(self.model.rebuilt(), questions, self.keys, PROBE, sums))) == []
        assert mine["counts"] == {question: counted_by_hand(self.model, question) for question in questions}
        assert mine["requested"] == requested_by_hand(self.model)

    @invariant()
    def kept_answers_are_right(self) -> None:
        self.steps += 1
        self.decide(PROBES[self.steps % len(PROBES)])

    @invariant()
    def no_trial_is_left_open(self) -> None:
        assert self.state._journal is None


class HistoriesWithLittleMemory(Histories):
    """The same with room for three questions and one label column, so that they are dropped and asked anew.

    And as if there were many carried terms: their sums are kept, for two questions at most; so are sums of preferred
    terms. Few changes of kept answers
    are noted before the columns are copied, and rows are ranked in blocks of two.
    """

    def __init__(self) -> None:
        super().__init__()
        self.limits = match_counts.MOST_COUNTERS, match_counts.PATIENCE, table.MOST_LABEL_COLUMNS
        self.carried = carried_terms.MANY, carried_terms.MOST_QUESTIONS, carried_terms.LONGEST_LOG
        self.added_up = match_counts.MOST_SUMMED, inter_pod_affinity.FEW_TERMS
        match_counts.MOST_SUMMED, inter_pod_affinity.FEW_TERMS = 2, 0
        self.kept = answer_cache.MOST_NOTED, best_rows.SMALLEST_SHIFT
        answer_cache.MOST_NOTED, best_rows.SMALLEST_SHIFT = 3, 1
        match_counts.MOST_COUNTERS, match_counts.PATIENCE, table.MOST_LABEL_COLUMNS = 3, 1, 1
        carried_terms.MANY, carried_terms.MOST_QUESTIONS, carried_terms.LONGEST_LOG = 0, 2, 9

    def teardown(self) -> None:
        super().teardown()
        answer_cache.MOST_NOTED, best_rows.SMALLEST_SHIFT = self.kept
        match_counts.MOST_SUMMED, inter_pod_affinity.FEW_TERMS = self.added_up
        match_counts.MOST_COUNTERS, match_counts.PATIENCE, table.MOST_LABEL_COLUMNS = self.limits
        carried_terms.MANY, carried_terms.MOST_QUESTIONS, carried_terms.LONGEST_LOG = self.carried


TestHistories = Histories.TestCase
TestHistoriesWithLittleMemory = HistoriesWithLittleMemory.TestCase
