"""What becomes of the values of a dump: nothing (`AsTheyAre`), or a substitute for each name (`Anonymised`).

`Anonymised` keeps what carries meaning for scheduling: Kubernetes' own words, amounts, times, priorities. Sentences
are left out, and so is what is no time where a time should be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from stowplan.objects import quantity
from stowplan.objects.devices import IMPLICIT
from stowplan.simulation.dump.substitutes import Substitutes
from stowplan.simulation.dump.words import NUMBERED, OWN_WORDS, READ_ANNOTATIONS

OWN_IDENTITY = "stowplan:"  # how a Stowplan's identity in a lease begins
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_NUMBER = re.compile(r"[+-]?\d{1,18}(\.\d{1,9})?%?")
_HUGE_PAGES = re.compile(r"hugepages-\d+[KMGT]?i?")
_PREFIXES = ("requests.", "limits.", "count/", IMPLICIT, "attachable-volumes-csi-", "attachable-volumes-", "hugepages-")
_OF_CLASS = ".storageclass.storage.k8s.io/"
_NATIVE = "kubernetes.io/"


class AsTheyAre:
    """Leaves each value as it is. Only annotations that nobody reads are left out, unless they are in `keep`."""

    def __init__(self, keep: Collection[str] = ()) -> None:
        self._annotations = READ_ANNOTATIONS | frozenset(keep)

    def word(self, text: str) -> str:
        return text

    def label(self, key: str, value: str) -> str:  # noqa: ARG002
        return value

    def annotation(self, key: str, value: str) -> str | None:
        return value if key in self._annotations else None

    def resource(self, name: str) -> str:
        return name

    def amount(self, value: Any) -> Any:
        return value

    def image(self, text: str) -> str:
        return text

    def address(self, text: str) -> str:
        return text

    def holder(self, text: str) -> str:
        return text

    def time(self, text: str) -> str | None:
        return text

    def text(self, text: str) -> str | None:
        return text

    def unknown(self, value: Any) -> Any:
        return value


class Anonymised:
    def __init__(self, substitutes: Substitutes, keep: Collection[str] = ()) -> None:
        """`keep`: further annotations that stay in the dump."""
        self._substitutes, self._annotations = substitutes, READ_ANNOTATIONS | frozenset(keep)
        self.word, self.image, self.address = substitutes.word, substitutes.image, substitutes.address
        self._resources: dict[str, str] = {}

    def label(self, key: str, value: str) -> str:
        """Return the value of a label, or of a condition on it."""
        return value if key in NUMBERED and is_amount(value) else self.word(value)

    def annotation(self, key: str, value: str) -> str | None:
        if key not in self._annotations:
            return None
        if key in NUMBERED and is_amount(value):
            return value
        if value[:1] in ("{", "["):
            return self._structured(value)
        return self.word(value)

    def _structured(self, value: str) -> str | None:
        """JSON with its names replaced; what is no JSON is a word."""
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            return self.word(value)
        return json.dumps(self.unknown(found), separators=(",", ":"))

    def resource(self, name: str) -> str:
        found = self._resources.get(name)
        if found is None:
            found = self._resources[name] = self._resource(name)
        return found

    def _resource(self, name: str) -> str:
        if self._substitutes.is_kept(name) or _HUGE_PAGES.fullmatch(name):
            return name
        for prefix in _PREFIXES:
            if name.startswith(prefix):
                return prefix + self.resource(name.removeprefix(prefix))
        for middle in (_OF_CLASS, _NATIVE):
            before, found, after = name.partition(middle)
            if found:
                return f"{self.word(before)}{found}{self.resource(after)}"
        return self.word(name)

    def amount(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value if isinstance(value, int | float) else self.unknown(value)
        return value if is_amount(value) else self.word(value)

    def holder(self, text: str) -> str:
        """The identity in a lease says whether a Stowplan holds it."""
        own = OWN_IDENTITY if text.startswith(OWN_IDENTITY) else ""
        return own + self.word(text.removeprefix(own))

    def time(self, text: str) -> str | None:
        return text if _TIME.fullmatch(text) else None

    def text(self, text: str) -> str | None:  # noqa: ARG002
        return None

    def unknown(self, value: Any) -> Any:
        """Replace every text in a value of any type."""
        if isinstance(value, str):
            return self.word(value)
        if isinstance(value, dict):
            return {self.word(str(key)): self.unknown(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.unknown(each) for each in value]
        return value


def is_amount(text: str) -> bool:
    if text in OWN_WORDS or _NUMBER.fullmatch(text):
        return True
    try:
        quantity.quantity(text)
    except ValueError:
        return False
    return True
