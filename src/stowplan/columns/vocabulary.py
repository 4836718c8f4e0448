"""Codes for values that repeat: taint sets, label values, feature sets.

A value has its code while it is held; afterwards the code is reused. So a vocabulary is as large as the number of
values in use, not of all values ever seen. Code 0 belongs to one value that is always there: "nothing".
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value", bound=Hashable)


class Vocabulary(Generic[Value]):
    def __init__(self, nothing: Value) -> None:
        self.values: list[Value | None] = [nothing]
        self.codes: dict[Value, int] = {nothing: 0}
        self.version = 0  # grows when a code gets another meaning
        self._holders = [1]
        self._free: list[int] = []

    def __len__(self) -> int:
        """Return the length of a table indexed by code."""
        return len(self.values)

    def hold(self, value: Value) -> int:
        """Return the code of a value; each call needs a `release`."""
        code = self.codes.get(value)
        if code is None:
            code = self._new(value)
        self._holders[code] += 1
        return code

    def release(self, code: int) -> None:
        self._holders[code] -= 1
        if self._holders[code] == 0:
            del self.codes[self.values[code]]  # type: ignore[arg-type]
            self.values[code] = None
            self._free.append(code)
            self.version += 1

    def _new(self, value: Value) -> int:
        self.version += 1
        if self._free:
            code = self._free.pop()
            self.values[code] = value
            self._holders[code] = 0
        else:
            code = len(self.values)
            self.values.append(value)
            self._holders.append(0)
        self.codes[value] = code
        return code
