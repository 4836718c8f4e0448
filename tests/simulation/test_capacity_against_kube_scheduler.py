"""How many pods fit: kube-scheduler's own code places that many, one after the other, and not one more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from stowplan.apps.explain.answers import document_of
from stowplan.apps.parity import node_records
from stowplan.columns.state import ClusterState
from stowplan.framework.decision import Decision
from stowplan.objects import kinds
from stowplan.objects.pods import Pod
from stowplan.simulation.capacity import filling
from stowplan.simulation.pod_series import PodSeries
from tests.oracle.__main__ import build
from tests.oracle.remedies import Expect, Scenario, drawn, recorded

CATEGORIES = (
    "resources", "everything-mixed", "inter-pod-affinity", "topology-spread", "node-name-ports", "taints",
    "node-affinity", "preemption", "image-locality", "volumes",
)  # fmt: skip
MOST = 60  # pods; a cluster that takes more is left out
CLUSTERS_OF_SERVER = {"PersistentVolume": "persistentVolumes", "PersistentVolumeClaim": "persistentVolumeClaims"}


class Counted:
    """A count in a drawn cluster, with the question that kube-scheduler would have had for each pod."""

    def __init__(self, scenario: Scenario) -> None:
        self.name, self.decisions = str(scenario["id"]), list[Decision]()
        self.questions: list[Scenario] = []
        state = node_records.cluster(scenario["cluster"])
        template = {**scenario["pod"], "status": {}}
        template["metadata"] = {name: each for name, each in template["metadata"].items() if name != "uid"}
        first = kinds.convert(Pod, template)
        profile = node_records.profile_of(first, scenario.get("config"))
        profile.attach(state)
        series, cluster = PodSeries(first, taken=_keys(scenario)), scenario["cluster"]
        with filling(state, profile) as found:
            while len(found) < MOST:
                pod, claims = series[len(found)]
                for each in claims:
                    state.put(each)
                    _replace(cluster := dict(cluster), "persistentVolumeClaims", document_of(each))
                metadata = {**template["metadata"], "name": pod.name, "uid": pod.uid}
                document = {**template, "metadata": metadata}
                self.questions.append({**scenario, "cluster": cluster, "pod": document})
                decision = found.come(pod)
                self.decisions.append(decision)
                if decision.node is None:
                    break
                on_node = {**document, "spec": {**document["spec"], "nodeName": decision.node}}
                cluster = {**cluster, "pods": [*(cluster.get("pods") or ()), on_node]}
                for name, assumed in _assumed(state, pod):
                    _replace(cluster, name, assumed)
            self.fits = len(found)

    @property
    def is_whole(self) -> bool:
        """True for a count that came to its end. Pods with resource claims share these, and are not counted."""
        return self.fits < MOST and not self.decisions[-1].pod.spec.resource_claims

    def differences(self, answers: list[Expect]) -> Iterator[str]:
        for at, (decision, answer) in enumerate(zip(self.decisions, answers, strict=True)):
            best = answer.get("best") or []
            if "error" in answer:
                yield f"{self.name}: pod {at}: {answer['error']}"
            elif decision.node is None and best:
                yield f"{self.name}: pod {at} has no node, and kube-scheduler chooses one of {best}"
            elif decision.node is not None and decision.node not in best:
                yield f"{self.name}: pod {at} is on {decision.node}, and kube-scheduler chooses one of {best}"


def _keys(scenario: Scenario) -> set[str]:
    metadata = [each["metadata"] for each in scenario["cluster"].get("pods") or ()]
    return {f"{each['namespace']}/{each['name']}" for each in metadata}


def _assumed(state: ClusterState, pod: Pod) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the volumes and claims that the pod took, as the server has them after its binding."""
    for each in state.assumed.taken_by(pod.uid):
        if (name := CLUSTERS_OF_SERVER.get(type(each).__name__)) is not None:
            yield name, document_of(each)


def _replace(cluster: dict[str, Any], name: str, document: dict[str, Any]) -> None:
    def key(found: dict[str, Any]) -> tuple[Any, Any]:
        return found["metadata"].get("namespace", ""), found["metadata"]["name"]

    cluster[name] = [each for each in cluster.get(name) or () if key(each) != key(document)] + [document]


def check(count: int, seed: int) -> list[Counted]:
    recorder = build()
    if recorder is None:
        pytest.skip("no Go on this machine, so the recorder of kube-scheduler's decisions cannot be built")
    scenarios = drawn(recorder, -(-count // len(CATEGORIES)) * 3, seed, CATEGORIES)  # some are left out
    found = list(islice((each for each in map(Counted, _in_turns(scenarios)) if each.is_whole), count))
    assert len(found) == count
    answers = iter(recorded(recorder)([question for each in found for question in each.questions]))
    wrong = [told for each in found for told in each.differences([next(answers) for _ in each.questions])]
    assert wrong == []
    return found


def _in_turns(scenarios: list[Scenario]) -> Iterator[Scenario]:
    """Of each category one after the other."""
    by_category: dict[str, list[Scenario]] = {}
    for each in scenarios:
        by_category.setdefault(str(each["category"]), []).append(each)
    rows = list(by_category.values())
    for at in range(max(map(len, rows))):
        yield from (row[at] for row in rows if at < len(row))


def test_15_counts_are_those_of_kube_scheduler() -> None:
    found = check(15, seed=1)
    assert any(each.fits > 1 for each in found)


@pytest.mark.full
def test_200_counts_are_those_of_kube_scheduler() -> None:
    found = check(200, seed=2)
    assert sum(each.fits > 3 for each in found) > 50
