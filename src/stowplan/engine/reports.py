"""What the engine reports about its work, as values. The caller makes metrics and log lines of them.

The engine calls a function with each report (`Scheduler(report=…)`); by default it does nothing.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec


class PodBound(msgspec.Struct, frozen=True):
    """A pod was bound. `since`: when it was first seen. `flushed`: it was attempted because it had waited for too long.

    `group`, here and below: the pod's group as namespace/name, or empty.
    """

    pod: str
    node_name: str
    profile: str
    attempts: int
    since: float
    flushed: bool
    group: str = ""


class BindingUnconfirmed(msgspec.Struct, frozen=True):
    """The answer to a binding was a success, but the API server has the pod without a node. It is scheduled again."""

    pod: str
    node_name: str


class BoundByAnother(msgspec.Struct, frozen=True):
    """A pod that waited for this scheduler was bound, and not by it. (To a follower that is its leader's work.)"""

    pod: str
    node_name: str
    profile: str


class AttemptFailed(msgspec.Struct, frozen=True):
    """An attempt at a pod failed: no node was feasible, or an error happened."""

    pod: str
    profile: str
    error: bool
    message: str
    group: str = ""


class PreemptionStarted(msgspec.Struct, frozen=True):
    """Victims are evicted from a node for a pod."""

    pod: str
    node_name: str
    victims: int


class PermitWaited(msgspec.Struct, frozen=True):
    """A pod waited for a permit, and then got it or not."""

    seconds: float
    allowed: bool
    pod: str = ""


class PluginMisbehaved(msgspec.Struct, frozen=True):
    """A plugin raised, or gave a wrong answer, where no pod depends on it. Its answer is left out."""

    plugin: str
    point: str
    problem: str


# -- groups as a whole


class GroupAttempted(msgspec.Struct, frozen=True):
    """An attempt at a group: `found` members found a node, `needed` must. `message`: why the others did not."""

    group: str
    profile: str
    found: int
    needed: int
    whole: bool
    error: bool = False
    message: str = ""


class GroupWaits(msgspec.Struct, frozen=True):
    """A group cannot be attempted, and its members were told why."""

    group: str
    message: str


class GroupComplete(msgspec.Struct, frozen=True):
    """Enough members of a group are bound. `seconds`: since the group was first seen below its minimum."""

    group: str
    pods: int
    seconds: float


class GroupTimedOut(msgspec.Struct, frozen=True):
    """The members of a group had nodes, but not all were ready to bind within this time."""

    group: str
    seconds: float


class GroupPartiallyBound(msgspec.Struct, frozen=True):
    """A group is partially bound. `message`: which pods are bound. `evicts`: the bound pods are evicted."""

    group: str
    message: str
    evicts: bool


OfGroup: TypeAlias = GroupAttempted | GroupWaits | GroupComplete | GroupTimedOut | GroupPartiallyBound
OfBinding: TypeAlias = PodBound | BindingUnconfirmed | BoundByAnother
Report: TypeAlias = OfBinding | AttemptFailed | PreemptionStarted | PermitWaited | PluginMisbehaved | OfGroup
