"""The table of built-ins: each default plugin at the points it has in kube-scheduler 1.36, in the default order."""

from __future__ import annotations

import subprocess
import sys

import pytest

from stowplan.framework.config.plugin_sets import DEFAULT_PLUGINS
from stowplan.framework.extension_points import points_of
from stowplan.plugins import BUILT_IN
from stowplan.testing.builders import a_profile
from tests.framework.config.configurations import POINTS_OF

DEFAULTS = [name for name, _ in DEFAULT_PLUGINS]
PRE_FILTERS = (
    "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone "
    "PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures"
)
PRE_SCORES = (
    "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity "
    "NodeResourcesBalancedAllocation"
)


@pytest.mark.parametrize(
    ("point", "names"),
    [
        pytest.param("preEnqueue", "SchedulingGates DynamicResources DefaultPreemption", id="preEnqueue"),
        pytest.param("queueSort", "PrioritySort", id="queueSort"),
        pytest.param("preFilter", PRE_FILTERS, id="preFilter"),
        pytest.param("filter", f"NodeUnschedulable NodeName TaintToleration {PRE_FILTERS}", id="filter"),
        pytest.param("postFilter", "DynamicResources DefaultPreemption", id="postFilter"),
        pytest.param("preScore", PRE_SCORES, id="preScore"),
        pytest.param("reserve", "VolumeBinding DynamicResources", id="reserve"),
        pytest.param("permit", "", id="permit"),
        pytest.param("preBind", "VolumeBinding DynamicResources", id="preBind"),
        pytest.param("bind", "DefaultBinder", id="bind"),
        pytest.param("postBind", "", id="postBind"),
    ],
)
def test_the_default_profile_has_kube_schedulers_order(point: str, names: str) -> None:
    assert [enabled.name for enabled in a_profile().points[point]] == names.split()


def test_the_default_weights_are_kube_schedulers() -> None:
    assert {enabled.name: enabled.weight for enabled in a_profile().scorers} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }


OTHERS_LOADED = """
import sys
from stowplan.apps import profile_loader
from stowplan.apps.run import service
profile_loader.defaults()
modules = (name.split(".") for name in sys.modules if name.startswith("stowplan.plugins.nodes."))
print(*sorted({module[3] for module in modules if module[3] != "default"}))
"""


def test_a_scheduler_imports_the_policies_that_it_runs_and_no_others() -> None:
    done = subprocess.run([sys.executable, "-c", OTHERS_LOADED], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("name", BUILT_IN)
def test_each_row_of_the_table_names_a_class(name: str) -> None:
    plugin = BUILT_IN[name]
    assert isinstance(plugin, type) and plugin.__module__.startswith("stowplan.plugins.nodes.")
    assert name in BUILT_IN and BUILT_IN.get(name) is plugin


def test_a_name_that_is_not_in_the_table() -> None:
    assert "Nobody" not in BUILT_IN and BUILT_IN.get("Nobody") is None


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_plugin_has_the_points_it_has_in_kube_scheduler(name: str) -> None:
    behind_gates = {"placementScore", "placementGenerate"}
    assert points_of(BUILT_IN[name]) == set(POINTS_OF[name].split()) - behind_gates


def test_one_instance_serves_all_points() -> None:
    profile = a_profile()
    for name in DEFAULTS:
        found = {id(bound.plugin) for bounds in profile.points.values() for bound in bounds if bound.name == name}
        assert len(found) == 1, name
