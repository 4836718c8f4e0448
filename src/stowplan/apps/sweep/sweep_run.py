"""One run of a sweep: a name, a function and its arguments, as plain data that can be sent to another machine."""

from __future__ import annotations

from typing import Any

import msgspec

from stowplan.objects.errors import StowplanError

MOST_TRIES = 3  # of a run whose process is lost


class SweepRun(msgspec.Struct, frozen=True):
    """`key`: what is different from other runs, such as a configuration and a seed. `function`: `package.module:name`,
    which takes the arguments as keywords; both they and what it returns are what JSON has.
    """

    key: tuple[str, ...]
    function: str
    arguments: dict[str, Any]

    @property
    def name(self) -> str:
        """The run in a message."""
        return ", ".join(filter(None, self.key))


class RunAnswer(msgspec.Struct, frozen=True):
    """What a run returned, and the seconds that it took."""

    value: Any
    seconds: float


class RunReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a process says of a run: its answer, or why there is none. `problem`: of the input, for the user;
    `traceback`: of any other error.
    """

    answer: RunAnswer | None = None
    problem: str = ""
    traceback: str = ""


class LostRunError(StowplanError):
    """A run whose process was lost every time."""

    def __init__(self, run: SweepRun, how: str) -> None:
        remedy = "a process that needs more memory than there is is killed: give fewer --jobs, or look at its messages"
        super().__init__(f"{run.name}: its process was lost {MOST_TRIES} times, at last {how}; {remedy}")
