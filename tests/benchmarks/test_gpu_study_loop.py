"""The plain NumPy loop of the GPU study decides as the engine does."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import gpu_study_loop
from stowplan.simulation import gpu_study
from tests.simulation.test_gpu_study import random_pods, the_nodes


@pytest.mark.parametrize("policy", gpu_study.DETERMINISTIC)
def test_the_loop_places_the_same_pods(policy: str) -> None:
    generator = np.random.default_rng(11)
    pods, nodes = random_pods(generator, 90), the_nodes()
    order = [*range(90), *generator.permutation(90).tolist()]
    profile = gpu_study.profile_of(policy, pods)
    expected = gpu_study.run(nodes, pods, order, profile, [node.name for node in nodes])
    assert gpu_study_loop.run(policy, nodes, pods, order) == expected
    assert expected[-1].placed < expected[-1].arrived, "the cluster became full"


def test_a_random_choice_is_one_of_the_feasible_nodes() -> None:
    generator = np.random.default_rng(11)
    pods, nodes = random_pods(generator, 90), the_nodes()
    loop = gpu_study_loop.Loop(gpu_study.RANDOM, nodes, pods, generator)
    placed = sum(pod.demand for pod in pods if loop.arrive(pod))
    assert 0 < placed == 1000 * loop.number.sum() - loop.free.sum()
    assert loop.cpu.min() >= 0 and loop.free.min() >= 0 and np.count_nonzero(loop.pods) > 1
