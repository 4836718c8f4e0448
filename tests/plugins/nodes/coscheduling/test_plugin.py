"""Coscheduling, one question at a time: what labels and PodGroups say, its arguments, and in which order groups go."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from stowplan.apps import profile_loader
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.interfaces import QueueEntry
from stowplan.framework.plugin_checks import check_plugin
from stowplan.objects import applications
from stowplan.objects.changes import Put
from stowplan.objects.errors import ConfigError
from stowplan.plugins.nodes.coscheduling.plugin import Coscheduling
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import (
    GROUP,
    MIN,
    MOMENT,
    NAME,
    a_kubernetes_group,
    a_pod_group,
    a_world,
    gang,
    running,
)

OLD_NAME, OLD_MIN = "pod-group.scheduling.sigs.k8s.io/name", "pod-group.scheduling.sigs.k8s.io/min-available"


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
        pytest.param(a_pod(labels={GROUP: "p"}), "PodGroup default/p of scheduling.x-k8s.io does not exist", id="sigs"),
        pytest.param(
            a_pod(schedulingGroup={"podGroupName": "p"}),
            "PodGroup default/p of scheduling.k8s.io does not exist",
            id="own",
        ),
    ],
)
def test_pods_that_wait_for_their_group(pod: Any, says: str) -> None:
    world = a_world(nodes=2)
    world.submit(pod)
    world.advance(5)
    assert says in world.event_notes("pod")[-1] and world.pod("pod").condition("PodScheduled") is None
    assert not world.bindings


def test_a_pod_whose_labels_are_wrong_is_told_so() -> None:
    world = a_world(nodes=2)
    world.submit(a_pod(labels={NAME: "g", MIN: "x"}))
    world.advance(5)
    condition = world.pod("pod").condition("PodScheduled")
    assert condition is not None and condition.reason == "Unschedulable" and not world.bindings
    assert 'failed to parse min-available value "x"' in condition.message
