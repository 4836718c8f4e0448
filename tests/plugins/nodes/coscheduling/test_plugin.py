"""Coscheduling: what labels and PodGroups say, in which order groups go, and gangs over time."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from stowplan.apps import profile_loader
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.engine.unit import QueueStage
from stowplan.framework.interfaces import QueueEntry
from stowplan.framework.plugin_checks import check_plugin
from stowplan.objects import applications
from stowplan.objects.changes import Put
from stowplan.objects.errors import ConfigError
from stowplan.plugins.nodes.coscheduling.plugin import Coscheduling
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import (  # fmt: skip
    MIN,
    MOMENT,
    NAME,
    a_kubernetes_group,
    a_pod_group,
    a_world,
    created,
    gang,
    member,
    running,
)

OLD_NAME, OLD_MIN = "pod-group.scheduling.sigs.k8s.io/name", "pod-group.scheduling.sigs.k8s.io/min-available"
GROUP = "scheduling.x-k8s.io/pod-group"


@pytest.mark.parametrize(
    ("labels", "name", "minimum", "problem"),
    [
        pytest.param({NAME: "g", MIN: "3"}, "g", 3, "", id="KubeNexus' labels"),
        pytest.param({OLD_NAME: "g", OLD_MIN: "3"}, "g", 3, "", id="the older labels"),
        pytest.param({NAME: "g", OLD_MIN: "3"}, "g", 3, "", id="name and number from two families"),
        pytest.param({NAME: "g", MIN: "256"}, "g", 256, "", id="large"),
        pytest.param({NAME: "g", OLD_NAME: "g", MIN: "3", OLD_MIN: "3"}, "g", 3, "", id="both families, agreeing"),
        pytest.param({}, "", 0, "", id="no labels"),
        pytest.param({NAME: "g"}, "", 0, "", id="a name without a number is no gang"),
        pytest.param({MIN: "3"}, "", 0, "", id="a number without a name is no gang"),
        pytest.param({NAME: "", MIN: "3"}, "", 0, "", id="an empty name is none"),
        pytest.param({NAME: "g", MIN: ""}, "", 0, "", id="an empty number is none"),
        pytest.param({NAME: "g", MIN: "1"}, "", 0, "", id="one pod needs nobody to wait for"),
        pytest.param({NAME: "g", MIN: "x"}, "g", 0, 'failed to parse min-available value "x"', id="no number"),
        pytest.param({NAME: "g", MIN: "1.5"}, "g", 0, 'failed to parse min-available value "1.5"', id="a fraction"),
        pytest.param({NAME: "g", MIN: "0"}, "g", 0, "min-available must be at least 1, got 0", id="zero"),
        pytest.param({NAME: "g", MIN: "-2"}, "g", -2, "min-available must be at least 1, got -2", id="below zero"),
        pytest.param(
            {NAME: "g", OLD_NAME: "h", MIN: "2"},
            "g",
            2,
            f"labels {NAME} and {OLD_NAME} contradict each other",
            id="two names",
        ),
        pytest.param({GROUP: "p"}, "p", 0, "", id="a PodGroup's name"),
        pytest.param(
            {GROUP: "p", NAME: "g", MIN: "2"},
            "p",
            0,
            f"labels {GROUP} and {NAME} name different groups",
            id="PodGroup and label",
        ),
    ],
)
def test_what_labels_say(labels: dict[str, str], name: str, minimum: int, problem: str) -> None:
    found = applications.identity(a_pod(labels=labels))
    assert (found.group, found.minimum, found.problem) == (name, minimum, problem)


@pytest.mark.parametrize(
    ("labels", "application", "role", "problem"),
    [
        pytest.param({"spark-app-id": "a", "spark-role": "driver"}, "a", "driver", "", id="Spark's labels"),
        pytest.param({"spark-app-selector": "s", "spark-role": "executor"}, "s", "executor", "", id="Spark's own"),
        pytest.param({"spark-app-selector": "s", "spark-app-id": "a"}, "a", "", "", id="one's own id goes first"),
        pytest.param(
            {"scheduling.kubenexus.io/app-id": "a", "scheduling.kubenexus.io/role": "driver"},
            "a",
            "driver",
            "",
            id="KubeNexus'",
        ),
        pytest.param({"spark-role": "history-server"}, "", "", "", id="another role is none of ours"),
        pytest.param(
            {"spark-app-id": "a", "scheduling.kubenexus.io/app-id": "b"},
            "a",
            "",
            "labels scheduling.kubenexus.io/app-id and spark-app-id contradict each other",
            id="two ids",
        ),
    ],
)
def test_which_application(labels: dict[str, str], application: str, role: str, problem: str) -> None:
    pod = a_pod(labels=labels)
    found = applications.identity(pod)
    assert (found.application, found.role, found.problem) == (application, role, problem)
    assert dict(pod.labels) == labels


def test_a_plugin_like_any_other() -> None:
    check_plugin(Coscheduling())


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"permit_waiting_time_seconds": -1}, "permitWaitingTimeSeconds: found -1"),
        ({"starvation_seconds": True}, "starvationSeconds: found true"),
        ({"match_policy": "always"}, 'matchPolicy: found "always", expected one of waiting-and-running'),
        ({"on_partial_bind": "Keep"}, 'onPartialBind: found "Keep", expected one of Complete, Evict'),
        ({"preemption": "yes"}, "preemption: found"),
    ],
)
def test_bad_arguments(args: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Coscheduling(**args)


# -- where a configuration lists it

HERE = [{"name": "Coscheduling"}]
SORTS = {"queueSort": {"enabled": HERE, "disabled": [{"name": "*"}]}}


def listed(*points: str) -> dict[str, Any]:
    return {point: {"enabled": HERE} for point in points}


@pytest.mark.parametrize(
    ("plugins", "amiss"),
    [
        pytest.param({**SORTS, "multiPoint": {"enabled": HERE}}, [], id="as in our profile"),
        pytest.param({"multiPoint": {"enabled": HERE, "disabled": [{"name": "PrioritySort"}]}}, [], id="multiPoint"),
        pytest.param({**SORTS, **listed("preFilter", "filter", "permit", "reserve")}, [], id="as KubeNexus has it"),
        pytest.param(
            {**SORTS, **listed("preFilter", "postFilter", "permit", "reserve", "postBind")}, [], id="as upstream"
        ),
        pytest.param(SORTS, [], id="only because all profiles have one order"),
        pytest.param({**SORTS, **listed("permit")}, ["preFilter"], id="in part"),
        pytest.param(listed("permit"), ["queueSort", "preFilter"], id="at one point"),
    ],
)
def test_gangs_are_whole_wherever_it_is_listed_and_a_check_says_what_is_amiss(
    plugins: dict[str, Any], amiss: list[str]
) -> None:
    profile = {"schedulerName": "default-scheduler", "plugins": plugins}
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    configuration, profiles = profile_loader.configured({**kind, "profiles": [profile]})
    said = [note.split(" is not at ")[1].split(":")[0] for note in configuration.notes]
    assert said == amiss and all(note.endswith("; enable it there, too") for note in configuration.notes)
    world = World(nodes=[a_node(f"n{at}", cpu=1) for at in range(4)], profiles=profiles)
    world.submit(*gang("a", 3), *gang("b", 3, at=1))
    world.advance(10)
    assert sorted(running(world).values()) == [3]


# -- the order


def waiting(
    name: str, priority: int = 0, at: int = 0, group: str = "", *, partially_bound: bool = False, aged: bool = False
) -> QueueEntry:
    pod = a_pod(name, priority=priority)
    return QueueEntry(pod, 0.0, group, MOMENT + timedelta(seconds=at), partially_bound, aged)


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param(waiting("a", 10, 5), waiting("b", 5, 1), id="priority beats age"),
        pytest.param(waiting("a", 10, 5, "g"), waiting("b", 5, 1, "h"), id="of groups, too"),
        pytest.param(waiting("a", 10, 5, "g"), waiting("b", 5, 1), id="of a group and a pod"),
        pytest.param(waiting("a", 10, 5), waiting("b", 5, 1, "h"), id="of a pod and a group"),
        pytest.param(waiting("b", 5, 1), waiting("a", 5, 2), id="the older pod"),
        pytest.param(waiting("b", 5, 1, "h"), waiting("a", 5, 2, "g"), id="the older group"),
        pytest.param(waiting("b", 5, 1, "h"), waiting("a", 5, 2), id="an older group before a pod"),
        pytest.param(waiting("b", 5, 1), waiting("a", 5, 2, "g"), id="an older pod before a group"),
        pytest.param(waiting("z", 5, 1, "g"), waiting("a", 5, 1, "h"), id="else by the group's name"),
        pytest.param(waiting("z", 5, 1), waiting("a", 5, 1, "g"), id="else a pod before a group"),
        pytest.param(waiting("a", 5, 1), waiting("b", 5, 1), id="else by the pod's name"),
        pytest.param(
            waiting("a", 0, 9, "g", partially_bound=True), waiting("b", 50, 1), id="what is bound in part goes first"
        ),
        pytest.param(waiting("a", 0, 9, "g", aged=True), waiting("b", 50, 1), id="what has aged goes first"),
        pytest.param(
            waiting("a", 0, 9, "g", partially_bound=True), waiting("b", 0, 1, "h", aged=True), id="in part before aged"
        ),
        pytest.param(
            waiting("a", 2_000_000_000, 9), waiting("b", 0, 1, "g", aged=True), id="never before critical pods"
        ),
        pytest.param(
            waiting("a", 2_000_000_000, 9), waiting("b", 0, 1, "g", partially_bound=True), id="in part neither"
        ),
        pytest.param(waiting("a", 2_000_001_000, 9), waiting("b", 2_000_000_000, 1), id="critical pods by priority"),
    ],
)
def test_who_goes_first(first: QueueEntry, then: QueueEntry) -> None:
    key = Coscheduling().group_key
    assert key(first) < key(then)


# -- what a group is


def test_what_the_objects_say() -> None:
    state = ClusterState()
    state.apply(Put(a_pod_group("sigs", 4, scheduleTimeoutSeconds=30, minResources={"cpu": "2"})))
    state.apply(Put(a_kubernetes_group("own", 5)))
    plugin, cluster = Coscheduling(permit_waiting_time_seconds=7), Cluster(state)
    sigs = plugin.group_of(a_pod(labels={GROUP: "sigs"}), cluster)
    assert sigs is not None
    assert (sigs.name, sigs.minimum, sigs.timeout, sigs.resources) == ("default/sigs", 4, 30.0, {"cpu": 2000})
    own = plugin.group_of(a_pod(schedulingGroup={"podGroupName": "own"}), cluster)
    assert own is not None and (own.name, own.minimum, own.timeout) == ("default/own", 5, 7.0)
    assert plugin.group_of(a_pod(), cluster) is None


@pytest.mark.parametrize(
    ("pod", "says"),
    [
        pytest.param(a_pod(labels={NAME: "g", MIN: "x"}), 'failed to parse min-available value "x"', id="no number"),
        pytest.param(a_pod(labels={GROUP: "p"}), "PodGroup default/p of scheduling.x-k8s.io does not exist", id="sigs"),
        pytest.param(
            a_pod(schedulingGroup={"podGroupName": "p"}),
            "PodGroup default/p of scheduling.k8s.io does not exist",
            id="own",
        ),
    ],
)
def test_pods_that_are_told_what_is_wrong(pod: Any, says: str) -> None:
    world = a_world(nodes=2)
    world.submit(pod)
    world.advance(5)
    condition = world.pod("pod").condition("PodScheduled")
    assert condition is not None and condition.reason == "Unschedulable" and says in condition.message
    assert not world.bindings


# -- over time


def test_a_gang_waits_for_its_members_and_is_told_so() -> None:
    world = a_world(nodes=3)
    first, *rest = gang("g", 3)
    world.submit(first)
    world.advance(5)
    assert not world.bindings
    assert world.event_notes("g-0") == ["pod group default/g: 1 of 3 pods exist"]
    condition = world.pod("g-0").condition("PodScheduled")
    assert condition is not None and condition.message == "pod group default/g: 1 of 3 pods exist"
    world.submit(*rest)
    world.run()
    assert running(world) == {"g": 3}


def test_a_burst_of_members_is_told_once() -> None:
    world = a_world(nodes=30)
    for each in gang("g", 20, needed=30):
        world.submit(each)
        world.advance(0.1)
    world.advance(5)
    assert all(world.event_notes(f"g-{at}") == ["pod group default/g: 20 of 30 pods exist"] for at in range(20))


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        pytest.param({"needed": 2}, "pod group default/g needs 3 pods, but this pod says 2", id="another number"),
        pytest.param({"priority": 7}, "pod group default/g has priority 0, but this pod has 7", id="another priority"),
    ],
)
def test_members_must_agree(odd: dict[str, Any], says: str) -> None:
    world = a_world(nodes=4)
    needed = odd.pop("needed", 3)
    world.submit(*gang("g", 2, 3), *gang("g", 1, needed, first=2, at=1, **odd))
    world.advance(5)
    assert not world.bindings and any(says in each for each in world.event_notes("g-2"))
    world.submit(*gang("g", 1, 3, first=3))
    world.run()
    assert running(world) == {"g": 3} and not world.pod("g-2").node_name


def test_members_with_gates_do_not_count_and_do_not_hold_the_others() -> None:
    world = a_world(nodes=4)
    gated = gang("g", 1, 3, first=9, schedulingGates=[{"name": "wait"}])
    world.submit(*gang("g", 2, 3), *gated)
    world.advance(5)
    assert not world.bindings and "2 of 3 pods exist, 1 held back" in world.event_notes("g-0")[-1]
    world.submit(*gang("g", 1, 3, first=2))
    world.run()
    assert running(world) == {"g": 3}
    world.submit(*gang("g", 1, 3, first=9))
    world.run()
    assert running(world) == {"g": 4}


@pytest.mark.parametrize("state", ["finished", "terminating"])
def test_members_that_have_ended_do_not_count(state: str) -> None:
    world = a_world(nodes=6)
    gone = gang(
        "g", 1, 6, first=9, node="n0", **({"phase": "Succeeded"} if state == "finished" else {"terminating": True})
    )
    world.submit(*gone, *gang("g", 5, 6))
    world.advance(60)
    assert set(running(world)) <= {"g"} and not any(world.pod(f"g-{at}").node_name for at in range(5))


def test_what_the_groups_pods_are_told_when_it_does_not_fit() -> None:
    world = a_world(nodes=2)
    world.submit(*gang("g", 3))
    world.run()
    told = {name: world.event_notes(name)[0] for name in ("g-0", "g-1", "g-2")}
    assert told["g-0"].startswith("pod would fit on n")
    assert "Pod group default/g: 2 of 3 pods tried found a node, 3 of 3 must; pod g-2 did not: 0/2 nodes" in told["g-0"]
    assert told["g-2"].startswith("0/2 nodes are available: 2 Insufficient cpu.")


@pytest.mark.parametrize("interleaved", [False, True])
def test_two_gangs_for_the_room_of_one(interleaved: bool) -> None:
    world = a_world(nodes=10)
    one, two = gang("one", 10), gang("two", 10, at=1)
    pods = [pod for pair in zip(one, two, strict=True) for pod in pair] if interleaved else [*one, *two]
    for pod in pods:
        world.submit(pod)
        world.run()
    world.advance(30)
    (name,) = running(world)
    assert running(world) == {name: 10}
    world.delete(*(pod for pod in world.pods() if pod.labels[NAME] == name))
    world.advance(30)
    assert list(running(world).values()) == [10] and name not in running(world)


def test_members_beyond_the_minimum_come_one_by_one() -> None:
    world = a_world(nodes=4)
    world.submit(*gang("g", 6, 3))
    world.advance(1)
    assert running(world) == {"g": 4}
    world.submit(a_node("more", cpu=1))
    world.advance(15)
    assert running(world) == {"g": 5}


@pytest.mark.parametrize(
    ("policy", "returns"),
    [
        pytest.param("waiting-and-running", True, id="those that run count"),
        pytest.param("once-satisfied", True, id="it was complete once"),
        pytest.param("only-waiting", False, id="those that run do not count"),
    ],
)
def test_a_member_that_was_lost_returns_alone(policy: str, returns: bool) -> None:
    world = a_world(nodes=3, args={"matchPolicy": policy})
    world.submit(*gang("g", 3))
    world.run()
    world.delete(world.pod("g-1"))
    world.submit(*gang("g", 1, 3, first=7, at=30))
    world.advance(20)
    assert running(world) == {"g": 3 if returns else 2}


def test_once_satisfied_even_most_of_a_group_may_return_in_parts() -> None:
    world = a_world(nodes=3, args={"matchPolicy": "once-satisfied"})
    world.submit(*gang("g", 3))
    world.run()
    world.delete(*(world.pod(f"g-{at}") for at in range(3)))
    world.submit(*gang("g", 1, 3, first=7))
    world.run()
    assert running(world) == {}  # the group was gone: this is another one


def test_different_members_find_the_order_in_which_they_fit() -> None:
    """The small ones could take the large one's room; and the picky one's, which is not large."""
    nodes = [a_node("large", cpu=4, labels={"kind": "large"}), a_node("small", cpu=3, labels={"kind": "small"})]
    world = a_world(nodes=0)
    world.submit(*nodes)
    labels = {NAME: "g", MIN: "4"}
    small = [member(f"a-{at}", labels, cpu=1) for at in range(2)]
    picky = member("b", labels, cpu=1, node_selector={"kind": "small"})
    large = member("z", labels, cpu=4)
    world.submit(*small, picky, large)
    world.run()
    assert len(world.bindings) == 4 and world.bindings["z"] == "large"


def test_the_hardest_to_place_goes_first_in_a_second_try() -> None:
    world = a_world(nodes=0)
    world.submit(a_node("a", cpu=2, labels={"kind": "a"}), a_node("b", cpu=2))
    labels = {NAME: "g", MIN: "3"}
    free = [member(f"x-{at}", labels, cpu=2 - at) for at in range(2)]
    picky = member("z", labels, cpu=1, node_selector={"kind": "a"})
    world.submit(*free, picky)
    world.run()
    assert len(world.bindings) == 3


def test_min_resources_must_be_free() -> None:
    world = a_world(nodes=3)
    world.submit(a_pod_group("p", 2, minResources={"cpu": "4"}))
    world.submit(*(created(a_pod(f"p{at}", cpu=1, labels={GROUP: "p"}), at) for at in range(2)))
    world.advance(2)
    assert not world.bindings
    assert "pod group default/p needs 4000 of cpu, 3000 are free (minResources)" in world.event_notes("p0")
    world.submit(a_node("more", cpu=1))
    world.advance(20)
    assert set(world.bindings) == {"p0", "p1"}


def test_a_pod_group_may_come_after_its_pods() -> None:
    world = a_world(nodes=3)
    world.submit(*(a_pod(f"p{at}", cpu=1, labels={GROUP: "p"}) for at in range(3)))
    world.advance(5)
    assert not world.bindings
    assert all("PodGroup default/p" in each for each in world.event_notes("p0"))
    world.submit(a_pod_group("p", 3))
    world.advance(15)
    assert len(world.bindings) == 3


def test_an_aged_group_goes_before_more_important_pods() -> None:
    world = a_world(nodes=2, args={"starvationSeconds": 60})
    world.submit(*(a_pod(f"busy{at}", cpu=1, node=f"n{at}", priority=100) for at in range(2)))
    world.submit(*gang("g", 2, at=0))
    world.advance(100)
    assert {stage for _, stage in world.scheduler.queue.stages()} == {QueueStage.UNSCHEDULABLE}
    world.submit(*(created(a_pod(f"new{at}", cpu=1, priority=50, preemptionPolicy="Never"), 30) for at in range(2)))
    world.delete(world.pod("busy0"), world.pod("busy1"))
    world.advance(20)
    assert running(world) == {"g": 2}
