"""What an engine reports of its work, as values: the caller makes metrics and log lines of them.

An engine is given a function that takes reports (`Scheduler(report=…)`); it does nothing unless somebody cares.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class PodBound(msgspec.Struct, frozen=True):
    """A pod is bound, after so many attempts; `since` is when it was first seen. `flushed`: its age got it tried.

    `group`, here and below: the one it belongs to, if any, as namespace/name.
    """

    pod: str
    node_name: str
    profile: str
    attempts: int
    since: float
    flushed: bool
    group: str = ""


class AttemptFailed(msgspec.Struct, frozen=True):
    """An attempt at a pod ended without a node, or something went wrong on the way to it."""

    pod: str
    profile: str
    error: bool
    message: str
    group: str = ""


class PreemptionStarted(msgspec.Struct, frozen=True):
    """Room is made for a pod by evicting so many others from a node."""

    pod: str
    node_name: str
    victims: int


class PermitWaited(msgspec.Struct, frozen=True):
    """A pod waited so long for its permit, and then got it or not."""

    seconds: float
    allowed: bool
    pod: str = ""


class PluginMisbehaved(msgspec.Struct, frozen=True):
    """A plugin raised, or gave a wrong answer, where no pod depends on it: what it was asked for is left out."""

    plugin: str
    point: str
    problem: str


# -- groups as a whole


class GroupTried(msgspec.Struct, frozen=True):
    """An attempt at a group: `found` members found a node, `needed` must have. `message`: what the others lack."""

    group: str
    profile: str
    found: int
    needed: int
    whole: bool
    error: bool = False
    message: str = ""


class GroupWaits(msgspec.Struct, frozen=True):
    """A group cannot be tried, and its members were told why."""

    group: str
    message: str


class GroupComplete(msgspec.Struct, frozen=True):
    """Enough members of a group are on nodes, of so many pods in all, so long after it was seen to be short of them."""

    group: str
    pods: int
    seconds: float


class GroupTimedOut(msgspec.Struct, frozen=True):
    """A group's members had nodes, and were not all ready to be bound within so many seconds."""

    group: str
    seconds: float


class GroupInPart(msgspec.Struct, frozen=True):
    """A group is bound in part only: who is and who is not. `evicts`: those that are have to go."""

    group: str
    message: str
    evicts: bool


OfGroup: TypeAlias = GroupTried | GroupWaits | GroupComplete | GroupTimedOut | GroupInPart
Report: TypeAlias = PodBound | AttemptFailed | PreemptionStarted | PermitWaited | PluginMisbehaved | OfGroup
