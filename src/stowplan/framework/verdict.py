"""What happened to a pod: rejections, and the decision with its trail. Values, not exceptions.

Reject      some rows are refused, for one reason              (a plugin's filter)
Refuse      the pod as a whole is refused                      (a plugin's pre_filter, pre_enqueue, permit …)
Only        look at these nodes alone                          (pre_filter)
SKIP        this plugin has nothing to do for this pod         (pre_filter)
Avoid       take these nodes only if no other will do          (avoid)
NotYet      what was asked for is not there yet                (pre_bound)
Trail       who was rejected by what, who scored what; kept as codes and rendered only when somebody looks
Decision    the answer for one pod, with its trail
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np
import numpy.typing as npt

from stowplan.columns.arrays import Bools, Bytes, Ints, Rows
from stowplan.objects.actions import Ask
from stowplan.objects.pods import Pod

UNSCHEDULABLE = "Unschedulable"
UNRESOLVABLE = "UnschedulableAndUnresolvable"
PENDING = "Pending"
WOULD_FIT = "pod would fit"  # how the message begins of a member that is not in its group's way


class Skip(Enum):
    SKIP = "skip"


SKIP = Skip.SKIP


def check_reasons(reasons: object) -> None:
    if not isinstance(reasons, tuple) or not all(isinstance(reason, str) for reason in reasons):
        raise TypeError(f"reasons must be a tuple of texts; found {reasons!r}")


@dataclass(frozen=True, slots=True)
class Reject:
    """Rows that are refused and why. `resolvable`: could evicting pods help? One answer, or one per row."""

    rows: Bools
    reason: str
    resolvable: bool | Bools = True


@dataclass(frozen=True, slots=True)
class Refuse:
    """The pod as a whole is refused. `resolvable`: could evicting pods help?

    `waits`: all is well but for somebody else who has to act; once that happened the pod is tried without a backoff.
    """

    reasons: tuple[str, ...]
    resolvable: bool = True
    waits: bool = False

    def __post_init__(self) -> None:
        check_reasons(self.reasons)

    @property
    def code(self) -> str:
        if self.waits:
            return PENDING
        return UNSCHEDULABLE if self.resolvable else UNRESOLVABLE


@dataclass(frozen=True, slots=True)
class Only:
    """The search is narrowed to nodes of these names."""

    names: frozenset[str]

    def __post_init__(self) -> None:
        if not isinstance(self.names, frozenset):
            raise TypeError(f"names must be a frozenset of node names; found {self.names!r}")


@dataclass(frozen=True, slots=True)
class Avoid:
    """Nodes of these names (or `others`: of all other names) are refused, for this reason, as long as another one is
    feasible.
    """

    names: frozenset[str]
    reason: str
    others: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.names, frozenset):
            raise TypeError(f"names must be a frozenset of node names; found {self.names!r}")


@dataclass(frozen=True, slots=True)
class NotYet:
    """What pre-binding asked for is not there yet; asking again makes sense once one of these (kind, key) changes."""

    until: frozenset[tuple[str, str]]

    def __post_init__(self) -> None:
        if not isinstance(self.until, frozenset) or not all(isinstance(each, tuple) for each in self.until):
            raise TypeError(f"until must be a frozenset of (kind, key); found {self.until!r}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """One node's, or the whole pod's, rejection: by which plugin, for which reasons."""

    plugin: str
    code: str
    reasons: tuple[str, ...]


FEASIBLE = -1
UNSEEN = -2  # not looked at: other nodes were enough, or the node is outside the rows that the decision was limited to


class Names(Protocol):
    """Node names by position; a list will do."""

    def __len__(self) -> int: ...
    def __getitem__(self, position: int, /) -> str: ...
    def __iter__(self) -> Iterator[str]: ...


@dataclass(slots=True)
class Trail:
    """All nodes looked at, each feasible or with its first rejection; and every plugin's score of the feasible ones.

    `scores` has, per plugin, its weight and a score for each feasible node (any integer type), or one for all.
    `verdict_of` has, per node, the number of its verdict in `verdicts`, or FEASIBLE, or UNSEEN. `names` need not be a
    list: most trails are never read, and names are looked up only then. `outside` counts the nodes that the decision
    was not about (`schedule_one(within=…)`).
    """

    names: Names
    verdict_of: npt.NDArray[np.int32]
    verdicts: list[Verdict]
    feasible: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    scores: dict[str, tuple[int, Ints | Bytes | int]] = field(default_factory=dict)
    totals: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    outside: int = 0

    @property
    def total(self) -> int:
        """How many nodes the decision was about."""
        return len(self.names) - self.outside

    def widen(self, names: Names, places: Rows) -> None:
        """Cover all nodes (`names`) of the cluster instead of those at these places: the others are UNSEEN."""
        verdict_of = np.full(len(names), UNSEEN, np.int32)
        verdict_of[places] = self.verdict_of
        self.outside = len(names) - len(self.names)
        self.names, self.verdict_of, self.feasible = names, verdict_of, places[self.feasible]

    def rejections(self) -> Iterator[tuple[str, Verdict | None]]:
        """Each node that was looked at with its verdict; None for a feasible one."""
        for name, code in zip(self.names, self.verdict_of.tolist(), strict=True):
            if code != UNSEEN:
                yield name, None if code == FEASIBLE else self.verdicts[code]

    def reasons(self) -> Counter[str]:
        """How many nodes were refused for each reason; a node with several reasons counts for each."""
        counted: Counter[str] = Counter()
        numbers = np.bincount(self.verdict_of[self.verdict_of >= 0], minlength=len(self.verdicts))
        for verdict, number in zip(self.verdicts, numbers.tolist(), strict=True):
            for reason in verdict.reasons:
                counted[reason] += number
        return +counted

    def unresolvable(self) -> Bools:
        """Per node: would evicting pods be no help?"""
        codes = [verdict.code == UNRESOLVABLE for verdict in self.verdicts]
        return np.array([*codes, True, False], np.bool_)[self.verdict_of]  # the last two for UNSEEN and FEASIBLE

    def best(self) -> list[str]:
        """The feasible nodes with the highest total."""
        if not len(self.totals):
            return []
        return [self.names[position] for position in self.feasible[self.totals == self.totals.max()].tolist()]

    def scored(self) -> Iterator[tuple[str, dict[str, int], int]]:
        """Each feasible node with every plugin's score, before weighting, and the weighted total."""
        columns = {name: score for name, (_, score) in self.scores.items()}
        for at, position in enumerate(self.feasible.tolist()):
            each = {name: score if isinstance(score, int) else int(score[at]) for name, score in columns.items()}
            yield self.names[position], each, int(self.totals[at])


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that would fit the pod after evicting these pods, most important first."""

    node: str
    victims: tuple[Pod, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What a post-filter found: room that can be made, or why not.

    `settles`: no further plugin is asked. `breaks_promise`: no node is kept for the pod any longer.
    """

    reasons: tuple[str, ...] = ()
    candidate: Candidate | None = None
    settles: bool = False
    breaks_promise: bool = False

    def __post_init__(self) -> None:
        check_reasons(self.reasons)


@dataclass(slots=True)
class Decision:
    """The answer for one pod: the node it gets, or why it gets none; provisional while extenders must be asked."""

    pod: Pod
    node: str | None
    trail: Trail
    gated: Verdict | None = None
    refused: Verdict | None = None
    narrowed: frozenset[str] | None = None
    narrowed_by: tuple[str, ...] = ()
    skipped: frozenset[str] | set[str] = frozenset()
    post_filter: PostFilterResult | None = None
    error: str = ""
    asks: tuple[Ask, ...] = ()

    @property
    def message(self) -> str:
        """kube-scheduler's words for why there is no node, without what post-filters add."""
        nodes = self.trail.total
        if self.error or self.node is not None or self.gated is not None:
            return self.error
        if nodes == 0:
            return "no nodes available to schedule pods"
        if self.refused is not None:
            return f"0/{nodes} nodes are available: {', '.join(self.refused.reasons)}."
        return f"0/{nodes} nodes are available{counted(self.trail.reasons())}"

    @property
    def full_message(self) -> str:
        """The same with what post-filters add, as the pod's condition says it."""
        added = ", ".join(self.post_filter.reasons) if self.post_filter is not None else ""
        return f"{self.message} {added}" if added else self.message


def counted(reasons: Counter[str]) -> str:
    """ ": 2 Insufficient cpu, 3 node(s) were unschedulable." Sorted as text, as kube-scheduler does: 10 before 2."""
    parts = sorted(f"{number} {reason}" for reason, number in reasons.items())
    return f": {', '.join(parts)}." if parts else ":"
