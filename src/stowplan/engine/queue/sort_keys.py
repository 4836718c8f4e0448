"""Keys of a queueSort plugin, which must all be comparable with each other: a heap of them compares any two.

A key is usable if it is made of the same kinds of values, in the same places, as the key of a plain pod: a number where
that has a number, a text where that has a text. (1, None) and (1, "a") can both be compared with (0, "b"), but not with
each other, which would show at some later time, in the middle of the queue. Until a pod has come whose key is like the
plain pod's, keys like the first one are usable, too: it is not for one pod to say what all others must be like.

Numbers, texts, bytes, moments and None are known to compare. Other values are kept in a wrapper that never raises.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, TypeAlias

from stowplan.objects.texts import described

Kinds: TypeAlias = tuple[Any, ...] | object

FAST = frozenset((bool, int, float, str, bytes))  # of these the type says everything
NUMBER = "number"
KNOWN = FAST | {type(None), Fraction, datetime, date}  # they compare with all others of their kind
UNLIKE_ANY = object()


class IncomparableKeyError(TypeError):
    """A key that cannot be compared with the others."""


class SortKeys:
    """`usable` returns each key as it goes into the queue, or raises."""

    def __init__(self) -> None:
        self._plain: Kinds | None = None  # of a plain pod's key
        self._first: Kinds | None = None  # of the first key, while no pod had one like the plain pod's
        self._types: tuple[type, ...] | None = None  # of the last key like the plain pod's, if they say everything

    def measure(self, key: object) -> None:
        """All keys should be like this one, which is a plain pod's."""
        self._plain = _kinds(key)

    def usable(self, key: Any) -> tuple[int, Any]:
        """The key in a form that can be compared with all others. Those like the plain pod's come first."""
        if type(key) is tuple and tuple(map(type, key)) == self._types:
            return 0, key
        kinds = _kinds(key)
        merged = _merged(self._plain, kinds)
        if merged is not None:
            self._plain = merged
            if type(key) is tuple and FAST.issuperset(map(type, key)):
                self._types = tuple(map(type, key))
            self._first = UNLIKE_ANY
            return 0, _guarded(key)
        merged = kinds if self._first is None else _merged(self._first, kinds)
        if merged is None:
            right = _told(self._plain if self._first is UNLIKE_ANY else self._first)
            raise IncomparableKeyError(
                f"the key {described(key, 200)} is {_told(kinds)}; it cannot be compared with {right} of other pods"
            )
        self._first = merged
        return 1, _guarded(key)


class GuardedKey:
    """A value of a type that is not known to compare with all others of its type. Where it does not, it is not less."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        try:
            return bool(self.value == _value(other))
        except BaseException:
            return self is other

    def __lt__(self, other: object) -> bool:
        try:
            return bool(self.value < _value(other))
        except BaseException:
            return False

    def __gt__(self, other: object) -> bool:  # asked by a value that is known, such as an int beside a Decimal
        try:
            return bool(self.value > _value(other))
        except BaseException:
            return False

    __hash__ = None  # type: ignore[assignment]


def _value(key: Any) -> Any:
    return key.value if isinstance(key, GuardedKey) else key


def _kinds(key: object) -> Kinds:
    """What a key is made of."""
    if type(key) is tuple:
        return tuple(map(_kinds, key))
    if isinstance(key, Real | Decimal | Fraction):
        return NUMBER
    if isinstance(key, datetime):
        return datetime, key.tzinfo is None
    return type(key)


def _merged(measure: Kinds | None, found: Kinds) -> Kinds | None:
    """The kinds of two keys that can be compared: those of the longer one. None if they cannot."""
    if not isinstance(measure, tuple) or not isinstance(found, tuple):
        return measure if measure == found else None
    merged = [_merged(each, other) for each, other in zip(measure, found, strict=False)]
    if any(each is None for each in merged):
        return None
    longer = max(measure, found, key=len)
    return (*merged, *longer[len(merged) :])


def _guarded(key: Any) -> Any:
    """The key with each value in a wrapper that is not known to compare."""
    if type(key) is tuple:
        return tuple(map(_guarded, key))
    return key if type(key) in KNOWN else GuardedKey(key)  # a class of its own may compare in its own way


def _told(kinds: Kinds | None) -> str:
    if isinstance(kinds, tuple):
        return "(" + ", ".join(map(_told, kinds)) + ")"
    return "None" if kinds is type(None) else kinds.__name__ if isinstance(kinds, type) else str(kinds)
