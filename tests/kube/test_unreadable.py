"""Objects whose latest version cannot be read: what counts instead, and what is told of them, once."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from stowplan.framework.evaluation import schedule_one
from stowplan.kube.client import WatchEvent
from stowplan.kube.reflector_cache import LAST_APPLIED, ReflectorCache
from stowplan.kube.resources import RESOURCES
from stowplan.kube.unreadable import LONGEST_PROBLEM, UnreadableObject
from stowplan.objects.changes import Change, Gone, Put
from stowplan.objects.meta import Object
from stowplan.objects.nodes import Node
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod, a_profile, a_state

BAD: dict[str, Any] = {"labels": 5}


class Watched:
    """The cache of a kind, with what it told."""

    def __init__(self, kind: str) -> None:
        self.problems: list[str] = []
        self.told: list[UnreadableObject] = []
        self.cache = ReflectorCache(RESOURCES[kind], self.problems.append, on_unreadable=self.told.append)
        self.namespaced = RESOURCES[kind].namespaced
        self.version = 0

    def document(self, uid: str = "u", metadata: dict[str, Any] | None = None, **content: Any) -> msgspec.Raw:
        self.version += 1
        named = {"name": "x", "uid": uid, "resourceVersion": str(self.version)}
        named |= {"namespace": "shop"} if self.namespaced else {}
        return msgspec.Raw(json.dumps({"metadata": named | (metadata or {}), **content}).encode())

    def event(self, kind: str, **content: Any) -> list[Change]:
        return self.cache.apply_event(WatchEvent(kind, self.document(**content)))

    def listed(self, *documents: msgspec.Raw) -> list[Change]:
        seen = set[str]()
        return [*self.cache.apply_page(documents, seen), *self.cache.remove_missing(seen)]


def words(changes: list[Change]) -> list[str]:
    return [type(change).__name__ for change in changes]


@pytest.mark.parametrize(
    ("kind", "never_read", "read_before"),
    [
        pytest.param("Node", ["Put"], ["Put"], id="a node is read in part"),
        pytest.param("Pod", [], ["Gone"], id="a pod without a node is not scheduled"),
        pytest.param("AddOnPlacementScore", [], ["Gone"], id="a score does not count"),
        pytest.param("Placement", [], [], id="a placement stays as it was"),
        pytest.param("ManagedCluster", [], [], id="a cluster stays as it was"),
        pytest.param("PodDisruptionBudget", [], [], id="a disruption budget stays as it was"),
        pytest.param("PersistentVolumeClaim", [], [], id="a claim stays as it was"),
    ],
)
def test_what_counts_instead(kind: str, never_read: list[str], read_before: list[str]) -> None:
    fresh, known = Watched(kind), Watched(kind)
    assert words(fresh.event("ADDED", metadata=BAD)) == never_read
    assert words(known.event("ADDED")) == ["Put"]
    assert words(known.event("MODIFIED", metadata=BAD)) == read_before
    assert (len(fresh.cache.unreadable), len(known.cache.unreadable)) == (1, 1)
    assert len(fresh.problems) == len(known.problems) == 1
    assert words(known.event("MODIFIED")) == ["Put"] and not known.cache.unreadable


def test_a_bound_pod_counts_on_its_node_as_far_as_it_can_be_read() -> None:
    watched, spec = Watched("Pod"), {"containers": [{"resources": {"requests": {"cpu": "2"}}}]}
    watched.event("ADDED", spec=spec)
    bound = {**spec, "nodeName": "n", "tolerations": 5}
    (change,) = watched.event("MODIFIED", spec=bound, status={"phase": "Running"})
    assert isinstance(change, Put) and isinstance(change.object, Pod)
    assert (change.object.node_name, change.object.request["cpu"]) == ("n", 2000)
    said = "Pod: shop/x cannot be read and counts on n as far as possible: Pod x: spec.tolerations: expected"
    assert watched.problems[0].startswith(said)


def test_a_bound_pod_whose_containers_cannot_be_read_keeps_its_requests() -> None:
    watched, spec = Watched("Pod"), {"containers": [{"resources": {"requests": {"cpu": "2"}}}], "nodeName": "n"}
    watched.event("ADDED", spec=spec)
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    (change,) = watched.event("MODIFIED", metadata=deleted, spec={**spec, "containers": [{"resources": 5}]})
    assert isinstance(change.object, Pod)
    assert (change.object.request["cpu"], change.object.terminating) == (2000, True)


def test_a_node_that_cannot_be_read_gets_no_new_pods_whatever_they_tolerate() -> None:
    watched = Watched("Node")
    (change,) = watched.event(
        "ADDED",
        metadata={"labels": {"zone": "a"}},
        spec={"taints": 5},
        status={"allocatable": {"cpu": "8", "pods": "10"}, "conditions": [{"type": "Ready", "status": "True"}]},
    )
    found = change.object
    assert isinstance(found, Node) and found.labels == {"zone": "a"} and found.spec.unschedulable
    state = a_state(nodes=[found, a_node("other", cpu=1)])
    pod = a_pod("p", cpu=0, tolerations=["node.kubernetes.io/unschedulable:NoSchedule"])
    assert schedule_one(pod, state, a_profile()).node == "other"


def test_a_problem_is_told_once_however_often_it_is_listed_or_repeated() -> None:
    watched = Watched("Pod")
    bad = watched.document(metadata=BAD, spec={"schedulerName": "stowplan"})
    assert [words(watched.listed(bad)) for _ in range(3)] == [[], [], []]
    watched.event("MODIFIED", metadata=BAD, status={"phase": "Pending"})
    assert (len(watched.problems), len(watched.told)) == (1, 1)
    (found,) = watched.told
    assert (found.namespace, found.name, found.uid, found.scheduler_name) == ("shop", "x", "u", "stowplan")
    watched.event("MODIFIED", metadata={"annotations": 5})
    assert (len(watched.problems), len(watched.told)) == (2, 1), "another problem of the same pod"
    watched.event("MODIFIED", metadata=BAD, uid="v")
    assert [each.uid for each in watched.told] == ["u", "v"], "another pod of that name"


def test_a_part_is_listed_again_without_a_change() -> None:
    watched = Watched("Node")
    bad = watched.document(metadata=BAD)
    assert [words(watched.listed(bad)) for _ in range(2)] == [["Put"], []]


@pytest.mark.parametrize("kind", ["Node", "Pod", "AddOnPlacementScore", "Placement"])
def test_an_unreadable_object_that_goes_is_forgotten(kind: str) -> None:
    for by_list in (True, False):
        watched = Watched(kind)
        watched.event("ADDED")
        watched.event("MODIFIED", metadata=BAD)
        counted = bool(watched.cache.objects)
        changes = watched.listed() if by_list else watched.event("DELETED", metadata=BAD)
        assert words(changes) == (["Gone"] if counted else [])
        assert (watched.cache.objects, watched.cache.unreadable) == ({}, {})


def test_what_is_older_than_what_is_known_is_no_news() -> None:
    watched = Watched("Node")
    old = watched.document(metadata=BAD)
    watched.event("ADDED")
    assert watched.cache.apply_event(WatchEvent("MODIFIED", old)) == []
    assert not watched.cache.unreadable


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(b"5", id="a number"),
        pytest.param(b'{"metadata": {"name": {}}}', id="a name that is none"),
        pytest.param(b"[" * 3000 + b"]" * 3000, id="lists in lists"),
    ],
)
def test_a_document_without_a_name_is_counted(document: bytes) -> None:
    watched = Watched("Pod")
    good = watched.document(metadata={"name": "good"})
    for _ in range(2):
        watched.listed(msgspec.Raw(document), good)
    assert list(watched.cache.objects) == ["shop/good"]
    assert (len(watched.cache.unreadable), len(watched.problems)) == (1, 1)
    assert watched.problems[0].startswith("Pod: a document cannot be read and is not scheduled: ")


def test_a_problem_is_not_longer_than_an_event() -> None:
    watched = Watched("Pod")
    watched.event("ADDED", spec={"containers": [{"resources": {"requests": {"cpu": "x" * 100_000}}}]})
    assert len(watched.problems[0]) <= LONGEST_PROBLEM


@pytest.mark.parametrize(("kind", "left"), [("Pod", {"mine": "y"}), ("Namespace", {LAST_APPLIED: "x", "mine": "y"})])
def test_what_kubectl_applied_last_is_not_kept_of_pods(kind: str, left: dict[str, str]) -> None:
    (change,) = Watched(kind).event("ADDED", metadata={"annotations": {LAST_APPLIED: "x", "mine": "y"}})
    assert isinstance(change.object, Object) and change.object.annotations == left


def test_gone_has_the_last_readable_version() -> None:
    watched = Watched("Pod")
    watched.event("ADDED", spec={"priority": 7})
    (change,) = watched.event("MODIFIED", metadata=BAD)
    assert isinstance(change, Gone) and isinstance(change.object, Pod) and change.object.priority == 7
