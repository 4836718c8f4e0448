"""LeafNodeTaintToleration: every pod tolerates the taint of leaf nodes, and no other."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.plugins.nodes.leaf_nodes.taint_toleration import LeafNodeTaintToleration
from stowplan.testing import check_plugin
from stowplan.testing.builders import a_node, a_pod, a_profile, a_state
from stowplan.testing.plugin_questions import filtered
from stowplan.testing.world import World

REJECTED = ("UnschedulableAndUnresolvable", ("node(s) had untolerated taint(s)",))


@pytest.mark.parametrize(
    ("taints", "expected"),
    [
        pytest.param([], None, id="none"),
        pytest.param(["kosmos.io/node=true:NoSchedule"], None, id="a leaf node's"),
        pytest.param(["kosmos.io/node=other:NoSchedule"], None, id="with another value"),
        pytest.param(["kosmos.io/node=true:NoExecute"], REJECTED, id="with another effect"),
        pytest.param(["dedicated=x:NoSchedule"], REJECTED, id="another one"),
        pytest.param(["kosmos.io/node=true:NoSchedule", "dedicated=x:NoSchedule"], REJECTED, id="both"),
        pytest.param(["team=a:NoSchedule"], None, id="one that the pod tolerates"),
        pytest.param(["soft=x:PreferNoSchedule"], None, id="a soft one"),
    ],
)
def test_taints(taints: list[str], expected: Any) -> None:
    pod = a_pod(tolerations=["team=a:NoSchedule"])
    found = filtered(LeafNodeTaintToleration(), pod, a_state(nodes=[a_node("n", taints=taints)]))
    assert found == {"n": expected}


def test_it_is_a_sound_plugin() -> None:
    check_plugin(LeafNodeTaintToleration())


def test_a_pod_is_woken_when_another_taint_goes() -> None:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"filter": {
            "enabled": [{"name": "LeafNodeTaintToleration"}], "disabled": [{"name": "TaintToleration"}],
        }}}],
    }  # fmt: skip
    leaf = ["kosmos.io/node=true:NoSchedule"]
    world = World(
        nodes=[a_node("n", taints=[*leaf, "x=y:NoSchedule"])], profiles={"default-scheduler": a_profile(document)}
    )
    world.submit(a_pod("p"))
    world.run()
    assert not world.bindings
    world.submit(a_node("n", taints=leaf))
    world.advance(11)
    assert world.bindings == {"p": "n"}
