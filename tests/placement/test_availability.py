"""Which clusters are tainted, and when: from their Available condition and their leases."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

from stowplan.objects import kinds
from stowplan.objects.actions import Patch
from stowplan.objects.changes import Gone, Put, Result
from stowplan.objects.clusters import ManagedCluster
from stowplan.objects.leases import Lease
from stowplan.placement.availability import AVAILABLE, LEASE_NAME, UNAVAILABLE, UNREACHABLE, Availability
from tests.placement.fleets import NOW, moment

OTHER = {"key": "example.com/mine", "effect": "NoSelect", "timeAdded": moment(-60)}
DEAD = {"key": UNREACHABLE, "effect": "NoSelect", "timeAdded": moment(-60)}
BROKEN = {"key": UNAVAILABLE, "effect": "NoSelect", "timeAdded": moment(-60)}


class World:
    """A hub with one cluster `c1`, whose taints are those written last."""

    def __init__(self) -> None:
        self.now, self.machine, self.version = NOW, Availability(), 0
        self.document: dict[str, Any] = {}
        self.answers = 200

    def cluster(
        self, available: str, taints: Iterable[Any] = (), *, terminating: bool = False, seconds: int = 10
    ) -> None:
        conditions = [{"type": AVAILABLE, "status": available}] if available else []
        self.document = {
            "metadata": {"name": "c1", **({"deletionTimestamp": moment(0)} if terminating else {})},
            "spec": {"taints": list(taints), "leaseDurationSeconds": seconds},
            "status": {"conditions": conditions},
        }
        self._show()

    def _show(self) -> None:
        self.version += 1
        self.document["metadata"]["resourceVersion"] = str(self.version)
        self.machine.handle(Put(kinds.convert(ManagedCluster, self.document)), self.now)

    def renew(self, at: float | None = None) -> None:
        """Renew the lease, at a time by the clock of the cluster's agent."""
        text = datetime.fromtimestamp(self.now if at is None else at, UTC).isoformat()
        self.machine.handle(Put(kinds.convert(Lease, self._lease(text))), self.now)

    def forget_lease(self) -> None:
        self.machine.handle(Gone(kinds.convert(Lease, self._lease(moment(0)))), self.now)

    def _lease(self, renewed: str) -> dict[str, Any]:
        return {"metadata": {"name": LEASE_NAME, "namespace": "c1"}, "spec": {"renewTime": renewed}}

    def later(self, seconds: float) -> int:
        """Let time pass. Return how many writes there were."""
        until, written = self.now + seconds, 0
        while (deadline := self.machine.next_deadline()) is not None and deadline <= until:
            self.now = max(self.now, deadline)
            for action in self.machine.step(self.now):
                assert isinstance(action, Patch) and isinstance(action.body, dict)
                written += 1
                self._answer(action)
        self.now = until
        return written

    def _answer(self, action: Patch) -> None:
        assert isinstance(action.body, dict)
        if self.answers == 200:
            assert action.body["metadata"]["resourceVersion"] == str(self.version), "the version that was shown"
            self.document["spec"]["taints"] = action.body["spec"]["taints"]
            self._show()
        self.machine.handle(Result(action.id, self.answers), self.now)

    @property
    def taints(self) -> list[str]:
        return [each["key"] for each in self.document["spec"]["taints"]]


@pytest.mark.parametrize(
    ("available", "before", "after"),
    [
        pytest.param("True", [], [], id="available"),
        pytest.param("True", [DEAD, OTHER, BROKEN], [OTHER["key"]], id="available again"),
        pytest.param("False", [], [UNAVAILABLE], id="not available"),
        pytest.param("False", [DEAD], [UNAVAILABLE], id="reachable again, and not available"),
        pytest.param("Unknown", [OTHER, BROKEN], [OTHER["key"], UNREACHABLE], id="unknown"),
        pytest.param("Unknown", [DEAD], [UNREACHABLE], id="tainted already"),
    ],
)
def test_taints_by_condition(available: str, before: list[Any], after: list[str]) -> None:
    world = World()
    world.cluster(available, before)
    writes = world.later(0)
    assert world.taints == after
    assert writes == int([each["key"] for each in before] != after)
    assert world.later(1000) == 0, "once is enough"


@pytest.mark.parametrize("taints", [[], [OTHER], [DEAD], [BROKEN, OTHER]])
def test_a_cluster_without_condition_and_lease_is_left_alone(taints: list[Any]) -> None:
    world = World()
    world.cluster("", taints)
    assert world.later(1000) == 0


def test_a_lease_or_a_condition_ends_that() -> None:
    world = World()
    world.cluster("")
    world.later(10)
    world.renew()
    assert world.later(0) == 1 and world.taints == [UNREACHABLE], "there is an agent, and it does not say Available"
    world.cluster("True", [DEAD])
    assert world.later(0) == 1 and world.taints == []
    world.cluster("", [DEAD])
    world.forget_lease()
    assert world.later(1000) == 0 and world.taints == [UNREACHABLE], "nobody speaks for it any more"


def test_a_new_taint_has_the_time_it_was_added() -> None:
    world = World()
    world.cluster("False", [OTHER])
    world.later(0)
    assert world.document["spec"]["taints"] == [
        OTHER,
        {"key": UNAVAILABLE, "effect": "NoSelect", "timeAdded": moment(0)},
    ]


def test_a_terminating_cluster_is_left_alone() -> None:
    world = World()
    world.cluster("Unknown", terminating=True)
    assert world.later(1000) == 0


def test_a_lease_that_expires() -> None:
    world = World()
    world.cluster("True")
    for _ in range(20):
        world.renew()
        assert world.later(10) == 0
    assert world.later(39) == 0
    assert world.later(1) == 1 and world.taints == [UNREACHABLE], "five durations after the last"
    world.renew()
    assert world.later(0) == 1 and world.taints == []


@pytest.mark.parametrize(
    ("renewed", "tainted_after"),
    [
        pytest.param(0.0, 50, id="now"),
        pytest.param(-30.0, 20, id="some time ago"),
        pytest.param(-3600.0, 10, id="long ago: one duration is left"),
        pytest.param(3600.0, 50, id="in the future, by a wrong clock"),
    ],
)
def test_a_lease_seen_for_the_first_time(renewed: float, tainted_after: int) -> None:
    world = World()
    world.cluster("True")
    world.renew(NOW + renewed)
    assert world.later(tainted_after - 1) == 0
    assert world.later(1) == 1 and world.taints == [UNREACHABLE]


def test_a_wrong_clock_does_no_harm_to_a_cluster_that_renews_its_lease() -> None:
    world = World()
    world.cluster("True")
    for _ in range(20):
        world.renew(world.now - 3600)
        assert world.later(9) == 0, "a change of the lease is a renewal"


def test_without_a_lease_the_condition_decides() -> None:
    world = World()
    world.cluster("True")
    world.renew(NOW - 3600)
    world.later(10)
    assert world.taints == [UNREACHABLE]
    world.forget_lease()
    world.later(0)
    assert world.taints == []


def test_a_refused_write_is_retried() -> None:
    world = World()
    world.cluster("False")
    world.answers = 409
    assert world.later(4) == 1 and world.taints == []
    world.answers = 200
    assert world.later(1) == 1 and world.taints == [UNAVAILABLE]


def test_a_renewal_in_time_needs_no_check() -> None:
    world = World()
    world.cluster("True")
    world.renew()
    world.later(0)
    deadline = world.machine.next_deadline()
    for _ in range(4):
        world.now += 10
        world.renew()
        assert world.machine.next_deadline() == deadline, "no check is due"
