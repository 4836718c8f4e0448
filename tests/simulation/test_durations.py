"""Lengths of time: what is one, and what is none."""

from __future__ import annotations

import pytest

from stowplan.simulation import durations

READ: list[tuple[object, float | None]] = [
    (90, 90), ("90", 90), ("1.5", 1.5), ("90s", 90), ("1h30m", 5400), ("7d", 604_800), ("2w", 1_209_600),
    ("1d12h", 129_600), ("1w1d", 691_200), ("-5s", -5), ("", None), ("soon", None), ("5 m", None), ("1d-2h", None),
    ("nan", None), ("inf", None), (True, None), (None, None), (float("inf"), None), ("-", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "seconds"), READ)
def test_a_length_of_time_is_read(text: object, seconds: float | None) -> None:
    assert durations.seconds(text) == seconds


SHOWN = [(0, "0s"), (0.25, "0.25s"), (42, "42s"), (190, "3m10s"), (7200, "2h"), (273_600, "3d4h")]


@pytest.mark.parametrize(("seconds", "text"), SHOWN)
def test_a_length_of_time_is_shown(seconds: float, text: str) -> None:
    assert durations.shown(seconds) == text
