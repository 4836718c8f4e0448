"""The array plugins against their per-node twins: same verdicts, reasons and codes on random clusters."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from stowplan.framework.plugin_checks import check_plugin
from stowplan.plugins.nodes.default.node_affinity import NodeAffinityPlugin
from stowplan.plugins.nodes.default.node_resources_fit import NodeResourcesFit
from stowplan.plugins.nodes.default.taint_toleration import TaintToleration
from stowplan.testing.builders import a_state
from stowplan.testing.plugin_questions import filtered
from tests import strategies
from tests.hypothesis_settings import max_examples
from tests.plugins.nodes.default.per_node_twins import AffinityTwin, FitTwin, TaintTwin

PAIRS = [
    pytest.param(TaintToleration, TaintTwin, strategies.pods("incoming"), id="taints"),
    pytest.param(
        NodeResourcesFit, FitTwin, strategies.pods("incoming", among=strategies.PODS_WITH_INIT_CONTAINERS), id="fit"
    ),
    pytest.param(
        NodeAffinityPlugin,
        AffinityTwin,
        strategies.pods("incoming", among=strategies.PODS_WITH_NODE_AFFINITY),
        id="node affinity",
    ),
]


@pytest.mark.parametrize(("plugin", "twin", "pods"), PAIRS)
@settings(max_examples=4 * max_examples())
@given(cluster=strategies.clusters(), data=st.data())
def test_array_plugin_and_twin_give_the_same_verdicts(
    plugin: Any, twin: Any, pods: Any, cluster: dict[str, Any], data: st.DataObject
) -> None:
    pod, state = data.draw(pods), a_state(**cluster)
    said = filtered(plugin(), pod, state)
    event("some are refused" if any(said.values()) else "none is refused")
    assert said == filtered(twin(), pod, state)


@pytest.mark.parametrize(("plugin", "twin", "pods"), PAIRS)
def test_check_plugin_finds_the_twins_in_agreement(plugin: Any, twin: Any, pods: Any) -> None:
    not_filters = dict.fromkeys(("score", "class_provides_resource"), "this is about the filter")
    idle = {method: why for method, why in not_filters.items() if hasattr(plugin, method)}
    assert check_plugin(plugin(), twin=twin(), idle=idle) == []


@pytest.mark.parametrize(("plugin", "twin", "pods"), PAIRS)
def test_a_twin_is_a_plugin_that_keeps_the_contract(plugin: Any, twin: Any, pods: Any) -> None:
    assert check_plugin(twin()) == []
