"""At every step of a run kube-scheduler's own code decides the same about the same cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from stowplan.apps.parity.node_records import LISTS
from stowplan.framework.decision import Decision
from stowplan.kube.resources import RESOURCES
from stowplan.simulation.run import Simulation
from tests.oracle.__main__ import build
from tests.oracle.remedies import Expect, Scenario, recorded
from tests.simulation.drawn_runs import a_drawn_run

Told = dict[str, Any]
UNSURE = "the recorder is wrong"  # it asks two ways which pods could be evicted, and says so if they differ


class HeardDecisions:
    """The decisions of a run, each with the cluster as it was when the scheduler made it."""

    def __init__(self, run: Simulation) -> None:
        self._run = run
        self.scenarios: list[Scenario] = []
        self.told: list[Told] = []
        run.engine.decisions.on_decision = self._hear

    def _hear(self, decision: Decision) -> None:
        """Nothing has been carried out yet, so the API server still has the cluster of the decision."""
        store = self._run.cluster.api.store
        lists = {name: [each.document for each in store.all(_collection(kind))] for name, kind in LISTS.items()}
        pods = {each["metadata"]["uid"]: each for each in lists["pods"]}
        for uid, assumed in self._run.engine.assumed_pods.items():  # their bindings are under way
            if uid in pods:
                pods[uid] = {**pods[uid], "spec": {**pods[uid]["spec"], "nodeName": assumed.node_name}}
        pods.pop(decision.pod.uid)
        pod = store.get("pods", decision.pod.key)
        # Of equally important pods kube-scheduler keeps the one that its cache has first. No object tells which; in the
        # recorder it is the first of this list. We keep the one with the lower uid.
        lists["pods"] = [pods[uid] for uid in sorted(pods)]
        # Of an image that nodes have in different sizes both take the size that they were told first.
        row_of = self._run.engine.state.table.row_of
        lists["nodes"].sort(key=lambda node: row_of[node["metadata"]["name"]])
        self.scenarios.append({"id": "", "config": None, "cluster": lists, "pod": pod})
        self.told.append(told(decision))


def _collection(kind: str) -> str:
    resource = RESOURCES[kind]
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def told(decision: Decision) -> Told:
    """What was decided, in the form of a record."""
    is_refused = decision.refused is not None  # as a whole: no filter was asked about a node
    feasible = [] if is_refused else sorted(name for name, verdict in decision.trail.rejections() if verdict is None)
    found: Told = {"feasible": feasible, "best": sorted(decision.trail.best())}
    if decision.node is not None and decision.node == decision.pod.nominated_node:
        return {"nominated": decision.node}  # this node is asked first, and alone if the pod fits there
    if decision.node is None:
        found["message"] = decision.message
    else:
        assert decision.node in found["best"]
    result = decision.post_filter
    if result is not None and result.candidate is not None:
        victims = sorted(each.name for each in result.candidate.victims)
        found["preempts"] = {"node": result.candidate.node, "victims": victims}
    return found


def differences(expect: Expect, ours: Told) -> dict[str, tuple[Any, Any]]:
    """Return what kube-scheduler would have decided otherwise, by the field: its answer, and ours."""
    if "error" in expect:
        return {"error": (expect["error"], ours)}
    if "nominated" in ours:
        fits = (expect.get("filter") or {}).get(ours["nominated"], expect) is None
        return {} if fits else {"nominated": (expect.get("filter"), ours["nominated"])}
    theirs: Told = {
        "feasible": sorted(name for name, verdict in (expect.get("filter") or {}).items() if verdict is None),
        "best": expect.get("best") or [],
    }
    if "message" in expect:
        theirs["message"] = expect["message"]
    preemption = expect.get("preemption") or {}
    if picked := preemption.get("picked"):
        node = ours["preempts"]["node"] if "preempts" in ours else picked[0]
        node = node if node in picked else picked[0]
        theirs["preempts"] = {"node": node, "victims": sorted(preemption["candidates"][node]["victims"])}
    fields = sorted({*theirs, *ours})
    return {each: (theirs.get(each), ours.get(each)) for each in fields if theirs.get(each) != ours.get(each)}


def check(seeds: Sequence[int]) -> list[Told]:
    """Compare every decision of these runs, and return our decisions."""
    recorder = build()
    if recorder is None:
        pytest.skip("no Go on this machine, so the recorder of kube-scheduler's decisions cannot be built")
    scenarios: list[Scenario] = []
    heard: list[tuple[int, Told]] = []
    for seed in seeds:
        run = a_drawn_run(seed)
        decisions = HeardDecisions(run)
        run.run()
        scenarios += decisions.scenarios
        heard += ((seed, each) for each in decisions.told)
    answers = recorded(recorder)(scenarios)
    unsure = [each for each in answers if each.get("error", "").startswith(UNSURE)]
    assert len(unsure) <= len(answers) // 100, unsure
    assert len({seed for seed, _ in heard}) == len(seeds)
    assert len(heard) > 10 * len(seeds)
    assert any(each.get("best") for _, each in heard) and any("message" in each for _, each in heard)
    wrong = [
        (seed, scenario["pod"]["metadata"]["name"], found)
        for (seed, ours), scenario, answer in zip(heard, scenarios, answers, strict=True)
        if answer not in unsure and (found := differences(answer, ours))
    ]
    assert wrong == []
    return [each for _, each in heard]


def test_every_decision_of_three_drawn_runs_is_that_of_kube_scheduler() -> None:
    check((1, 5, 9))


@pytest.mark.full
def test_every_decision_of_50_drawn_runs_is_that_of_kube_scheduler() -> None:
    heard = check(range(50))
    assert any("preempts" in each for each in heard)
