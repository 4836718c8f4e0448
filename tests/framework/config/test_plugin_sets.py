"""Plugin sets: which plugins run at a point, in which order and with which weight, as kube-scheduler 1.36 has it.

First without a file; then what `multiPoint`, a point of its own, `enabled` and `disabled` make of the defaults.
"""

from __future__ import annotations

import pytest

from stowplan.framework.config import configuration
from tests.framework.config.configurations import DEFAULT_FILTERS, DEFAULT_SCORES, FLAVOUR, at, implements, of_plugins


@pytest.mark.parametrize(
    ("point", "plugins"),
    [
        ("preEnqueue", "SchedulingGates, DynamicResources, DefaultPreemption"),
        ("queueSort", "PrioritySort"),
        ("preFilter", DEFAULT_FILTERS.removeprefix("NodeUnschedulable, NodeName, TaintToleration, ")),
        ("filter", DEFAULT_FILTERS),
        ("postFilter", "DynamicResources, DefaultPreemption"),
        (
            "preScore",
            "TaintToleration, NodeAffinity, NodeResourcesFit, VolumeBinding, PodTopologySpread, InterPodAffinity, "
            "NodeResourcesBalancedAllocation",
        ),
        ("score", DEFAULT_SCORES),
        ("reserve", "VolumeBinding, DynamicResources"),
        ("permit", ""),
        ("preBind", "VolumeBinding, DynamicResources"),
        ("bind", "DefaultBinder"),
        ("postBind", ""),
        ("placementGenerate", ""),
        ("placementScore", "NodeResourcesFit 1"),
    ],
)
def test_without_a_file_each_point_runs_the_plugins_of_kube_scheduler_1_36(point: str, plugins: str) -> None:
    assert at(configuration.default(implements).profiles[0], point) == plugins


@pytest.mark.parametrize(
    ("plugins", "scores"),
    [
        pytest.param(
            f"score: {{enabled: [{{name: {FLAVOUR}, weight: 5}}]}}",
            f"{DEFAULT_SCORES}, {FLAVOUR} 5",
            id="a plugin listed at a point comes after multiPoint's",
        ),
        pytest.param(
            "score: {enabled: [{name: ImageLocality, weight: 9}, {name: SPPriority}, {name: NodeAffinity, weight: 4}]}",
            "ImageLocality 9, NodeAffinity 4, TaintToleration 3, NodeResourcesFit 1, VolumeBinding 1, "
            "PodTopologySpread 2, InterPodAffinity 2, DynamicResources 2, NodeResourcesBalancedAllocation 1, "
            "SPPriority 1",
            id="overrides come first as written, then multiPoint, then others",
        ),
        pytest.param(
            "score: {enabled: [{name: TaintToleration}]}",
            "TaintToleration 1, " + DEFAULT_SCORES.removeprefix("TaintToleration 3, "),
            id="an override without a weight weighs 1, not the default",
        ),
        pytest.param(
            "score: {enabled: [{name: TaintToleration, weight: 0}]}",
            "TaintToleration 1, " + DEFAULT_SCORES.removeprefix("TaintToleration 3, "),
            id="weight 0 is weight 1",
        ),
        pytest.param(
            'score: {disabled: [{name: "*"}], enabled: [{name: SPPriority}, {name: NodeResourcesFit, weight: 2}]}',
            "SPPriority 1, NodeResourcesFit 2",
            id="a star at a point leaves only what is listed there, in that order",
        ),
        pytest.param(
            "score: {disabled: [{name: ImageLocality}, {name: VolumeBinding}]}",
            "TaintToleration 3, NodeAffinity 2, NodeResourcesFit 1, PodTopologySpread 2, InterPodAffinity 2, "
            "DynamicResources 2, NodeResourcesBalancedAllocation 1",
            id="disabled at a point is gone from that point",
        ),
        pytest.param(
            "score: {enabled: [{name: TaintToleration, weight: 7}], disabled: [{name: TaintToleration}]}",
            DEFAULT_SCORES.removeprefix("TaintToleration 3, ") + ", TaintToleration 7",
            id="enabled and disabled at once is enabled, but no override, so it comes last",
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: NodeAffinity, weight: 6}]}",
            DEFAULT_SCORES.replace("NodeAffinity 2", "NodeAffinity 6"),
            id="a default listed again in multiPoint keeps its place",
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: NodeAffinity, weight: 6}], disabled: [{name: NodeAffinity}]}",
            DEFAULT_SCORES.replace("NodeAffinity 2, ", "") + ", NodeAffinity 6",
            id="a default disabled and listed again in multiPoint goes to the end",
        ),
        pytest.param(
            f"multiPoint: {{enabled: [{{name: {FLAVOUR}}}]}}, score: {{enabled: [{{name: {FLAVOUR}, weight: 3}}]}}",
            f"{FLAVOUR} 3, {DEFAULT_SCORES}",
            id="the weight at score wins over the one in multiPoint",
        ),
        pytest.param(
            'multiPoint: {disabled: [{name: "*"}], enabled: [{name: ImageLocality}, {name: PrioritySort}, '
            "{name: DefaultBinder}, {name: SPPriority, weight: 8}]}",
            "ImageLocality 1, SPPriority 8",
            id="a star in multiPoint drops all defaults",
        ),
        pytest.param("score: , multiPoint: {enabled: ~}", DEFAULT_SCORES, id="null is nothing said"),
    ],
)
def test_scores(plugins: str, scores: str) -> None:
    assert at(of_plugins(plugins), "score") == scores


@pytest.mark.parametrize(
    ("plugins", "point", "expected"),
    [
        pytest.param(
            'queueSort: {enabled: [{name: Coscheduling}], disabled: [{name: "*"}]}',
            "queueSort",
            "Coscheduling",
            id="another queue sort",
        ),
        pytest.param(
            f"multiPoint: {{enabled: [{{name: {FLAVOUR}, weight: 2}}]}}",
            "postBind",
            FLAVOUR,
            id="multiPoint reaches all",
        ),
        pytest.param(f"score: {{enabled: [{{name: {FLAVOUR}}}]}}", "postBind", "", id="a point reaches only itself"),
        pytest.param(
            "multiPoint: {disabled: [{name: NodePorts}, {name: NodeName}]}",
            "filter",
            DEFAULT_FILTERS.replace("NodeName, ", "").replace("NodePorts, ", ""),
            id="disabled in multiPoint is gone everywhere",
        ),
        pytest.param(
            "placementGenerate: {enabled: [{name: TopologyPlacementGenerator}]}",
            "placementGenerate",
            "TopologyPlacementGenerator",
            id="placement points are read",
        ),
        pytest.param(
            "multiPoint: {enabled: [{name: SPPriority}, {name: SPPriority}]}, score: {enabled: [{name: SPPriority}]}",
            "score",
            "SPPriority 1, " + DEFAULT_SCORES,
            id="a duplicate in multiPoint does no harm where every point overrides it, as in kube-scheduler",
        ),
    ],
)
def test_points(plugins: str, point: str, expected: str) -> None:
    assert at(of_plugins(plugins), point) == expected


def test_plugins_that_no_point_runs_are_built_all_the_same() -> None:
    profile = of_plugins("score: {disabled: [{name: ImageLocality}]}")
    assert profile.plugin_args["ImageLocality"] == {}
