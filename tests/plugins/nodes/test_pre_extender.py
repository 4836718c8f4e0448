"""PreExtender: what extenders are shown of a pod, from any spelling; the pod itself stays as it is."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.apps import profile_loader
from stowplan.columns.nodes.views import Cluster
from stowplan.columns.state import ClusterState
from stowplan.framework.config.settings import Extender
from stowplan.framework.plugin_checks import check_plugin
from stowplan.framework.profile import Profile
from stowplan.objects.actions import Ask
from stowplan.objects.changes import Put, Result
from stowplan.objects.errors import ConfigError
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.pre_extender import PreExtender
from stowplan.testing.builders import a_node, a_pod
from stowplan.testing.world import World
from tests.plugins.nodes.coscheduling.pod_groups import MIN, NAME, a_kubernetes_group, a_pod_group

OLD_NAME, OLD_MIN = "pod-group.scheduling.sigs.k8s.io/name", "pod-group.scheduling.sigs.k8s.io/min-available"
GROUP = "scheduling.x-k8s.io/pod-group"
IN_GROUP = {NAME: "g", OLD_NAME: "g", MIN: "3", OLD_MIN: "3"}


def shown(pod: Pod, *, alone: bool = False) -> dict[str, str]:
    state = ClusterState()
    state.apply(Put(a_pod_group("g", 3)))
    state.apply(Put(a_kubernetes_group("k", 4)))
    return PreExtender(app_id_from_pod_name=alone).for_extenders(pod, Cluster(state))


@pytest.mark.parametrize(
    ("labels", "alone", "expected"),
    [
        pytest.param({}, False, {}, id="a pod of nobody is shown as it is"),
        pytest.param({}, True, {"spark-app-id": "web"}, id="or as an application of its own"),
        pytest.param({"spark-app-id": "a"}, True, {"spark-app-id": "a"}, id="but one that has an id keeps it"),
        pytest.param({"spark-app-selector": "s"}, False, {"spark-app-id": "s"}, id="Spark's own label"),
        pytest.param(
            {"scheduling.kubenexus.io/app-id": "a", "scheduling.kubenexus.io/role": "driver"},
            False,
            {"spark-app-id": "a", "spark-role": "driver"},
            id="KubeNexus' names of application and role",
        ),
        pytest.param({NAME: "g", MIN: "3"}, False, IN_GROUP, id="KubeNexus' names of the group"),
        pytest.param({OLD_NAME: "g", OLD_MIN: "3"}, False, IN_GROUP, id="the older names"),
        pytest.param({NAME: "g", OLD_MIN: "3"}, False, IN_GROUP, id="half of each"),
        pytest.param({GROUP: "g"}, False, IN_GROUP, id="a PodGroup's minimum comes from the object"),
        pytest.param({GROUP: "x"}, False, {NAME: "x", OLD_NAME: "x"}, id="one that is not there has none"),
        pytest.param({NAME: "g", MIN: "x"}, False, {}, id="what cannot be read is shown as it is"),
    ],
)
def test_what_extenders_are_shown(labels: dict[str, str], alone: bool, expected: dict[str, str]) -> None:
    pod = a_pod("web", labels=labels)
    assert shown(pod, alone=alone) == expected
    assert dict(pod.labels) == labels


def test_a_group_of_kubernetes_itself() -> None:
    pod = a_pod("web", schedulingGroup={"podGroupName": "k"})
    assert shown(pod) == {NAME: "k", OLD_NAME: "k", MIN: "4", OLD_MIN: "4"}


def test_a_plugin_like_any_other() -> None:
    check_plugin(PreExtender())


def test_bad_arguments() -> None:
    with pytest.raises(ConfigError, match="appIdFromPodName: found"):
        PreExtender(app_id_from_pod_name="yes")  # type: ignore[arg-type]


# -- at work


def profiles(**args: Any) -> dict[str, Profile]:
    profile = {
        "plugins": {"multiPoint": {"enabled": [{"name": "PreExtender"}]}},
        "pluginConfig": [{"name": "PreExtender", "args": args}],
    }
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "default-scheduler", **profile}],
    }
    return profile_loader.configured(document)[1]


def a_world(**args: Any) -> tuple[World, list[Ask]]:
    extender = Extender(
        url_prefix="http://one", filter_verb="f", prioritize_verb="p", preempt_verb="x", node_cache_capable=False
    )
    world = World(nodes=[a_node("a", cpu=2), a_node("b", cpu=2)], profiles=profiles(**args), extenders=(extender,))
    asked: list[Ask] = []

    def answer(ask: Ask) -> Result:
        asked.append(ask)
        if ask.verb == "prioritize":
            return Result(ask.id, body=[])
        if ask.verb == "preempt":
            victims = {node: {"Pods": [{"UID": pod.uid} for pod in each.pods]} for node, each in ask.victims.items()}
            return Result(ask.id, body={"NodeNameToMetaVictims": victims})
        return Result(ask.id, body={"Nodes": {"items": [{"metadata": {"name": name}} for name in ask.nodes]}})

    world.extender = answer
    return world, asked


def test_every_question_has_the_labels_and_the_pod_has_them_not() -> None:
    world, asked = a_world()
    labels = {"spark-app-selector": "s", "spark-role": "driver", OLD_NAME: "g", OLD_MIN: "2"}
    pod = a_pod("web", labels=labels, cpu=1)
    world.submit(pod)
    world.run()
    assert [ask.verb for ask in asked] == ["filter", "prioritize"]
    extra = {"spark-app-id": "s", NAME: "g", MIN: "2"}
    assert all(ask.labels == {pod.uid: extra} for ask in asked), "only what it does not have is sent along"
    (there,) = world.pods()
    assert dict(there.labels) == labels and there.node_name


def test_victims_are_shown_alike() -> None:
    world, asked = a_world(appIdFromPodName=True)
    world.submit(*(a_pod(f"low-{at}", cpu=2) for at in range(2)))
    world.run()
    asked.clear()
    world.submit(a_pod("high", cpu=2, priority=10))
    world.run()
    preempt = next(ask for ask in asked if ask.verb == "preempt")
    assert sorted(each["spark-app-id"] for each in preempt.labels.values()) == ["high", "low-0", "low-1"]


def test_without_the_plugin_pods_are_shown_as_they_are() -> None:
    world, asked = a_world()
    world.adopt(
        {"default-scheduler": profile_loader.defaults()[1]["default-scheduler"]},
        extenders=world.scheduler.attempts.rounds.extenders,
    )
    world.submit(a_pod("web", labels={"spark-app-selector": "s"}))
    world.run()
    assert asked and all(ask.labels == {} for ask in asked)


def test_labels_that_contradict_each_other_are_told_until_they_do_not() -> None:
    world, asked = a_world()
    world.submit(a_pod("web", labels={"spark-app-id": "a", "scheduling.kubenexus.io/app-id": "b"}))
    world.run()
    (pod,) = world.pods()
    condition = pod.condition("PodScheduled")
    assert condition is not None and condition.reason == "Unschedulable"
    told = "labels for extenders: labels scheduling.kubenexus.io/app-id and spark-app-id contradict each other"
    assert told in condition.message
    assert not asked, "nobody is asked about it"
    world.submit(a_pod("web", labels={"spark-app-id": "a"}))
    world.advance(10)
    assert world.bindings
