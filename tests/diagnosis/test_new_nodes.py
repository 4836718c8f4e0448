"""Nodes that could be added: which templates are tried, what they are called, and what the pod must change beside."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.diagnosis.groups.diagnosis import diagnose_group
from stowplan.diagnosis.remedy import AddNodes, Remedy
from stowplan.diagnosis.search import TOO_MANY, diagnose
from stowplan.objects.nodes import Node
from stowplan.testing.builders import HOSTNAME, a_node, a_pod, a_profile, a_state
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import gang, profiles

POOL, ZONE = "karpenter.sh/nodepool", "topology.kubernetes.io/zone"
TAINT = "dedicated=gpu:NoSchedule"


def full(nodes: list[Node]) -> Any:
    """The nodes, each with a pod of the system that takes all of it."""
    pods = [a_pod(f"on-{each.name}", cpu=4, node=each.name, priority=2_000_000_000) for each in nodes]
    return a_state(nodes=nodes, pods=pods)


def adding(remedies: tuple[Remedy, ...]) -> list[str]:
    return [each.text for each in remedies if any(isinstance(change, AddNodes) for change in each.changes)]


def pooled(name: str, zone: str, *taints: str) -> Node:
    return a_node(name, cpu=4, labels={POOL: "general", ZONE: zone, HOSTNAME: name}, taints=taints)


# -- what they are called


@pytest.mark.parametrize(
    ("nodes", "templates", "expected"),
    [
        pytest.param([pooled("n0", "z1"), pooled("n1", "z1")], [], ["general"], id="a pool of one sort has its name"),
        pytest.param(
            [pooled("n0", "z1"), pooled("n1", "z2")], [], ["n0 of pool general", "n1 of pool general"],
            id="nodes of one pool in two zones are two templates",
        ),
        pytest.param(
            [pooled("n0", "z1")], ["general"], ["n0 of pool general", "the template general"],
            id="a template of the caller with the name of a pool",
        ),
        pytest.param(
            [a_node("a", cpu=4)], ["a"], ["the node a", "the template a"],
            id="a template of the caller with the name of a node",
        ),
        pytest.param([a_node("a", cpu=4)], ["large"], ["a", "large"], id="names that differ say enough"),
    ],
)  # fmt: skip
def test_each_template_is_tried_and_told_apart(nodes: list[Node], templates: list[str], expected: list[str]) -> None:
    given = {name: a_node(name, cpu=64) for name in templates}
    found = diagnose(a_pod(cpu=4), full(nodes), a_profile(), templates=given)
    assert sorted(adding(found.remedies)) == [f"add a node like {each}" for each in expected]


def test_a_template_of_the_caller_wins_by_name() -> None:
    found = diagnose(a_pod(cpu=9), full([pooled("n0", "z1")]), a_profile(), templates={"general": a_node(cpu=64)})
    (change,) = (each for remedy in found.remedies for each in remedy.changes if isinstance(each, AddNodes))
    assert (change.like, change.document["status"]["allocatable"]["cpu"]) == ("general", "64")


def test_a_group_has_the_same_templates() -> None:
    members = gang("gang", 2, cpu="4")
    nodes = [pooled("n0", "z1"), pooled("n1", "z2")]
    world = World(nodes=nodes, profiles=profiles())
    world.submit(*(a_pod(f"on-{each.name}", cpu=4, node=each.name, priority=2_000_000_000) for each in nodes))
    world.submit(*members)
    world.run()
    found = diagnose_group(world.scheduler, "default/gang", templates={"general": a_node(cpu=4)})
    expected = [
        f"add 2 nodes like {each}" for each in ("n0 of pool general", "n1 of pool general", "the template general")
    ]
    assert sorted(adding(found.remedies)) == expected


# -- with changes of the pod


def test_three_faults_at_once_are_a_toleration_a_selector_and_a_node() -> None:
    state = full([a_node("a", cpu=4, taints=[TAINT], labels={"disk": "hdd"})])
    found = diagnose(a_pod(cpu=2, node_selector={"disk": "ssd"}), state, a_profile())
    first = found.remedies[0]
    assert first.code == "selector-value+tolerate+add-nodes" and first.node == "a-new-1"
    assert first.text == f"tolerate {TAINT}; change disk in nodeSelector from ssd to hdd; add a node like a"


def test_taints_and_labels_that_only_a_template_has_count() -> None:
    large = {"large": a_node("large", cpu=16, taints=[TAINT], labels={"disk": "nvme"})}
    found = diagnose(a_pod(cpu=9, node_selector={"disk": "ssd"}), a_state(nodes=[]), a_profile(), templates=large)
    assert found.remedies[0].code == "selector-value+tolerate+add-nodes" and found.bounded == ""


def test_what_needs_more_changes_than_are_tried_says_so() -> None:
    taints = [f"t{number}=x:NoSchedule" for number in range(3)]
    found = diagnose(a_pod(cpu=2), full([a_node("a", cpu=4, taints=taints)]), a_profile())
    assert adding(found.remedies) == [] and TOO_MANY in found.bounded
