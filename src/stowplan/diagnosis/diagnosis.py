"""The diagnosis of one pod, as a value: what keeps it from a node, and what would help."""

from __future__ import annotations

from dataclasses import dataclass

from stowplan.diagnosis.remedy import Remedy
from stowplan.framework.causes import Cause
from stowplan.framework.decision import Candidate


@dataclass(frozen=True, slots=True)
class NamedCause:
    """A cause, and the plugin that named it."""

    plugin: str
    cause: Cause


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """The nodes that reject the pod for the same causes, all causes of each node."""

    nodes: tuple[str, ...]
    causes: tuple[NamedCause, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Something on its way after which the pod may be scheduled: a terminating pod, a missing member of its group."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What keeps a pod from a node, and what would help.

    pod_causes   why the pod as a whole is rejected
    groups       why nodes reject it, the group with the most nodes first
    preemption   what the scheduler would evict for it, if that helps
    remedies     the smallest changes that help, the best first; each was tried
    waits        what may help without a change
    never        why no node of this cluster could ever host the pod as it is, even if it were empty; or an empty text
    bounded      what was not searched, because the search stopped at a bound; or an empty text
    """

    pod_causes: tuple[NamedCause, ...] = ()
    groups: tuple[CauseGroup, ...] = ()
    preemption: Candidate | None = None
    remedies: tuple[Remedy, ...] = ()
    waits: tuple[Wait, ...] = ()
    never: str = ""
    bounded: str = ""
