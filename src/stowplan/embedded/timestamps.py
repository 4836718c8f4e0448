"""Times as the API writes them: whole seconds in UTC, or microseconds for the type MicroTime."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=1024)
def _second(whole: int) -> str:
    return datetime.fromtimestamp(whole, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def stamp(now: float) -> str:
    """Seconds since 1970 in RFC 3339, in whole seconds."""
    return _second(int(now))


def micro_stamp(now: float) -> str:
    """Seconds since 1970 in RFC 3339, in microseconds."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@lru_cache(maxsize=65536)
def seconds(text: str) -> float:
    """Seconds since 1970 of a time in RFC 3339; 0 for a text that is not a time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0


def age(text: str | None, now: float) -> str:
    """How long ago a time was, as in the tables of kubectl."""
    return span(now - seconds(text)) if text else "<unknown>"


def span(length: float) -> str:
    """A duration such as "45s", "3m10s", "12m", "4h5m", "9h", "2d3h", "12d" or "3y20d"."""
    if length < -1:
        return "<invalid>"
    whole = max(int(length), 0)
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    return _two(days // 365, "y", days % 365, "d") if days < 8 * 365 else f"{days // 365}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"
