"""What wakes a pod that WorkloadPolicy rejected, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.plugins.nodes.workload_policy.plugin import WorkloadPolicyPlugin
from stowplan.testing.builders import a_node
from tests.plugins.nodes.workload_policy.policies import a_member, a_policy, an_owner, reference

REPLICAS = reference("ReplicaSet", "web-1")


def helps(resource: str, pod: Any, old: Any, new: Any) -> bool:
    plugin = WorkloadPolicyPlugin()
    (wake,) = (each for each in plugin.wakes_on() if each.resource == resource)
    return wake.helps(plugin, pod, old, new)


MINE, UNNAMED = a_member(), a_member(policy="", owner=REPLICAS)


@pytest.mark.parametrize(
    ("pod", "old", "new", "wakes"),
    [
        pytest.param(MINE, None, a_policy(), True, id="its policy comes"),
        pytest.param(MINE, a_policy({"a": 1}), a_policy({"a": 2}), True, id="its policy says something else"),
        pytest.param(MINE, a_policy(), a_policy(generation=2), False, id="its policy says the same"),
        pytest.param(MINE, None, a_policy(name="other"), False, id="another policy"),
        pytest.param(MINE, None, a_policy(namespace="other"), False, id="a policy of another namespace"),
        pytest.param(UNNAMED, None, a_policy(name="other"), True, id="one that its owner may name"),
    ],
)
def test_policies_wake(pod: Any, old: Any, new: Any, wakes: bool) -> None:
    assert helps("WorkloadPolicy", pod, old, new) is wakes


THERE = a_member("other", node="a")


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        pytest.param(THERE, None, True, id="a neighbour goes"),
        pytest.param(a_member("other", node="a", namespace="n"), None, False, id="one of another namespace"),
        pytest.param(THERE, a_member("other", node="a", terminating=True), True, id="a neighbour begins to go"),
        pytest.param(THERE, a_member("other", node="a", labels={"app": "y"}), True, id="other labels"),
        pytest.param(THERE, a_member("other", node="a", phase="Running"), False, id="nothing of interest"),
        pytest.param(MINE, a_member(labels={"app": "y"}), True, id="the pod itself has other labels"),
    ],
)
def test_pods_wake(old: Any, new: Any, wakes: bool) -> None:
    assert helps("Pod", MINE, old, new) is wakes


@pytest.mark.parametrize(
    ("pod", "old", "new", "wakes"),
    [
        pytest.param(UNNAMED, None, an_owner("ReplicaSet", "web-1"), True, id="its ReplicaSet comes"),
        pytest.param(UNNAMED, None, an_owner("ReplicaSet", "web-2"), False, id="another one comes"),
        pytest.param(
            UNNAMED, an_owner("ReplicaSet", "web-1"), an_owner("ReplicaSet", "web-1", policy="p"), True, id="a name"
        ),
        pytest.param(
            UNNAMED, an_owner("ReplicaSet", "web-1"), an_owner("ReplicaSet", "web-1"), False, id="it says what it said"
        ),
        pytest.param(UNNAMED, None, an_owner("Deployment", "any", policy="p"), True, id="a Deployment, perhaps its"),
        pytest.param(MINE, None, an_owner("ReplicaSet", "web-1"), False, id="the pod names a policy itself"),
        pytest.param(UNNAMED, None, an_owner("ReplicaSet", "web-1", namespace="n"), False, id="another namespace"),
    ],
)  # fmt: skip
def test_owners_wake(pod: Any, old: Any, new: Any, wakes: bool) -> None:
    assert helps(type(new).__name__, pod, old, new) is wakes


def test_nodes_wake() -> None:
    assert helps("Node", MINE, None, a_node("a"))
