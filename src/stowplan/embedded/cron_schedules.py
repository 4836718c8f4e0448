"""Cron schedules as CronJobs have them: five fields, names, steps, `@daily` and `@every 5m`.

    schedule = parse("*/5 9-17 * * mon-fri")
    schedule.after(now, ZoneInfo("Europe/Paris"))

A day matches if the day of the month and the day of the week match; if both are restricted, one of them is enough.
A time that a clock change skips is not due; one that it repeats is due twice.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

_NAMED = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
_MONTHS = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11,
    "dec": 12,
}  # fmt: skip
_DAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_BOUNDS: tuple[tuple[int, int, dict[str, int]], ...] = (
    (0, 59, {}), (0, 23, {}), (1, 31, {}), (1, 12, _MONTHS), (0, 6, _DAYS),
)  # fmt: skip
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DURATION = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s|us|µs|ns)")
_LONGEST = 2**63 / 1e9  # seconds in a duration of Go
_HORIZON = timedelta(days=5 * 366)  # a schedule without a time in so many days has none (30 February)


class ScheduleError(ValueError):
    """A text that is no schedule. The message has the words of Kubernetes."""


class Every(msgspec.Struct, frozen=True):
    """`@every`: so many seconds apart, whatever the clock says."""

    seconds: float

    def after(self, now: float, _zone: tzinfo = UTC) -> float | None:
        return float(int(now) + self.seconds)


class Fields(msgspec.Struct, frozen=True):
    """The values that match, by field. `any_day`: one of the two fields of days is a star."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool

    def after(self, now: float, zone: tzinfo = UTC) -> float | None:
        """The first time after `now`, in seconds since 1970; None if there is none."""
        at = datetime.fromtimestamp(now // 60 * 60, UTC) + timedelta(minutes=1)
        last = at + _HORIZON
        while at < last:
            local = at.astimezone(zone)
            if not self._day_matches(local):
                midnight = datetime(local.year, local.month, local.day, tzinfo=zone) + timedelta(days=1)
                at = max(midnight.astimezone(UTC), at + timedelta(minutes=1))
            elif local.hour not in self.hours:
                at += timedelta(minutes=60 - local.minute)
            elif local.minute not in self.minutes:
                at += timedelta(minutes=1)
            else:
                return at.timestamp()
        return None

    def _day_matches(self, local: datetime) -> bool:
        of_month, of_week = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        return local.month in self.months and ((of_month and of_week) if self.any_day else (of_month or of_week))


Schedule: TypeAlias = Every | Fields


def parse(text: str) -> Schedule:
    """The schedule of a text. Raises `ScheduleError` if it has none."""
    if not text:
        raise ScheduleError("empty spec string")
    if text.startswith("@every "):
        return Every(_duration(text.removeprefix("@every ")))
    if text.startswith("@"):
        if text not in _NAMED:
            raise ScheduleError(f"unrecognized descriptor: {text}")
        text = _NAMED[text]
    words = text.split()
    if len(words) != len(_BOUNDS):
        raise ScheduleError(f"expected exactly {len(_BOUNDS)} fields, found {len(words)}: [{' '.join(words)}]")
    read = [_field(word, *bounds) for word, bounds in zip(words, _BOUNDS, strict=True)]
    (minutes, _), (hours, _), (days, any_month_day), (months, _), (weekdays, any_weekday) = read
    return Fields(minutes, hours, days, months, weekdays, any_month_day or any_weekday)


def zone_of(name: str) -> ZoneInfo | None:
    """The time zone of a name; None if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def _duration(text: str) -> float:
    """A duration of Go such as "1h30m", in whole seconds, at least one."""
    found = _DURATION.findall(text)
    total = sum(float(number) * _UNITS[unit] for number, unit in found)
    if not found or "".join(number + unit for number, unit in found) != text or total > _LONGEST:
        raise ScheduleError(f'failed to parse duration @every {text}: time: invalid duration "{text}"')
    return float(max(int(total), 1))


def _field(text: str, lowest: int, highest: int, names: dict[str, int]) -> tuple[frozenset[int], bool]:
    """The values of a field, and whether it is a star."""
    values: set[int] = set()
    star = False
    for part in filter(None, text.split(",")):
        found, is_star = _range(part, lowest, highest, names)
        values |= set(found)
        star = star or is_star
    return frozenset(values), star


def _range(text: str, lowest: int, highest: int, names: dict[str, int]) -> tuple[range, bool]:
    """ "3", "3-9", "3-9/2", "3/2", "*" or "*/2"."""
    bounds, *steps = text.split("/")
    ends = bounds.split("-")
    star = ends[0] in ("*", "?")
    if star:
        first, last = lowest, highest
    elif len(ends) > 2:
        raise ScheduleError(f"too many hyphens: {text}")
    else:
        first = _number(ends[0], names)
        last = _number(ends[1], names) if len(ends) == 2 else highest if steps else first
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {text}")
    step = _number(steps[0], {}) if steps else 1
    if first < lowest:
        raise ScheduleError(f"beginning of range ({first}) below minimum ({lowest}): {text}")
    if last > highest:
        raise ScheduleError(f"end of range ({last}) above maximum ({highest}): {text}")
    if first > last:
        raise ScheduleError(f"beginning of range ({first}) beyond end of range ({last}): {text}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {text}")
    return range(first, last + 1, step), star and step == 1


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not re.fullmatch(r"[-+]?[0-9]{1,18}", text):
        raise ScheduleError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(text)
    if number < 0:
        raise ScheduleError(f"negative number ({number}) not allowed: {text}")
    return number
