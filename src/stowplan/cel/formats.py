"""Kubernetes' named formats of strings, such as `format.dns1123Label()`."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from stowplan.cel.kubernetes import parse_url
from stowplan.cel.values import Optional, as_string, as_type
from stowplan.objects import selectors

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = r"[a-z](?:[-a-z0-9]*[a-z0-9])?"
_LABEL_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"
_SUBDOMAIN = rf"{_LABEL}(?:\.{_LABEL})*"
_UUID = r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


@dataclass(frozen=True, slots=True)
class Format:
    name: str


def _fits(text: str, longest: int, pattern: str) -> bool:
    return len(text) <= longest and re.fullmatch(pattern, text, re.ASCII) is not None


def _prefix_fits(text: str, longest: int, pattern: str) -> bool:
    """True if a name that begins with the text could fit: the text may end in a dash."""
    return _fits(text.removesuffix("-") + "a" * text.endswith("-"), longest, pattern)


def _is_datetime(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return re.fullmatch(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d.*", text) is not None


def _is_date(text: str) -> bool:
    try:
        datetime.strptime(text, "%Y-%m-%d")
    except ValueError:
        return False
    return len(text) == 10


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        return False
    return True


FORMATS: dict[str, Callable[[str], bool]] = {
    "dns1123Label": lambda text: _fits(text, 63, _LABEL),
    "dns1123Subdomain": lambda text: _fits(text, 253, _SUBDOMAIN),
    "dns1035Label": lambda text: _fits(text, 63, _LABEL_1035),
    "qualifiedName": selectors.is_label_key,
    "dns1123LabelPrefix": lambda text: _prefix_fits(text, 63, _LABEL),
    "dns1123SubdomainPrefix": lambda text: _prefix_fits(text, 253, _SUBDOMAIN),
    "dns1035LabelPrefix": lambda text: _prefix_fits(text, 63, _LABEL_1035),
    "labelValue": lambda text: _fits(text, 63, _LABEL_VALUE),
    "uri": lambda text: parse_url(text) is not None,
    "uuid": lambda text: re.fullmatch(_UUID, text) is not None,
    "byte": _is_base64,
    "date": _is_date,
    "datetime": _is_datetime,
}


def _named(name: Any) -> Optional:
    return Optional(Format(name), True) if as_string(name) in FORMATS else Optional()


def _validate(format_: Any, text: Any) -> Optional:
    """Return what is wrong with a string; nothing if it fits."""
    name = as_type(format_, Format).name
    return Optional() if FORMATS[name](as_string(text)) else Optional([f"no valid {name}"], True)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "format.named": _named,
    **{f"format.{name}": partial(Format, name) for name in FORMATS},
    "validate": _validate,
}
