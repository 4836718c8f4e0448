"""How many members of a group can fit at most."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from stowplan.engine.preemption.capacity_check import CapacityCheck
from stowplan.engine.unit import Unit
from stowplan.testing.builders import HOSTNAME, REQUIRED, a_node, a_pod, a_profile, a_state

WITHOUT_AFFINITY = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "InterPodAffinity"}]}}}],
}


def apart_from(**labels: str) -> dict[str, Any]:
    return {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": labels}}]}}


@pytest.mark.parametrize(
    ("affinity", "labelled", "config", "most"),
    [
        pytest.param(None, "ab", None, 5, id="nothing keeps them apart"),
        pytest.param(apart_from(app="x"), "ab", None, 2, id="a host for each"),
        pytest.param(apart_from(app="y"), "ab", None, 5, id="only others are kept away"),
        pytest.param(apart_from(app="x"), "a", None, 5, id="a node without the label is no domain"),
        pytest.param(apart_from(app="x"), "ab", WITHOUT_AFFINITY, 5, id="no filter looks at terms"),
    ],
)
def test_members_that_must_be_apart_need_a_domain_each(affinity: Any, labelled: str, config: Any, most: int) -> None:
    nodes = [a_node(name, cpu=8, labels={HOSTNAME: name} if name in labelled else {}) for name in "ab"]
    members = [a_pod(f"p{number}", cpu=1, labels={"app": "x"}, affinity=affinity) for number in range(5)]
    unit = cast("Unit", SimpleNamespace(ready=members))

    assert CapacityCheck(a_state(nodes=nodes), unit, None, a_profile(config), ()).most(()) == most
