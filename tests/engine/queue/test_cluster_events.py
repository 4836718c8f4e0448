"""Cluster events that plugins add to those of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from stowplan.engine.queue import cluster_events
from stowplan.engine.queue.cluster_events import EVERYTHING, ClusterEvent
from stowplan.objects.meta import Object
from stowplan.objects.workloads import Namespace
from stowplan.testing.builders import a_node, a_pod, a_profile_of


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
