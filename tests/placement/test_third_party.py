"""Policies of others over time: what requeues a placement, plugins that fail, and another policy for all placements."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stowplan.objects.errors import PluginError
from stowplan.plugin import Clusters, Placement, Reject
from tests.framework.placement.policies import a_policy
from tests.placement.fleets import a_binding, a_cluster, a_placement, a_score, a_set, a_taint
from tests.placement.hub import Hub

Read = Callable[[Clusters], Any]


def reading(read: Read) -> type:
    class Reader:
        def score(self, placement: Placement, clusters: Clusters) -> None:
            read(clusters)

    return Reader


C1 = a_cluster("c1", labels={"tier": "gold"}, claims={"os": "linux"}, cpu="4")
OTHER = a_cluster("other", of="two")  # in a set from which the placement may not choose


def nothing(_: Clusters) -> None: ...


def every_label(clusters: Clusters) -> Any:
    return clusters.fleet.clusters.label("tier").values


def price(clusters: Clusters) -> Any:
    return clusters.score("cost", "hourly").values


def changed(cluster: Any, **kwargs: Any) -> Callable[[Hub], None]:
    same: dict[str, Any] = {"labels": {"tier": "gold"}, "claims": {"os": "linux"}, "cpu": "4"} if cluster is C1 else {}
    of = "default" if cluster is C1 else "two"
    return lambda hub: hub.put(a_cluster(cluster.name, of=of, **same | kwargs))


@pytest.mark.parametrize(
    ("read", "change", "requeued"),
    [
        pytest.param(nothing, changed(C1, labels={"tier": "none"}), False, id="a label, and nothing is read"),
        pytest.param(lambda c: c.label("tier"), changed(C1, labels={"tier": "none"}), True, id="a label that is read"),
        pytest.param(lambda c: c.label("tier"), changed(C1, cpu="5"), False, id="an amount, and labels are read"),
        pytest.param(lambda c: c.allocatable["cpu"], changed(C1, cpu="5"), True, id="an amount that is read"),
        pytest.param(lambda c: c.claim("os"), changed(C1, claims={"os": "bsd"}), True, id="a claim that is read"),
        pytest.param(nothing, changed(C1, taints=[a_taint("k:NoSelect")]), True, id="a taint, which all read"),
        pytest.param(
            lambda c: [each.cluster for each in c], changed(C1, version={"kubernetes": "v1.31"}), True, id="an object"
        ),
        pytest.param(lambda c: c.label("tier"), changed(OTHER, labels={"tier": "x"}), False, id="a cluster elsewhere"),
        pytest.param(every_label, changed(OTHER, labels={"tier": "x"}), True, id="any cluster, and the fleet is read"),
        pytest.param(every_label, lambda hub: hub.gone("ManagedCluster", "other"), True, id="a cluster goes"),
        pytest.param(every_label, lambda hub: hub.put(OTHER), False, id="a heartbeat"),
        pytest.param(price, lambda hub: hub.put(a_score("c1", "cost", hourly=9)), True, id="a score that is read"),
        pytest.param(price, lambda hub: hub.put(a_score("c1", "cost", hourly=5, daily=9)), False, id="another score"),
        pytest.param(price, lambda hub: hub.put(a_score("c1", "load", hourly=9)), False, id="another object"),
        pytest.param(nothing, lambda hub: hub.put(a_score("c1", "cost", hourly=9)), False, id="a score, not read"),
        pytest.param(
            lambda c: c.fleet.clusters.score("cost", "hourly"),
            lambda hub: hub.put(a_score("other", "cost", hourly=9)),
            True,
            id="a score of any cluster",
        ),
    ],
)
def test_a_placement_is_requeued_by_what_its_policy_read(
    read: Read, change: Callable[[Hub], None], requeued: bool
) -> None:
    objects = (a_set("two"), a_binding("two", "elsewhere"), C1, OTHER, a_score("c1", "cost", hourly=5))
    hub = Hub(*objects, a_placement(), policy=a_policy(reading(read)))
    hub.settle()
    change(hub)
    assert hub.settle() == int(requeued)


def test_a_score_that_is_read_expires() -> None:
    hub = Hub(C1, a_score("c1", "cost", valid=50, hourly=5), a_placement(), policy=a_policy(reading(price)))
    hub.settle()
    assert (hub.later(49), hub.later(2)) == (0, 1)


def test_labels_and_annotations_of_a_placement_are_read() -> None:
    class ByTier:
        def filter(self, placement: Placement, clusters: Clusters) -> Any:
            yield Reject(clusters.label("tier") != placement.annotations.get("tier", "gold"), "another tier")

    hub = Hub(C1, a_cluster("c2", labels={"tier": "silver"}), a_placement(), policy=a_policy(ByTier))
    hub.settle()
    assert hub.chosen() == ["c1"]
    hub.put(a_placement(annotations={"tier": "silver"}))
    hub.settle()
    assert hub.chosen() == ["c2"]


def test_time_changes_an_answer() -> None:
    class Later:
        opens = Hub().now + 20

        def filter(self, placement: Placement, clusters: Clusters) -> Any:
            yield Reject(np.full(len(clusters), clusters.fleet.now < self.opens), "not open yet")

        def changes_at(self, placement: Placement, clusters: Clusters) -> float:
            return self.opens

    hub = Hub(C1, a_placement(), policy=a_policy(Later))
    hub.settle()
    assert hub.chosen() == []
    hub.later(21)
    assert hub.chosen() == ["c1"]


class Fragile:
    """Fails for placements with the label broken."""

    def score(self, placement: Placement, clusters: Clusters) -> Any:
        if clusters.label("broken").present.any() and placement.name == "test":
            raise ValueError("no such price")
        return 100 * (clusters.label("tier") == "gold")


def test_a_plugin_that_fails_keeps_the_decisions_of_one_placement() -> None:
    problems: list[PluginError] = []
    better = a_cluster("c0", labels={"tier": "gold"})
    hub = Hub(
        a_cluster("c1"),
        a_placement(numberOfClusters=1),
        a_placement("second", numberOfClusters=1),
        policy=a_policy(Fragile, weight=10),
        report=problems.append,
    )
    hub.settle()
    hub.put(a_cluster("c1", labels={"broken": "yes"}))
    hub.put(better)
    hub.settle()
    assert (hub.chosen(), hub.chosen("test/second")) == (["c1"], ["c0"])
    assert hub.condition("PlacementSatisfied") == ("False", "NotAllDecisionsScheduled")
    found = hub.placement().condition("PlacementSatisfied")
    assert found is not None
    line = Fragile.score.__code__.co_firstlineno + 2
    said = f'plugin "Fragile" failed at score: ValueError: no such price (test_third_party.py:{line})'
    assert found.message == f"{said}; the last good decisions are kept"
    assert {str(each) for each in problems} == {said}
    hub.put(a_cluster("c1"))
    hub.settle()
    assert hub.chosen() == ["c0"]
    assert hub.condition("PlacementSatisfied") == ("True", "AllDecisionsScheduled")


class Killer:
    """Raises what no plugin should for a placement, when it decides or when it says what it reads."""

    error: type[BaseException] = MemoryError
    when = "changes_at"

    def filter(self, placement: Placement, clusters: Clusters) -> Any:
        self._kill(placement, "filter")

    def changes_at(self, placement: Placement, clusters: Clusters) -> None:
        self._kill(placement, "changes_at")

    def depends_on(self, placement: Placement) -> Any:
        self._kill(placement, "depends_on")
        return ()

    def _kill(self, placement: Placement, when: str) -> None:
        if when == self.when and placement.name == "test":
            raise self.error("no more")


@pytest.mark.parametrize(
    "error", [MemoryError, RecursionError, KeyboardInterrupt, CancelledError, SystemExit, ValueError]
)
@pytest.mark.parametrize("when", ["filter", "changes_at", "depends_on"])
def test_whatever_is_raised_fails_one_placement_and_the_others_go_on(
    error: type[BaseException], when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems: list[str] = []
    monkeypatch.setattr(Killer, "error", error)
    monkeypatch.setattr(Killer, "when", when)
    hub = Hub(
        a_cluster("c1"),
        a_placement(numberOfClusters=1),
        a_placement("second", numberOfClusters=1),
        policy=a_policy(Killer),
        report=lambda problem: problems.append(str(problem)),
        report_failure=lambda key, problem: problems.append(f"{key}: {problem}"),
    )
    hub.settle()
    assert hub.chosen("test/second") == ["c1"]
    if when != "depends_on":
        assert any(error.__name__ in each for each in problems)
        assert hub.condition("PlacementSatisfied") == ("False", "NotAllDecisionsScheduled")
    monkeypatch.setattr(Killer, "when", "never")
    hub.now += 301
    hub.settle()
    assert hub.chosen() == ["c1"]
    assert hub.condition("PlacementSatisfied") == ("True", "AllDecisionsScheduled")


def test_a_failure_between_two_writes_leaves_nothing_in_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    hub, problems = Hub(a_cluster("c1")), list[str]()
    hub.engine._report_failure = lambda key, problem: problems.append(f"{key}: {problem}")
    start, calls = hub.engine._writes.start, list[int]()

    def fail_once(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) < 3:
            raise MemoryError
        return start(*arguments)

    monkeypatch.setattr(hub.engine._writes, "start", fail_once)
    hub.put(a_placement())
    hub.settle()
    line = fail_once.__code__.co_firstlineno + 3
    assert (hub.chosen(), problems) == ([], [f"test/test: MemoryError (test_third_party.py:{line})"])
    hub.now += 301
    hub.settle()
    assert hub.chosen() == ["c1"]


def test_another_policy_decides_all_placements_again() -> None:
    class Gold:
        def filter(self, placement: Placement, clusters: Clusters) -> Any:
            yield Reject(clusters.label("tier") != "gold", "cluster(s) were not gold")

    hub = Hub(C1, a_cluster("c2"), a_placement())
    hub.settle()
    hub.engine.adopt(a_policy(Gold), hub.now)
    hub.settle()
    assert hub.chosen() == ["c1"]
    hub.put(a_cluster("c2", labels={"tier": "gold"}))
    hub.settle()
    assert hub.chosen() == ["c1", "c2"]
    hub.engine.adopt(a_policy(), hub.now)
    assert hub.settle() == 1
    hub.put(a_cluster("c2", labels={"tier": "none"}))
    assert hub.settle() == 0, "the default plugins do not read labels for this placement"
