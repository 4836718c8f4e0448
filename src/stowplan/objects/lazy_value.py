"""A value that is computed when it is first read. As `functools.cached_property`, without the lock that costs more than
most of these values: nothing here is shared between threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class lazy_value(Generic[Value]):  # noqa: N801
    """A decorator for a method without arguments."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> lazy_value[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Value: ...

    def __get__(self, instance: object | None, owner: type | None = None) -> lazy_value[Value] | Value:
        if instance is None:
            return self
        value = vars(instance)[self._name] = self._compute(instance)
        return value
