"""Cluster events that plugins add to those of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from stowplan.engine.queue import cluster_events
from stowplan.engine.queue.cluster_events import EVERYTHING, ClusterEvent
from stowplan.framework.cluster_event import NODE_UPDATES, POD_UPDATES
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import Namespace
from stowplan.testing.builders import a_node, a_pod, a_profile_of, from_yaml


class Filter:
    def filter(self, *_: object) -> tuple[()]:
        return ()


class More(Filter):
    own_kinds = ("Namespace",)

    def cluster_events(self, old: Object | None, new: Object | None) -> Iterator[ClusterEvent]:
        if isinstance(new, Namespace) or new is None:
            yield ClusterEvent("Surprise", "Add", old, new)


class Broken(Filter):
    def cluster_events(self, old: Object | None, new: Object | None) -> Iterator[ClusterEvent]:
        raise ValueError("no")


def events(old: Object | None, new: Object | None, *plugins: object) -> list[str]:
    profile = a_profile_of(*plugins)
    found = cluster_events.ClusterEvents({"one": profile, "other": profile}).of(old, new)
    return [each.label for each in found]


def test_a_plugin_adds_events_to_those_of_kubernetes() -> None:
    node = a_node("a")
    assert events(node, None) == ["NodeDelete"]
    assert events(node, None, More(), Filter()) == ["NodeDelete", "SurpriseAdd"]
    assert events(None, a_pod(node="a"), More()) == ["AssignedPodAdd"]


def test_kinds_of_its_own_have_no_other_events() -> None:
    before, after = Namespace(), Namespace(metadata=msgspec.structs.replace(Namespace().metadata, labels={"a": "b"}))
    assert events(before, after) == ["NamespaceUpdate"]
    assert events(before, after, More()) == ["SurpriseAdd"]


def test_a_plugin_that_raises_requeues_every_pod() -> None:
    assert events(a_node("a"), None, Broken()) == ["NodeDelete", EVERYTHING.label]


def test_the_updates_that_plugins_can_wait_for_are_those_that_happen() -> None:
    node = from_yaml(
        Node,
        """
        metadata: {name: a, labels: {zone: a}, annotations: {a: b}}
        spec: {taints: [{key: k, effect: NoSchedule}]}
        status: {allocatable: {cpu: 1}, conditions: [{type: Ready, status: "True"}], declaredFeatures: [f]}
        """,
    )
    bare = from_yaml(Node, "{metadata: {name: a}}")
    assert {f"Node{action}" for action in NODE_UPDATES} == set(events(node, bare))
    large = from_yaml(
        Pod,
        """
        metadata: {name: p, labels: {app: web}}
        spec:
          nodeName: a
          schedulingGates: [{name: g}]
          tolerations: [{key: k}]
          containers: [{name: c, resources: {requests: {cpu: 2}}}]
        status: {resourceClaimStatuses: [{name: claim, resourceClaimName: it}]}
        """,
    )
    small = from_yaml(Pod, "{metadata: {name: p}, spec: {nodeName: a, containers: [{name: c}]}}")
    assert {f"AssignedPod{action}" for action in POD_UPDATES} == set(events(large, small))
