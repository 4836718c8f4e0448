"""Who has to do what: create first, delete when the others have it, never delete the last copy for a dead cluster."""

from __future__ import annotations

import pytest

from stowplan.apps.place.follow.decisions import ClusterChoice
from stowplan.apps.place.follow.rollout import Duty, Rollout

HOLD = 300.0


def after(clusters: str, settled: str = "", *, why: str = "", at: float = 0.0) -> Rollout:
    rollout = Rollout(HOLD)
    rollout.choose(ClusterChoice(frozenset(clusters.split()), why), at)
    for name in settled.split():
        rollout.note(name, has_it=True)
    return rollout


@pytest.mark.parametrize(
    ("chosen", "settled", "why", "now", "duty"),
    [
        pytest.param("a b", "", "", 0, Duty.HAVE, id="chosen"),
        pytest.param("a", "", "doubt", 0, Duty.HAVE, id="chosen, though not for certain"),
        pytest.param("b", "b", "", 0, Duty.LOSE, id="not chosen, and the other has it"),
        pytest.param("b", "", "", 0, Duty.WAIT, id="not chosen, and the other does not have it yet"),
        pytest.param("b", "", "", 2 * HOLD, Duty.WAIT, id="not chosen, and the other never gets it"),
        pytest.param("b c", "b", "", HOLD / 2, Duty.WAIT, id="one of two others has it"),
        pytest.param("b c", "b", "", HOLD, Duty.LOSE, id="one of two others has it, for long"),
        pytest.param("b", "b", "doubt", 2 * HOLD, Duty.WAIT, id="not for certain"),
        pytest.param("", "", "", 0, Duty.LOSE, id="nobody is chosen"),
        pytest.param("", "", "doubt", 0, Duty.WAIT, id="nobody is chosen, not for certain"),
    ],
)
def test_the_duty_of_cluster_a(chosen: str, settled: str, why: str, now: float, duty: Duty) -> None:
    assert after(chosen, settled, why=why).duty("a", now) is duty


def test_a_cluster_that_fails_later_does_not_count_any_more() -> None:
    rollout = after("b", "b")
    assert rollout.note("b", has_it=False) and not rollout.note("b", has_it=False)
    assert rollout.duty("a", 0) is Duty.WAIT


def test_the_time_counts_from_the_last_change_of_the_clusters() -> None:
    rollout = after("b c", "b")
    assert not rollout.choose(ClusterChoice(frozenset("bc")), 200.0), "the same"
    assert rollout.choose(ClusterChoice(frozenset("bc"), "doubt"), 200.0)
    assert rollout.choose(ClusterChoice(frozenset("bc")), 250.0)
    assert rollout.duty("a", HOLD) is Duty.LOSE
    rollout.choose(ClusterChoice(frozenset("bd")), 250.0)
    assert rollout.settled == {"b"} and rollout.duty("a", HOLD) is Duty.WAIT


def test_a_new_manifest_begins_anew() -> None:
    rollout = after("b", "b")
    rollout.forget()
    assert rollout.duty("a", 0) is Duty.WAIT
