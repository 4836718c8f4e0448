"""/debug/explain: what `stowplan explain -o json` prints, with the place in the queue; reading changes nothing."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from stowplan.apps.run import explain_page
from stowplan.apps.run.explain_page import explained
from stowplan.framework.config.settings import Extender, ManagedResource
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.apps.explain import schema
from tests.plugins.nodes.coscheduling.pod_groups import gang, profiles


def shown(world: World, pod: Pod) -> dict[str, Any]:
    found = explained(world.scheduler, pod, {}, world.now)
    assert found is not None
    plain: dict[str, Any] = json.loads(msgspec.json.encode(found, enc_hook=str))
    schema.check(plain)
    return plain


def test_a_pending_pod() -> None:
    pod = a_pod("web", cpu="3")
    world = World(nodes=[a_node("a", cpu=4, taints=["dedicated=gpu:NoSchedule"]), a_node("b", cpu=2)])
    world.submit(pod)
    world.run()
    before = list(map(repr, world.actions))
    found = shown(world, pod)
    assert found["node"] is None
    assert found["waiting"]["queue"]["stage"] == "unschedulable" and found["waiting"]["queue"]["attempts"] == 1
    texts = {group["nodes"][0]: [each["code"] for each in group["causes"]] for group in found["causes"]}
    assert texts == {"a": ["taint"], "b": ["too-small"]}
    tolerate = next(each for each in found["remedies"] if each["code"] == "tolerate")
    assert tolerate["node"] == "a" and tolerate["commands"][0].startswith("kubectl -n default patch pod web")
    world.run()
    assert list(map(repr, world.actions)) == before


def test_a_pod_that_fits_and_a_bound_one() -> None:
    pod = a_pod("web", cpu="1")
    world = World(nodes=[a_node("a", cpu=4)])
    world.submit(pod)
    world.run()
    bound = world.scheduler.pods[pod.uid]
    found = shown(world, bound)
    assert (found["node"], found["boundTo"], found["waiting"]["queue"]) == ("a", "a", None)


def test_a_group_has_remedies_for_all_its_members() -> None:
    members = gang("gang", 3, cpu="3")
    world = World(nodes=[a_node("a", cpu=8), a_node("b", cpu=2)], profiles=profiles())
    world.submit(*members)
    world.run()
    before = list(map(repr, world.actions))
    found = shown(world, members[0])
    assert found["node"] is None and found["podGroup"]["whole"] is False
    codes = {each["code"]: len(each["nodes"]) for each in found["remedies"]}
    assert codes["lower-request"] == codes["add-nodes"] == 3 and codes["lower-minimum"] == 2
    lower = next(each for each in found["remedies"] if each["code"] == "lower-request")
    assert [command.split()[5] for command in lower["commands"]] == [pod.name for pod in members]
    world.run()
    assert list(map(repr, world.actions)) == before


def test_what_would_help_a_large_group_is_left_to_the_command() -> None:
    members = gang("gang", 101)
    world = World(nodes=[a_node("a", cpu=8)], profiles=profiles())
    world.submit(*members)
    world.run()
    found = shown(world, members[0])
    assert found["remedies"] == [] and "a group of 101 pods is not searched for here" in found["bounded"]


def test_pods_of_others_and_unknown_ones() -> None:
    world = World(nodes=[a_node("a", cpu=4)])
    assert explained(world.scheduler, a_pod("theirs", schedulerName="other"), {}, 0.0) is None
    assert explained(world.scheduler, a_pod("unknown"), {}, 0.0) is None


def test_extenders_that_may_reject_nodes_for_the_pod_are_named() -> None:
    gpu = ManagedResource("example.com/gpu")
    asked = Extender(url_prefix="http://127.0.0.1:1/all", filter_verb="filter")
    other = Extender(url_prefix="http://127.0.0.1:1/gpu", filter_verb="filter", managed_resources=(gpu,))
    world = World(nodes=[a_node("a", cpu=4)], extenders=(asked, other))
    pod = a_pod("web", cpu="9")
    world.submit(pod)
    assert shown(world, pod)["extendersNotAsked"] == ["http://127.0.0.1:1/all"]


def test_a_group_in_a_crowded_cluster_has_causes_and_says_that_nothing_was_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    members = gang("gang", 3, cpu="7")
    world = World(nodes=[a_node("a", cpu=8)], profiles=profiles())
    world.submit(a_pod("other", cpu="1", node="a"), a_pod("another", cpu="1", node="a"), *members)
    world.run()
    assert shown(world, members[0])["remedies"]
    monkeypatch.setattr(explain_page, "MOST_PODS", 1)
    found = shown(world, members[0])
    assert found["remedies"] == [] and found["causes"]
    assert found["bounded"].startswith("what would help a group is not searched for here in a cluster of 2 pods")
