"""The settings of a run: its seed, its end, and how long things take that a scheduler does not do itself."""

from __future__ import annotations

import msgspec

from stowplan.engine.scheduler import ANSWER_WITHIN
from stowplan.objects.errors import ConfigError

START = 1_800_000_000.0  # seconds since 1970: where every run starts, so that no clock is needed
QUIET = 900.0  # seconds in which nothing but retries happens, until a run without an end is over


class RunSettings(msgspec.Struct, frozen=True, kw_only=True):
    """`until`: when the run ends, in seconds from its start; None: when nothing is left that could happen.

    `bind_seconds`, `start_seconds` and `stop_seconds` are the latencies of a binding, of a pod's start on its node, and
    of its termination. `job_seconds`: how long a pod of a Job runs that does not say so. `sample_seconds`: the time
    between two samples of the series; 0 for none.

        RunSettings(seed=1, until=86_400, bind_seconds=0.1, start_seconds=5)
    """

    seed: int = 0
    until: float | None = None
    bind_seconds: float = 0.0
    start_seconds: float = 0.0
    stop_seconds: float = 0.0
    job_seconds: float = 60.0
    sample_seconds: float = 60.0

    def __post_init__(self) -> None:
        for name in ("bind_seconds", "start_seconds", "stop_seconds", "job_seconds", "sample_seconds"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ConfigError(f"{name} is {getattr(self, name):g}", remedy="choose 0 or more seconds")
        if self.bind_seconds >= ANSWER_WITHIN:
            remedy = f"choose less than {ANSWER_WITHIN:g} seconds: the scheduler takes a later answer for lost"
            raise ConfigError(f"bind_seconds is {self.bind_seconds:g}", remedy=remedy)
        if self.until is not None and not self.until > 0:
            raise ConfigError(f"until is {self.until:g}", remedy="choose a positive number of seconds")
