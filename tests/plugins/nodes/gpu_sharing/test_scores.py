"""The policies of the GPU study: fragmentation by the study's numbers, typical pods, and their arguments."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.framework.evaluation import schedule_one
from stowplan.objects.errors import ConfigError
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.gpu_sharing.fragmentation import Fragmentation, after_whole
from stowplan.plugins.nodes.gpu_sharing.scores import GpuBestFit, GpuClustering, GpuDotProduct, GpuPacking, GpuRandom
from stowplan.plugins.nodes.gpu_sharing.sharing import GpuSharing
from stowplan.plugins.nodes.gpu_sharing.typical_pods import TypicalPod, most_frequent
from stowplan.simulation import openb
from stowplan.testing.builders import a_pod, a_profile, a_profile_of, a_state
from tests.plugins.nodes.gpu_sharing.gpu_objects import a_gpu_node, a_gpu_pod

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "policies" / "gpu-sharing.md").read_text(encoding="utf-8")
LIST = ROOT.parent / "shared" / "data" / "openb" / "openb_pod_list_default.csv"
NODES = [a_gpu_node("empty", 2, cpu=64), a_gpu_node("used", 4, cpu=64), a_gpu_node("large", 8, cpu=128)]
PODS = [a_gpu_pod("x", 700, node="used", on="0", cpu=4), a_gpu_pod("y", 1000, 2, node="used", on="1-2", cpu=4)]


@pytest.mark.parametrize(
    ("plugin", "pod", "expected"),
    [
        pytest.param(GpuRandom(), a_gpu_pod("p"), [0, 0, 0], id="random: all alike"),
        pytest.param(GpuPacking(), a_pod("p"), [0, 0, 0], id="packing: no preference without GPUs"),
        pytest.param(GpuPacking(), a_gpu_pod("p", 200), [31, 97, 25], id="packing: a shared GPU, by what it has free"),
        pytest.param(GpuPacking(), a_gpu_pod("p", 500), [31, 49, 25], id="packing: a node in use before empty ones"),
        pytest.param(GpuClustering(), a_gpu_pod("p", 200), [43, 70, 25], id="clustering: shares beside others"),
        pytest.param(GpuClustering(), a_gpu_pod("p", 1000), [43, 20, 25], id="clustering: no pod of its kind"),
        pytest.param(GpuBestFit(), a_gpu_pod("p", 1000, cpu=8), [71, 79, 9], id="best fit: where the least is left"),
        pytest.param(GpuDotProduct(), a_gpu_pod("p", 1000, cpu=8), [96, 97, 90], id="dot product: the smaller one"),
    ],
)
def test_scores(plugin: Any, pod: Pod, expected: list[int]) -> None:
    found = plugin.score(pod, Cluster(a_state(nodes=NODES, pods=PODS)).nodes)
    assert (found.tolist() if isinstance(found, np.ndarray) else [found] * 3) == expected


@pytest.mark.parametrize(
    ("cpu", "gpus", "expected"),
    [
        pytest.param(128000, [1000] * 8, 1087.8187, id="an empty node"),
        pytest.param(64000, [1000] * 2, 271.9547, id="two GPUs"),
        pytest.param(32000, [500, 1000, 0, 0], 543.5230, id="a shared GPU"),
        pytest.param(4000, [1000] * 4, 2865.8254, id="little cpu"),
        pytest.param(0, [1000], 1000, id="no cpu"),
    ],
)
def test_fragmentation_is_that_of_the_study(cpu: int, gpus: list[int], expected: float) -> None:
    if not LIST.exists():
        pytest.skip(f"NOT CHECKED: there is no {LIST.name} in ../shared/data/openb")
    shapes = [pod.shape for pod in openb.read_pods(LIST.read_bytes(), LIST.name)]
    typical = most_frequent(shapes)
    measured = Fragmentation(typical, len(shapes))
    assert (len(typical), typical[0].cpu_milli, typical[0].gpu_milli) == (35, 3152, 810)
    assert measured.parts[0] == pytest.approx(0.134818, abs=5e-7)
    found = measured.of(np.array([cpu]), np.array([gpus]), None)[0]
    assert found == pytest.approx(expected, abs=5e-5)


def test_a_share_is_measured_as_the_whole_node_would_be() -> None:
    generator = np.random.default_rng(5)
    measured = Fragmentation(
        [TypicalPod(1000, 1, 300, count=5), TypicalPod(2000, 2, count=3), TypicalPod(500, count=2)]
    )
    free, cpu = generator.integers(0, 1001, (50, 4)), generator.integers(0, 4000, 50)
    node, device = (free >= 200).nonzero()
    left = free[node].copy()
    left[np.arange(len(node)), device] -= 200
    expected = measured.of(cpu[node], left, None)
    assert measured.with_share(cpu, free, node, device, 200, None).tolist() == expected.tolist()


def test_whole_gpus_are_the_first_empty_ones() -> None:
    free = np.array([[1000, 400, 1000, 1000], [0, 1000, 1000, 0]])
    assert after_whole(free, 2, 1000).tolist() == [[0, 400, 0, 1000], [0, 0, 0, 0]]


def test_typical_pods_are_those_of_most_pods_the_larger_ones_first() -> None:
    shapes = [(1, 0, 0, "")] * 10 + [(2, 500, 1, "T4")] * 5 + [(3, 500, 1, "")] * 5 + [(4, 1000, 1, "")]
    assert most_frequent(shapes) == (
        TypicalPod(1, 0, 0, (), 10),
        TypicalPod(3, 1, 500, (), 5),
        TypicalPod(2, 1, 500, ("T4",), 5),
    )


def test_the_profile_of_the_page_works() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    state = a_state(nodes=NODES, pods=PODS)
    decision = schedule_one(a_gpu_pod("p", 300, cpu="1", memory="1Mi"), state, a_profile(text))
    assert decision.node == "used", "where a share is in use already"


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        pytest.param({"typicalPods": []}, "typicalPods is empty", id="no typical pods"),
        pytest.param({"typicalPods": [{"cpuMilli": 1, "gpus": 65}]}, "typicalPods[0].gpus is 65", id="too many GPUs"),
        pytest.param({"typicalPods": [{"cpuMilli": 1, "count": 0}]}, "typicalPods[0].count is 0", id="no pod"),
    ],
)
def test_wrong_arguments_are_named(args: dict[str, Any], problem: str) -> None:
    plugins = {"multiPoint": {"enabled": [{"name": "FragmentationGradient"}]}}
    config = {"pluginConfig": [{"name": "FragmentationGradient", "args": args}]}
    with pytest.raises(ConfigError) as error:
        a_profile({"profiles": [{"plugins": plugins, **config}]})
    assert problem in str(error.value)


def test_sizes_of_no_node_are_refused() -> None:
    with pytest.raises(ConfigError, match="cores is 0"):
        GpuBestFit(cores=0)
    with pytest.raises(ConfigError, match="gpus is 0"):
        GpuClustering(gpus=0)


def test_scores_kept_by_row_follow_the_pods() -> None:
    state, profile = a_state(nodes=NODES, pods=PODS), a_profile_of(GpuSharing(), GpuPacking())
    assert schedule_one(a_gpu_pod("p", 200), state, profile).node == "used"
    state.remove_pod(PODS[0].uid)
    state.remove_pod(PODS[1].uid)
    assert schedule_one(a_gpu_pod("q", 200), state, profile).node == "empty"
