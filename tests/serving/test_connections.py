"""Who must go when there is no room, and until when a connection may do what it does."""

from __future__ import annotations

import pytest

from stowplan.serving.connections import ConnectionLimits, ConnectionTable, ServedConnection, peer_of
from stowplan.serving.connections import ConnectionPhase as Phase

LIMITS = ConnectionLimits(total=6, per_peer=4, unproven=3)


class Scene:
    """A table, and the numbers of the connections that were closed."""

    def __init__(self) -> None:
        self.table, self.closed, self.now = ConnectionTable(LIMITS), list[int](), 0.0

    def arrive(self, peer: str, phase: Phase = Phase.QUIET, *, proven: bool = False) -> ServedConnection | None:
        one = self.table.arrive(peer, self.now)
        if one is not None:
            one.end = lambda: self.closed.append(one.number)
            one.phase, one.proven = phase, proven
        return one


def test_who_holds_all_that_a_peer_may_have_loses_its_oldest() -> None:
    scene = Scene()
    for _ in range(10):
        scene.arrive("evil")
    scene.arrive("kubelet")
    assert scene.closed == [1, 2, 3, 4, 5, 6] and len(scene.table) == 5


def test_a_probe_from_the_same_address_is_let_in() -> None:
    scene = Scene()
    for _ in range(100):
        scene.arrive("evil")
    assert scene.arrive("evil") is not None


def test_when_all_places_are_taken_the_largest_peer_loses_one() -> None:
    scene = Scene()
    for peer in ("a", "b", "b", "b", "b", "c"):
        scene.arrive(peer)
    assert scene.arrive("d") is not None
    assert scene.closed == [2]


@pytest.mark.parametrize(
    ("held", "gone"),
    [
        pytest.param([(Phase.BUSY, False), (Phase.IDLE, False)] * 2, [2], id="an idle one before a busy one"),
        pytest.param([(Phase.IDLE, True), (Phase.BUSY, False)] * 2, [2], id="a busy one before a proven one"),
        pytest.param([(Phase.BUSY, True), (Phase.IDLE, True)] * 2, [2], id="a proven one if it is idle"),
        pytest.param([(Phase.BUSY, True)] * 4, [], id="nobody: all are proven and busy"),
    ],
)
def test_who_goes(held: list[tuple[Phase, bool]], gone: list[int]) -> None:
    scene = Scene()
    for phase, proven in held:
        scene.arrive("a", phase, proven=proven)
    assert (scene.arrive("a") is not None) == bool(gone)
    assert scene.closed == gone and len(scene.table) == 4


def test_only_so_many_unproven_ones_may_speak() -> None:
    scene = Scene()
    peers = ("a", "b", "b", "b", "c")
    for one in [scene.arrive(peer) for peer in peers]:
        assert one is not None
        scene.table.speaks(one)
    assert scene.closed == [2, 3], "the oldest of the largest peer, of those who have spoken"


def test_of_peers_with_as_many_one_that_waits_goes_not_one_that_is_answered() -> None:
    scene = Scene()
    phases = (Phase.IDLE, Phase.BUSY, Phase.BUSY)
    for number, phase in enumerate(phases):
        scene.arrive(f"10.0.0.{number}", phase)
    newest = scene.arrive("10.0.0.9")
    assert newest is not None
    scene.table.speaks(newest)
    assert scene.closed == [1]


def test_a_connection_that_left_has_no_place() -> None:
    scene = Scene()
    first = scene.arrive("a")
    assert first is not None
    scene.table.leave(first)
    scene.table.leave(first)
    assert len(scene.table) == 0


def test_each_phase_has_its_time() -> None:
    scene, table = Scene(), ConnectionTable(LIMITS)
    one = scene.arrive("a")
    assert one is not None
    found = [one.until]
    for happens in (
        lambda: table.speaks(one),  # the handshake is part of the first ten seconds
        lambda: table.opened(one, 5),
        lambda: table.received(one, 6),  # bytes do not extend the time for headers
        lambda: table.request_begins(one),
        lambda: table.request_ends(one, 7),
        lambda: table.received(one, 8),
        lambda: table.received(one, 9),
    ):
        happens()
        found.append(one.until)
    assert found == [10, 10, 15, 15, None, 67, 18, 18]


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("2001:db8::1:2:3:4", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::1", "::1"),
        ("strange", "strange"),
    ],
)
def test_whose_connection(address: str, peer: str) -> None:
    assert peer_of(address) == peer
