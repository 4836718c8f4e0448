"""The experiment of the GPU fragmentation study: each decision as a plain judge makes it, and what is recorded."""

from __future__ import annotations

import math

import numpy as np
import pytest

from stowplan.framework.node_order import NodeOrder
from stowplan.objects.gpu_requests import INDEX
from stowplan.simulation import gpu_study
from stowplan.simulation.gpu_arrivals import arrivals
from stowplan.simulation.gpu_study import StudyPoint, curve
from stowplan.simulation.instant_cluster import InstantCluster
from stowplan.simulation.openb import OpenBNode, OpenBPod
from tests.simulation import plain_study
from tests.simulation.plain_study import Placed

ARRIVALS = 220
SIZES = ((64000, 4, "T4"), (96000, 8, "G2"), (32000, 2, "P100"), (128000, 8, "G3"), (48000, 2, "T4"), (16000, 1, "A10"))


def the_nodes() -> list[OpenBNode]:
    return [OpenBNode(f"n{at}", cpu, 262144, gpus, model) for at, (cpu, gpus, model) in enumerate(SIZES)]


def random_pods(generator: np.random.Generator, number: int) -> list[OpenBPod]:
    """Pods of few shapes, as in the trace: shares, whole GPUs, several of them, cpu alone, and a model now and then."""
    shapes = [(cpu, 1, milli) for cpu in (1000, 3152) for milli in (125, 300, 460, 810)]
    shapes += [(4000, 1, 1000), (12000, 1, 1000), (8000, 2, 1000), (16000, 4, 1000), (2000, 0, 0), (8000, 0, 0)]
    pods = []
    for at in range(number):
        cpu, gpus, milli = shapes[int(generator.integers(len(shapes)))]
        model = ("", "", "", "T4", "G2|P100")[int(generator.integers(5))] if gpus else ""
        pods.append(OpenBPod(f"p{at}", cpu, int(generator.integers(1, 16)) * 1024, gpus, milli, model))
    return pods


def in_the_engine(policy: str, nodes: list[OpenBNode], pods: list[OpenBPod], order: list[int]) -> list[Placed | None]:
    profile = gpu_study.profile_of(policy, pods)
    cluster = InstantCluster({gpu_study.SCHEDULER: profile}, NodeOrder(node.name for node in nodes))
    for node in sorted(nodes, key=lambda node: node.name, reverse=True):  # rows are in another order than ties
        cluster.put(node.as_node())
    found: list[Placed | None] = []
    for at in order:
        pod = pods[at].as_pod()
        name = cluster.arrive(pod)
        if name is None:
            cluster.remove(pod)
            found.append(None)
            continue
        index = cluster.scheduler.pods[pod.uid].annotations.get(INDEX, "")
        found.append(Placed(name, tuple(map(int, index.split("-"))) if index else ()))
    return found


@pytest.mark.parametrize("policy", gpu_study.DETERMINISTIC)
def test_every_decision_is_that_of_the_plain_judge(policy: str) -> None:
    generator = np.random.default_rng(7)
    pods, nodes = random_pods(generator, ARRIVALS), the_nodes()
    nodes = [nodes[at] for at in generator.permutation(len(nodes)).tolist()]
    order: list[int] = generator.permutation(len(pods)).tolist()
    expected = plain_study.replay(policy, nodes, pods, order)
    assert in_the_engine(policy, nodes, pods, order) == expected
    assert None in expected and len({each.node for each in expected if each}) == len(nodes), "the cluster became full"


def test_random_takes_every_node_and_gpu() -> None:
    generator = np.random.default_rng(3)
    pods, taken = [OpenBPod("p", 1000, 1, 1, 100)], set[Placed | None]()
    profile = gpu_study.profile_of("Random", pods)
    cluster = InstantCluster({gpu_study.SCHEDULER: profile}, generator)
    for node in the_nodes()[:3]:
        cluster.put(node.as_node())
    for number in range(90):
        pod = OpenBPod(f"p{number}", 1000, 1, 1, 100).as_pod()
        name = cluster.arrive(pod)
        assert name is not None
        taken.add(Placed(name, (int(cluster.scheduler.pods[pod.uid].annotations[INDEX]),)))
    assert len(taken) >= 12, "of 14 GPUs on three nodes"


def test_a_curve_is_the_mean_over_arrivals_at_each_percent() -> None:
    seen = [StudyPoint(100, 100), StudyPoint(102, 102), StudyPoint(249, 200), StudyPoint(350, 250)]
    found = curve(seen, 10_000, most=4)
    assert found == [1.01, 1.01, 2.0, 2.25, 2.5], "no arrival at 0 % and at 3 %: those beside it"
    assert math.isnan(curve(seen, 10_000, most=6)[6])


def test_an_unknown_policy_is_an_error() -> None:
    with pytest.raises(ValueError, match="there is no policy 'Best'; there are Random, DotProd"):
        gpu_study.profile_of("Best", [OpenBPod("p", 1, 1, 0, 0)])


@pytest.mark.parametrize(
    ("gpus", "least", "most"),
    [
        pytest.param(100, 129_000, 130_000, id="a list that asks for too little is filled up"),
        pytest.param(20, 25_000, 26_000, id="one that asks for too much is cut"),
    ],
)
def test_arrivals_ask_for_the_target(gpus: int, least: int, most: int) -> None:
    generator = np.random.default_rng(2)
    pods = [OpenBPod(f"p{at}", 1, 1, 1, 500) for at in range(100)]
    order = arrivals(pods, gpus * 1000, generator)
    assert least <= sum(pods[at].demand for at in order) <= most
    assert len(set(order)) == min(len(order), len(pods))
    assert order != arrivals(pods, gpus * 1000, generator)


def test_pods_without_gpus_arrive_once() -> None:
    pods = [OpenBPod(f"p{at}", 1, 1, 0, 0) for at in range(9)]
    assert sorted(arrivals(pods, 1000, np.random.default_rng(2))) == [*range(9)]
