"""`check_plugin` finds each way of breaking the contract, and finds nothing wrong with plugins that keep it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from stowplan.columns.nodes.one_node import OneNode
from stowplan.framework.decision import SKIP, Only, Reject, RejectPod
from stowplan.framework.interfaces import Wake
from stowplan.framework.per_node import per_node
from stowplan.framework.plugin_checks import check_plugin
from stowplan.framework.random_clusters import PREFERRED, draw
from stowplan.objects.applications import MINIMA, NAMES
from stowplan.objects.pods import Pod
from stowplan.plugins import BUILT_IN
from stowplan.testing.builders import a_namespace, a_node, a_pod

PREFERS = {
    "nodeAffinity": {
        PREFERRED: [{"weight": 5, "preference": {"matchExpressions": [{"key": "disk", "operator": "Exists"}]}}]
    }
}
PODS = {  # for plugins that act on fields which random pods do not have
    "SchedulingGates": [a_pod(schedulingGates=[{"name": "quota"}])],
    "NodeName": [a_pod(node="n0")],
    "NodeAffinity": [a_pod(affinity=PREFERS)],
    "NodeDeclaredFeatures": [a_pod(hostNetwork=True, hostUsers=False)],
    "GangPacking": [a_pod(labels={NAMES[0]: "training", MINIMA[0]: "4"}, cpu="500m")],
}
GPU_PODS = [a_pod(annotations={"gpu-fraction": "0.3"}), a_pod(requests={"nvidia.com/gpu": 2})]
GPU_NODES = [a_node(f"gpus-{gpus}", cpu="64", resources={"nvidia.com/gpu": gpus}) for gpus in (1, 4, 8)]
WITH_GPUS = ("GpuSharing", "GpuDotProduct", "GpuBestFit", "GpuClustering", "GpuPacking", "FragmentationGradient")
PODS |= dict.fromkeys(WITH_GPUS, GPU_PODS)
OBJECTS = dict.fromkeys(WITH_GPUS, GPU_NODES)  # random nodes have no GPUs
VOLUMES = [
    *("filter", "score", "pre_bind", "topologies_changed", "is_claimed", "migrated_plugins_changed"),
    *("capacity_unchecked_now", "has_more_space"),
]
POLICIES = ["filter", "score", "its_policy", "its_owner", "gauges"]
# Methods that need objects of further kinds; the plugins' own tests have them.
IDLE = {
    "NodeResourcesFit": ["class_provides_resource"],
    "VolumeRestrictions": ["filter", "pod_freed_volume", "is_claimed"],
    "NodeVolumeLimits": ["filter", "limit_raised", "pod_had_volumes", "is_claimed", "may_have_been_counted"],
    "VolumeBinding": VOLUMES,
    "LeafNodeVolumeBinding": VOLUMES,
    "VolumeZone": ["filter", "class_waits_for_pod", "is_claimed", "volume_moved"],
    "DynamicResources": ["pre_enqueue", "filter", "score", "reserve", "pre_bind", "claim_changed", "claims_made"],
    "DefaultPreemption": ["pre_enqueue"],
    "NodeDeclaredFeatures": ["pod_needs_other_features"],
    "GangScheduling": ["pre_enqueue", "group_of", "its_group"],
    "Coscheduling": ["pre_enqueue", "group_of", "its_group"],
    "SPPriority": ["avoid", "score", "pre_bind", "may_be_owner"],
    "WorkloadPolicy": POLICIES,
    "LeafNodeWorkloadPolicy": POLICIES,
    "LeafNodeDistribution": ["filter", "of_its_namespace"],
    "GpuRandom": ["score"],  # it prefers nothing
    "ResourceReservation": ["filter", "avoid", "pre_bind", "has_executors"],
}


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_plugins_keep_the_contract(name: str) -> None:
    idle = dict.fromkeys(IDLE.get(name, ()), "it needs objects of further kinds")
    assert check_plugin(BUILT_IN[name], pods=PODS.get(name, ()), objects=OBJECTS.get(name, ()), idle=idle) == []


class _Plugin:
    """What the bad ones below have in common, so that each shows nothing but its fault."""

    def __init__(self) -> None:
        self.asked = 0


class NoMethod(_Plugin):
    pass


class ReserveAlone(_Plugin):
    def reserve(self, pod: Any, node_name: str, state: Any) -> None:
        pass


class HintWithoutMethod(_Plugin):
    def filter(self, pod: Any, nodes: Any) -> Any:
        return ()

    def wakes_on(self) -> Iterable[Wake]:
        yield Wake("Node", ("Add",), hint="on_node")


class LocalTrue(_Plugin):
    local = True

    def filter(self, pod: Any, nodes: Any) -> Any:
        return ()


class Raises(_Plugin):
    def filter(self, pod: Any, nodes: Any) -> Any:
        return [nodes.no_such_column]


class WrongShape(_Plugin):
    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(np.ones(len(nodes) + 1, np.bool_), "no")


class WrongKindOfRows(_Plugin):
    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(np.ones(len(nodes), np.int64), "no")


class WrongResolvable(_Plugin):
    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(np.ones(len(nodes), np.bool_), "no", np.ones(len(nodes) + 1, np.bool_))


class Floats(_Plugin):
    def score(self, pod: Any, nodes: Any) -> Any:
        return np.ones(len(nodes))


class TooMuch(_Plugin):
    def score(self, pod: Any, nodes: Any) -> Any:
        return np.full(len(nodes), 101, np.int64)


class TooLittle(_Plugin):
    def score(self, pod: Any, nodes: Any) -> Any:
        return np.full(len(nodes), -1, np.int64)


class WrongPreFilter(_Plugin):
    def pre_filter(self, pod: Any, cluster: Any) -> Any:
        return True


class RefusesTheLastOne(_Plugin):
    """Its answer depends on who else is asked about."""

    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(nodes.free["cpu"] == nodes.free["cpu"].max(), "the freest of those asked about")


class FollowsPositions(_Plugin):
    def score(self, pod: Any, nodes: Any) -> Any:
        return np.arange(len(nodes), dtype=np.int64)


class FollowsRows(_Plugin):
    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(nodes.rows % 2 == 0, "even rows")


class Forgetful(_Plugin):
    """Says something else each time."""

    def score(self, pod: Any, nodes: Any) -> Any:
        self.asked += 1
        return np.full(len(nodes), self.asked % 2, np.int64)


class ForgetfulFilter(_Plugin):
    def filter(self, pod: Any, nodes: Any) -> Any:
        self.asked += 1
        yield Reject(np.full(len(nodes), self.asked % 2 == 0), "every second time")


class WritesIntoColumns(_Plugin):
    def score(self, pod: Any, nodes: Any) -> Any:
        nodes.requested["cpu"][:] = 0
        return np.zeros(len(nodes), np.int64)


class WritesBehindTheView(_Plugin):
    def score(self, pod: Any, nodes: Any) -> Any:
        nodes.cluster._state.table.requested["cpu"] += 1
        return np.zeros(len(nodes), np.int64)


class PlacesThePod(_Plugin):
    def filter(self, pod: Any, nodes: Any) -> Any:
        state = nodes.cluster._state
        if pod.uid not in state.pods:
            state.add_pod(pod, nodes.names[0])
        return ()


class LabelsThePod(_Plugin):
    def filter(self, pod: Any, nodes: Any) -> Any:
        pod.labels["seen"] = "yes"
        return ()


class FalselyLocal(_Plugin):
    local = "node"

    def filter(self, pod: Any, nodes: Any) -> Any:
        most = nodes.cluster.nodes.allocatable["memory"].max()
        yield Reject(nodes.allocatable["memory"] < most, "not the largest of the cluster")


class FalselyByRow(_Plugin):
    scores_by_row = True

    def score(self, pod: Any, nodes: Any) -> Any:
        return nodes.allocatable["cpu"] * 100 // nodes.cluster.nodes.allocatable["cpu"].max()


class FalselyByNode(_Plugin):
    scores_by_node = True

    def score(self, pod: Any, nodes: Any) -> Any:
        return np.minimum(nodes.requested["pods"], 100)


class ScoresByNodeAndLabels(_Plugin):
    scores_by_node = True

    def score(self, pod: Any, nodes: Any) -> Any:
        return 1 if pod.labels.get("another") else 0


class FalselyIgnoresRequests(_Plugin):
    scores_by_node = ignores_requests = True

    def score(self, pod: Any, nodes: Any) -> Any:
        return 1 if pod.request else 0


class FalselySkips(_Plugin):
    pre_filters_by_shape = ignores_requests = True

    def pre_filter(self, pod: Any, cluster: Any) -> Any:
        return None if pod.request else SKIP

    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(nodes.allocatable["cpu"] < pod.request.get("cpu", 0), "too small")


class ReadsMoreThanTheShape(_Plugin):
    filters_by_row = True

    def filter(self, pod: Any, nodes: Any) -> Any:
        yield Reject(np.full(len(nodes), pod.labels.get("app") == "x"), "not those pods")


class ScoresMoreThanTheShape(_Plugin):
    scores_by_row = True

    def score(self, pod: Any, nodes: Any) -> Any:
        return np.full(len(nodes), pod.priority, np.int64)


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        pytest.param(FalselyByNode, "score depends on the pods on nodes, though", id="scores_by_node, yet by pods"),
        pytest.param(
            ScoresByNodeAndLabels, "score depends on more than the pod's shape", id="scores_by_node, by labels"
        ),
        pytest.param(FalselyIgnoresRequests, "score depends on what the pod requests", id="a score by requests"),
        pytest.param(FalselySkips, "pre_filter depends on what the pod requests", id="a pre-filter by requests"),
        pytest.param(NoMethod, "it has no method of any extension point", id="no method"),
        pytest.param(ReserveAlone, "reserve and unreserve go together", id="reserve without unreserve"),
        pytest.param(HintWithoutMethod, "wakes_on names the hint 'on_node'", id="a hint without a method"),
        pytest.param(
            LocalTrue, "local is True, and may be one of pods, resources, node", id="a word that says nothing"
        ),
        pytest.param(Raises, "filter fails: AttributeError: ", id="it raises"),
        pytest.param(WrongShape, "filter fails: rejected rows must be ", id="a wrong shape"),
        pytest.param(WrongKindOfRows, "filter fails: rejected rows must be ", id="a wrong type of rows"),
        pytest.param(WrongResolvable, "filter fails: ", id="a wrong shape of resolvable"),
        pytest.param(Floats, "score fails: scores must be ", id="scores that are floats"),
        pytest.param(TooMuch, "score fails: scores must be within 0 and 100; found 101", id="a score above 100"),
        pytest.param(TooLittle, "score fails: scores must be within 0 and 100; found -1", id="a score below 0"),
        pytest.param(
            WrongPreFilter, "pre_filter gives a wrong answer: True; None, SKIP, Only", id="a wrong pre-filter"
        ),
        pytest.param(
            RefusesTheLastOne, "filter depends on which other nodes it is asked about: node ", id="fewer rows"
        ),
        pytest.param(FollowsPositions, "score depends on the order of rows: node ", id="scores by position"),
        pytest.param(FollowsRows, "filter depends on the order of rows: node ", id="a filter by row number"),
        pytest.param(Forgetful, "score gives two answers to one question: node ", id="another score each time"),
        pytest.param(
            ForgetfulFilter, "filter gives two answers to one question: node ", id="another verdict each time"
        ),
        pytest.param(WritesIntoColumns, "score fails: ValueError: assignment destination is read-only", id="it writes"),
        pytest.param(WritesBehindTheView, "it changed what it was shown: requested cpu", id="it writes past the view"),
        pytest.param(PlacesThePod, "it changed what it was shown: requested ", id="it changes the state"),
        pytest.param(LabelsThePod, "it changed what it was shown: the pod's labels", id="it changes the pod's labels"),
        pytest.param(FalselyLocal, "filter depends on other nodes, though", id="not as local as it says"),
        pytest.param(FalselyByRow, "score depends on other nodes, though", id="a score that is not by row"),
        pytest.param(
            ReadsMoreThanTheShape, "filter depends on more than the pod's shape", id="reads more than the shape"
        ),
        pytest.param(
            ScoresMoreThanTheShape, "score depends on more than the pod's shape", id="scores more than the shape"
        ),
    ],
)
def test_what_is_wrong_is_found_and_named(plugin: Any, problem: str) -> None:
    found = [each for each in check_plugin(plugin) if problem in each]
    assert len(found) == 1, check_plugin(plugin)
    assert found[0].startswith(f"{plugin.__name__}: {problem}")


def test_a_problem_names_the_pod_and_the_seed_of_its_cluster() -> None:
    (problem,) = check_plugin(TooMuch, seed=7, clusters=1)
    assert problem.endswith("(pod default/incoming, cluster seed 7)")


# -- twins


@per_node
class Small:
    """Disagrees with what it is a twin of about large nodes."""

    def fits(self, pod: Pod, node: OneNode) -> str | None:
        return "no" if node.allocatable("cpu") == 4000 else None

    def rate(self, pod: Pod, node: OneNode) -> int:
        return 1 if node.allocatable("cpu") == 4000 else 0


class AcceptsAll:
    def filter(self, pod: Any, nodes: Any) -> Any:
        return ()

    def score(self, pod: Any, nodes: Any) -> Any:
        return np.zeros(len(nodes), np.int64)


ALL_ALIKE = {"filter": "it accepts all nodes", "score": "it likes them all"}


def test_a_twin_that_says_something_else_is_found() -> None:
    filters, scores = check_plugin(AcceptsAll(), twin=Small(), idle=ALL_ALIKE)
    assert filters.startswith("AcceptsAll: filter and its twin's fits disagree: node n")
    assert "gets None, and then ('Unschedulable', ('no',))" in filters
    assert scores.startswith("AcceptsAll: score and its twin's rate disagree: node n")


def test_a_twin_that_agrees_is_fine() -> None:
    assert check_plugin(Small(), twin=Small(), idle={"score": "it filters the nodes that it would prefer"}) == []


# -- what is tried


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(None, id="all nodes"),
        pytest.param(SKIP, id="skip"),
        pytest.param(RejectPod(("no",)), id="refuse"),
        pytest.param(Only(frozenset({"n0", "unknown"})), id="narrow"),
    ],
)
def test_a_pre_filter_may_say_what_it_may_say(answer: Any) -> None:
    class Narrow(AcceptsAll):
        def pre_filter(self, pod: Any, cluster: Any) -> Any:
            return answer

        def filter(self, pod: Any, nodes: Any) -> Any:
            assert answer is None or set(nodes.names) <= {"n0"}
            return ()

    idle = {**ALL_ALIKE, "pre_filter": "it says one thing only"}
    assert check_plugin(Narrow(), idle=idle) == []


def test_pods_and_objects_of_ones_own_are_tried() -> None:
    seen = set()

    class Looks(AcceptsAll):
        def score(self, pod: Any, nodes: Any) -> Any:
            seen.add((pod.name, nodes.cluster.namespace_labels("default").get("team")))
            return None

    red = a_namespace("default", team="red")
    assert check_plugin(Looks(), pods=[a_pod("mine")], objects=[red], clusters=2, idle=ALL_ALIKE) == []
    assert seen == {("incoming", "red"), ("mine", "red")}


def test_the_same_seed_draws_the_same_cluster() -> None:
    assert draw(3) == draw(3)
    assert draw(3) != draw(4)


def test_random_clusters_have_something_for_everybody() -> None:
    drawn = [draw(seed) for seed in range(40)]
    nodes = [node for each in drawn for node in each.nodes]
    assert any(node.taints for node in nodes) and any(node.spec.unschedulable for node in nodes)
    assert {1, 5} <= {len(each.nodes) for each in drawn}
    pods = [each.pod for each in drawn]
    for part in ("tolerations", "node_selector", "topology_spread_constraints"):
        assert any(getattr(pod.spec, part) for pod in pods), part
    assert any(pod.shape.required_anti_affinity for pod in pods) and any(pod.shape.host_ports for pod in pods)
