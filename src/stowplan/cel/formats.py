"""CEL, Kubernetes' own formats: what a text must look like to be one."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from stowplan.cel.environment import FORMATS
from stowplan.cel.values import Format, Optional, as_kind, as_text, url
from stowplan.objects import selectors


def _dns(text: str, longest: int, pattern: str) -> bool:
    return len(text) <= longest and re.fullmatch(pattern, text, re.ASCII) is not None


_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = r"[a-z](?:[-a-z0-9]*[a-z0-9])?"
_UUID = r"(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"


def _moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return re.fullmatch(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d.*", text) is not None


def _day(text: str) -> bool:
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


_RULES: dict[str, Callable[[str], bool]] = {
    "dns1123Label": lambda text: _dns(text, 63, _LABEL),
    "dns1123Subdomain": lambda text: _dns(text, 253, rf"{_LABEL}(?:\.{_LABEL})*"),
    "dns1035Label": lambda text: _dns(text, 63, _LABEL_1035),
    "qualifiedName": selectors.is_label_key,
    "dns1123LabelPrefix": lambda text: _dns(text.removesuffix("-") + "a" * text.endswith("-"), 63, _LABEL),
    "dns1123SubdomainPrefix": lambda text: _dns(
        text.removesuffix("-") + "a" * text.endswith("-"), 253, rf"{_LABEL}(?:\.{_LABEL})*"
    ),
    "dns1035LabelPrefix": lambda text: _dns(text.removesuffix("-") + "a" * text.endswith("-"), 63, _LABEL_1035),
    "labelValue": lambda text: _dns(text, 63, r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?"),
    "uri": lambda text: url(text) is not None,
    "uuid": lambda text: re.fullmatch(_UUID, text) is not None,
    "byte": _is_base64,
    "date": _day,
    "datetime": _moment,
}


def _named(name: Any) -> Optional:
    return Optional(Format(name), True) if as_text(name) in _RULES else Optional()


def _validate(form: Any, text: Any) -> Optional:
    """What is wrong with a text; nothing if it is right."""
    name = as_kind(form, Format).name
    return Optional() if _RULES[name](as_text(text)) else Optional([f"no valid {name}"], True)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "format.named": _named,
    **{f"format.{name}": (lambda name=name: Format(name)) for name in FORMATS},
    "validate": _validate,
}
