"""When a cron schedule is due, and which texts are none."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from stowplan.embedded.cron_schedules import ScheduleError, parse

PARIS = "Europe/Paris"


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("schedule", "now", "due"),
    [
        pytest.param("* * * * *", "2026-03-01 10:00:30", "2026-03-01 10:01:00", id="every minute"),
        pytest.param("* * * * *", "2026-03-01 10:00:00", "2026-03-01 10:01:00", id="not at the same minute again"),
        pytest.param("*/15 * * * *", "2026-03-01 10:16:00", "2026-03-01 10:30:00", id="a step"),
        pytest.param("5/20 * * * *", "2026-03-01 10:26:00", "2026-03-01 10:45:00", id="a step from a number"),
        pytest.param("0 9-17/4 * * *", "2026-03-01 14:00:00", "2026-03-01 17:00:00", id="a step in a range"),
        pytest.param("30 2 * * *", "2026-03-01 10:00:00", "2026-03-02 02:30:00", id="tomorrow"),
        pytest.param("0 0 29 feb *", "2026-03-01 00:00:00", "2028-02-29 00:00:00", id="a leap year"),
        pytest.param("0 0 * * MON", "2026-03-01 10:00:00", "2026-03-02 00:00:00", id="a day by name"),
        pytest.param("0 0 13 * 5", "2026-03-01 10:00:00", "2026-03-06 00:00:00", id="a Friday or a thirteenth"),
        pytest.param("0 0 */2 * 5", "2026-03-01 10:00:00", "2026-03-03 00:00:00", id="a step is no star"),
        pytest.param("0 0 ? * 5", "2026-03-01 10:00:00", "2026-03-06 00:00:00", id="a question mark is one"),
        pytest.param("1,5 0 * * *", "2026-03-01 00:01:00", "2026-03-01 00:05:00", id="a list"),
        pytest.param("@hourly", "2026-03-01 10:00:00", "2026-03-01 11:00:00", id="hourly"),
        pytest.param("@weekly", "2026-03-02 10:00:00", "2026-03-08 00:00:00", id="weekly, on Sundays"),
        pytest.param("@yearly", "2026-03-02 10:00:00", "2027-01-01 00:00:00", id="yearly"),
        pytest.param("@every 1h30m", "2026-03-01 10:00:05", "2026-03-01 11:30:05", id="every so often"),
        pytest.param("@every 10ms", "2026-03-01 10:00:05", "2026-03-01 10:00:06", id="at most once a second"),
        pytest.param("0 0 30 2 *", "2026-03-01 10:00:00", None, id="a day that never comes"),
    ],
)
def test_it_is_due(schedule: str, now: str, due: str | None) -> None:
    assert parse(schedule).after(at(now), UTC) == (None if due is None else at(due))


@pytest.mark.parametrize(
    ("schedule", "now", "due"),
    [
        pytest.param("0 9 * * *", "2026-01-10 12:00:00", "2026-01-11 08:00:00", id="in winter"),
        pytest.param("0 9 * * *", "2026-07-10 12:00:00", "2026-07-11 07:00:00", id="in summer"),
        pytest.param("30 2 * * *", "2026-03-28 12:00:00", "2026-03-30 00:30:00", id="an hour that is skipped"),
        pytest.param("30 2 * * *", "2026-10-25 00:30:00", "2026-10-25 01:30:00", id="an hour that comes twice"),
        pytest.param("0 0 * * *", "2026-10-24 23:00:00", "2026-10-25 23:00:00", id="a day of 25 hours"),
    ],
)
def test_it_is_due_in_its_time_zone(schedule: str, now: str, due: str) -> None:
    assert parse(schedule).after(at(now), ZoneInfo(PARIS)) == at(due)


def test_time_zones_need_nothing_of_the_system() -> None:
    ask = f"from stowplan.embedded.cron_schedules import zone_of; print(zone_of({PARIS!r}), zone_of('Europe/Atlantis'))"
    without = {**os.environ, "PYTHONTZPATH": ""}
    done = subprocess.run([sys.executable, "-c", ask], env=without, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [PARIS, "None"]


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        pytest.param("", "empty spec string", id="nothing"),
        pytest.param("* * *", "expected exactly 5 fields, found 3: [* * *]", id="three fields"),
        pytest.param("60 * * * *", "end of range (60) above maximum (59): 60", id="a minute too many"),
        pytest.param("* * 0 * *", "beginning of range (0) below minimum (1): 0", id="no day"),
        pytest.param("* * * * 7", "end of range (7) above maximum (6): 7", id="a second Sunday"),
        pytest.param("9-3 * * * *", "beginning of range (9) beyond end of range (3): 9-3", id="backwards"),
        pytest.param("*/0 * * * *", "step of range should be a positive number: */0", id="a step of nothing"),
        pytest.param("1-2-3 * * * *", "too many hyphens: 1-2-3", id="two hyphens"),
        pytest.param("1/2/3 * * * *", "too many slashes: 1/2/3", id="two slashes"),
        pytest.param("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax', id="a word"),
        pytest.param("@every day", 'failed to parse duration @every day: time: invalid duration "day"', id="a day"),
        pytest.param(
            "@every 9999999999h",
            'failed to parse duration @every 9999999999h: time: invalid duration "9999999999h"',
            id="an age",
        ),
        pytest.param("@often", "unrecognized descriptor: @often", id="an unknown name"),
    ],
)
def test_what_is_no_schedule(schedule: str, problem: str) -> None:
    with pytest.raises(ScheduleError) as error:
        parse(schedule)
    assert str(error.value) == problem
