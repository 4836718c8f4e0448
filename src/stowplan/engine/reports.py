"""What an engine reports of its work, as values: the caller makes metrics and log lines of them.

An engine is given a function that takes reports (`Scheduler(report=…)`); it does nothing unless somebody cares.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class Bound(msgspec.Struct, frozen=True):
    """A pod is bound, after so many attempts; `since` is when it was first seen. `flushed`: its age got it tried."""

    pod: str
    node_name: str
    profile: str
    attempts: int
    since: float
    flushed: bool


class Failed(msgspec.Struct, frozen=True):
    """An attempt at a pod ended without a node, or something went wrong on the way to it."""

    pod: str
    profile: str
    error: bool
    message: str


class Preempted(msgspec.Struct, frozen=True):
    """Room is made for a pod by evicting so many others from a node."""

    pod: str
    node_name: str
    victims: int


class Waited(msgspec.Struct, frozen=True):
    """A pod waited so long for its permit, and then got it or not."""

    seconds: float
    allowed: bool


Report: TypeAlias = Bound | Failed | Preempted | Waited
