"""Lengths of time as people write them: 90, "90s", "1h30m", "7d", "2w"."""

from __future__ import annotations

import math
import re

from stowplan.framework.config.document import duration

DAY = 86_400.0
_DAYS = re.compile(r"(?:(?P<weeks>\d+(?:\.\d+)?)w)?(?:(?P<days>\d+(?:\.\d+)?)d)?(?P<rest>.*)")


def seconds(value: object) -> float | None:
    """Return the seconds of a length of time; None if it is none. A number counts seconds; the sign is kept."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) else None
    text = str(value).strip()
    try:
        plain = float(text)
    except ValueError:
        return _of_words(text)
    return plain if math.isfinite(plain) else None


def _of_words(text: str) -> float | None:
    sign, text = (-1.0, text[1:]) if text.startswith("-") else (1.0, text)
    parts = _DAYS.fullmatch(text)
    if parts is None or not text:
        return None
    whole = float(parts["weeks"] or 0) * 7 * DAY + float(parts["days"] or 0) * DAY
    if not parts["rest"]:
        return sign * whole
    rest = duration(parts["rest"])
    return None if rest is None or rest < 0 else sign * (whole + float(rest))


def shown(length: float) -> str:
    """Return a length of time in at most two units: 0.5s, 42s, 3m10s, 2h5m, 3d4h."""
    if length < 10:
        return f"{length:.3g}s"
    whole = round(length)
    for unit, size, below, smaller in (("d", 86_400, "h", 3_600), ("h", 3_600, "m", 60), ("m", 60, "s", 1)):
        if whole >= size:
            left = whole % size // smaller
            return f"{whole // size}{unit}{left}{below}" if left else f"{whole // size}{unit}"
    return f"{whole}s"
