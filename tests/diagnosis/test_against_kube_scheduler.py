"""Remedies judged by kube-scheduler's own code: the pod fits with the remedy, and with one step less it does not."""

from __future__ import annotations

import pytest

from tests.oracle.__main__ import build
from tests.oracle.remedies import drawn, judge, recorded

CATEGORIES = ("pending", "everything-mixed", "resources", "volumes", "misc")


def check(count: int, seed: int, wanted: int) -> None:
    """Judge the remedies of pods that are drawn until so many of them are pending."""
    recorder = build()
    if recorder is None:
        pytest.skip("no Go on this machine, so the recorder of kube-scheduler's decisions cannot be built")
    found = [each for each in drawn(recorder, count, seed, CATEGORIES) if not each["expect"].get("best")][:wanted]
    assert len(found) == wanted, f"only {len(found)} pending pods were drawn"
    verdicts = judge(found, recorded(recorder))
    assert verdicts.problems == []
    assert verdicts.helped > wanted * 3 // 4


def test_100_drawn_pods_have_sound_and_minimal_remedies() -> None:
    check(70, 1, 100)


@pytest.mark.full
def test_1000_drawn_pods_have_sound_and_minimal_remedies() -> None:
    check(550, 2, 1000)
