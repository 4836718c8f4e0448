"""The answers of plugins, and the decision about a pod with its trail. Rejections are values, not exceptions.

Reject      some nodes are rejected, for one reason            (a plugin's filter)
RejectPod   the pod as a whole is rejected                     (a plugin's pre_filter, pre_enqueue, permit …)
Only        the search is limited to these nodes               (pre_filter)
SKIP        the plugin has nothing to do for this pod          (pre_filter)
Avoid       use these nodes only if no other is feasible       (avoid)
NotYet      what pre_bind asked for is not there yet           (pre_bound)
Trail       every node's verdict and scores, as codes and columns; made into text only when it is read
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
from stowplan.objects.actions import AnyAction, Ask
from stowplan.objects.errors import PluginError
from stowplan.objects.pods import Pod
from stowplan.objects.texts import described, shortened

UNSCHEDULABLE = "Unschedulable"
UNRESOLVABLE = "UnschedulableAndUnresolvable"
PENDING = "Pending"
WOULD_FIT = "pod would fit"  # the beginning of a member's message if other members do not fit


class Skip(Enum):
    """`SKIP`, from `pre_filter`: the plugin's filter is not called for this pod.

    if "disk" not in pod.labels:
        return SKIP
    """

    SKIP = "skip"


SKIP = Skip.SKIP


def check_reasons(reasons: object) -> None:
    if not isinstance(reasons, tuple) or not all(isinstance(reason, str) for reason in reasons):
        raise TypeError(f"reasons must be a tuple of texts; found {described(reasons)}")


@dataclass(frozen=True, slots=True)
class Reject:
    """Some nodes (or clusters) are rejected, for one reason: `yield Reject(nodes.free["cpu"] < 1000, "too small")`.

    `rows` is True for the rejected ones, in the order of the view. The reason completes "0/5 nodes are available: 3 …",
    so write it as kube-scheduler does: "node(s) had no ssd". `resolvable`: could the eviction of other pods help? One
    answer, or one per row.
    """

    rows: Bools
    reason: str
    resolvable: bool | Bools = True


@dataclass(frozen=True, slots=True, init=False)
class RejectPod:
    """The pod as a whole is rejected: `return RejectPod("the team has no budget left")`.

    `reasons`: one text or a tuple of texts. `resolvable`: could the eviction of other pods help? `waits`: the pod only
    waits for something outside the scheduler; when that happens, the pod is attempted without a backoff.
    """

    reasons: tuple[str, ...]
    resolvable: bool
    waits: bool

    def __init__(self, reasons: str | tuple[str, ...], resolvable: bool = True, waits: bool = False) -> None:
        texts = (reasons,) if isinstance(reasons, str) else reasons
        check_reasons(texts)
        for name, value in (("reasons", tuple(map(shortened, texts))), ("resolvable", resolvable), ("waits", waits)):
            object.__setattr__(self, name, value)

    @property
    def code(self) -> str:
        if self.waits:
            return PENDING
        return UNSCHEDULABLE if self.resolvable else UNRESOLVABLE


@dataclass(frozen=True, slots=True)
class Only:
    """The search is limited to nodes of these names: `return Only(frozenset({"node-a"}))`."""

    names: frozenset[str]

    def __post_init__(self) -> None:
        if not isinstance(self.names, frozenset):
            raise TypeError(f"names must be a frozenset of node names; found {described(self.names)}")


@dataclass(frozen=True, slots=True)
class Avoid:
    """Nodes of these names are rejected, for this reason, while another node is feasible. `others`: all but these.

    return Avoid(frozenset({last_node}), "node(s) ran the pod before")
    """

    names: frozenset[str]
    reason: str
    others: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.names, frozenset):
            raise TypeError(f"names must be a frozenset of node names; found {described(self.names)}")
        object.__setattr__(self, "reason", shortened(self.reason))


@dataclass(frozen=True, slots=True)
class NotYet:
    """What pre-binding asked for is not there yet; `pre_bound` is called again when one of these objects changes."""

    until: frozenset[tuple[str, str]]  # (kind, key)

    def __post_init__(self) -> None:
        if not isinstance(self.until, frozenset) or not all(isinstance(each, tuple) for each in self.until):
            raise TypeError(f"until must be a frozenset of (kind, key); found {described(self.until)}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """The rejection of one node, or of the whole pod: by which plugin, for which reasons."""

    plugin: str
    code: str
    reasons: tuple[str, ...]


FEASIBLE = -1
NOTHING = np.zeros(0, np.int64)
NOTHING.flags.writeable = False
UNSEEN = -2  # not looked at: other nodes were enough, or the node is outside the rows that the decision was limited to


class Names(Protocol):
    """Node names by position: a list, for example."""

    def __len__(self) -> int: ...
    def __getitem__(self, position: int, /) -> str: ...
    def __iter__(self) -> Iterator[str]: ...


@dataclass(slots=True)
class Trail:
    """Every node, feasible or with its first rejection, and every plugin's scores of the feasible nodes.

    verdict_of   per node: the code of its verdict (its place in `verdicts`), or FEASIBLE, or UNSEEN
    feasible     the positions of the feasible nodes
    scores       per plugin: its weight, and a score for each feasible node (any integer type) or one for all
    totals       per feasible node: the sum of its weighted scores
    names        per node; it need not be a list, since names are only looked up when a trail is read
    outside      how many nodes the decision was not about (`schedule_one(within=…)`)
    """

    names: Names
    verdict_of: npt.NDArray[np.int32]
    verdicts: list[Verdict]
    feasible: npt.NDArray[np.int64] = field(default_factory=lambda: NOTHING)
    scores: dict[str, tuple[int, Ints | Bytes | int]] = field(default_factory=dict)
    totals: Ints = field(default_factory=lambda: NOTHING)
    outside: int = 0

    @property
    def total(self) -> int:
        """The number of nodes that the decision was about."""
        return len(self.names) - self.outside

    def widen(self, names: Names, places: Rows) -> None:
        """Cover all nodes of the cluster (`names`): the trail's own nodes are at these places, the others UNSEEN."""
        verdict_of = np.full(len(names), UNSEEN, np.int32)
        verdict_of[places] = self.verdict_of
        self.outside = len(names) - len(self.names)
        self.names, self.verdict_of, self.feasible = names, verdict_of, places[self.feasible]

    def rejections(self) -> Iterator[tuple[str, Verdict | None]]:
        """Yield each node that was looked at with its verdict; None: feasible."""
        for name, code in zip(self.names, self.verdict_of.tolist(), strict=True):
            if code != UNSEEN:
                yield name, None if code == FEASIBLE else self.verdicts[code]

    def reasons(self) -> Counter[str]:
        """Return how many nodes were rejected for each reason; a node with several reasons counts for each."""
        counted: Counter[str] = Counter()
        numbers = np.bincount(self.verdict_of[self.verdict_of >= 0], minlength=len(self.verdicts))
        for verdict, number in zip(self.verdicts, numbers.tolist(), strict=True):
            for reason in verdict.reasons:
                counted[reason] += number
        return +counted

    def unresolvable(self) -> Bools:
        """Return, per node, True if evictions cannot help."""
        codes = [verdict.code == UNRESOLVABLE for verdict in self.verdicts]
        return np.array([*codes, True, False], np.bool_)[self.verdict_of]  # the last two for UNSEEN and FEASIBLE

    def best(self) -> list[str]:
        """Return the feasible nodes with the highest total."""
        if not len(self.totals):
            return []
        return [self.names[position] for position in self.feasible[self.totals == self.totals.max()].tolist()]

    def scored(self) -> Iterator[tuple[str, dict[str, int], int]]:
        """Yield each feasible node with every plugin's score, before weighting, and the weighted total."""
        columns = {name: score for name, (_, score) in self.scores.items()}
        for at, position in enumerate(self.feasible.tolist()):
            each = {name: score if isinstance(score, int) else int(score[at]) for name, score in columns.items()}
            yield self.names[position], each, int(self.totals[at])


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that would fit the pod after the eviction of these victims, highest priority first.

    `violations`: how many victims are protected by a disruption budget.
    """

    node: str
    victims: tuple[Pod, ...]
    violations: int


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What a post-filter found: a candidate for preemption, or why there is none.

    `settles`: no further post-filter is called. `clears_nomination`: the pod's nomination is cleared. `with_slots`: the
    pod may preempt, but for the room that it needs on all nodes together; the engine looks for the victims. `actions`:
    writes that may help the pod, whatever else is found; their results are not awaited.
    """

    reasons: tuple[str, ...] = ()
    candidate: Candidate | None = None
    settles: bool = False
    clears_nomination: bool = False
    with_slots: bool = False
    actions: tuple[AnyAction, ...] = ()

    def __post_init__(self) -> None:
        check_reasons(self.reasons)
        object.__setattr__(self, "reasons", tuple(map(shortened, self.reasons)))


@dataclass(slots=True)
class Decision:
    """The answer for one pod: its node, or why there is none. It is provisional while extenders must be asked.

    error     a plugin failed, in words: it ended the decision
    failure   the same for programs, without a traceback: decisions are kept
    """

    pod: Pod
    node: str | None
    trail: Trail
    gated: Verdict | None = None
    refused: Verdict | None = None
    limited_to: frozenset[str] | None = None
    limited_by: tuple[str, ...] = ()
    skipped: frozenset[str] | set[str] = frozenset()
    post_filter: PostFilterResult | None = None
    error: str = ""
    failure: PluginError | None = None
    asks: tuple[Ask, ...] = ()

    @property
    def message(self) -> str:
        """kube-scheduler's message that says why there is no node, without the part of post-filters."""
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
        """The same with the part of post-filters, as in the pod's condition."""
        added = ", ".join(self.post_filter.reasons) if self.post_filter is not None else ""
        return f"{self.message} {added}" if added else self.message


def counted(reasons: Counter[str]) -> str:
    """Return ": 2 Insufficient cpu, 3 node(s) were unschedulable."; as in kube-scheduler, 10 comes before 2."""
    parts = sorted(f"{number} {reason}" for reason, number in reasons.items())
    return f": {', '.join(parts)}." if parts else ":"
