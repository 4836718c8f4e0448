"""What a cluster plugin is: a plain class with any of these methods. The dialect is that of node plugins.

    filter(placement, clusters)      yields Reject for clusters that may not be chosen; or Misconfigured
    score(placement, clusters)       -100 to 100 for each cluster, one number for all, or None: no opinion; entries that
                                     a masked array masks are clusters without a score, which counts as 0
    why(placement, cluster)          a more precise reason for a rejected cluster, asked for when somebody looks
    changes_at(placement, clusters)  when time alone may change an answer about these clusters, if ever

Plugins do no I/O, read no clock (`clusters.fleet.now` has the time), and keep no state from which an answer follows:
a placement is decided again when something changes that its plugins read through `clusters`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from stowplan.columns.arrays import Ints, Rows
from stowplan.columns.fleet.one_cluster import OneCluster
from stowplan.columns.fleet.views import Clusters
from stowplan.framework.decision import Reject
from stowplan.objects.errors import StowplanError
from stowplan.objects.placements import Placement

MAX_CLUSTER_SCORE = 100  # the least is the same below 0


@dataclass(frozen=True, slots=True)
class Misconfigured:
    """The placement itself is wrong: it keeps its last good decisions, and its condition says what to mend.

    yield Misconfigured("its tier is bronze", path="metadata.labels.tier", remedy="use gold or silver")
    """

    message: str
    path: str = ""
    remedy: str = ""


class UnfinishedError(StowplanError):
    """A filter that comes with Stowplan has worked enough for now: the placement is decided again, after the others."""


Rejections: TypeAlias = Iterable[Reject | Misconfigured]
Rating: TypeAlias = Ints | int | Misconfigured | None


@runtime_checkable
class ClusterFilter(Protocol):
    def filter(self, placement: Placement, clusters: Clusters) -> Rejections:
        """Yield what is rejected of these clusters; or what is wrong with the placement."""


@runtime_checkable
class Prioritizer(Protocol):
    def score(self, placement: Placement, clusters: Clusters) -> Rating:
        """Return -100 to 100 for each of these clusters."""


@runtime_checkable
class ClusterWhy(Protocol):
    def why(self, placement: Placement, cluster: OneCluster) -> str:
        """Return why this cluster may not be chosen."""


@runtime_checkable
class ChangesAt(Protocol):
    def changes_at(self, placement: Placement, clusters: Clusters) -> float | None:
        """Return when time alone may change an answer about these clusters; None: never."""


# -- of plugins that come with Stowplan; no other plugin is asked for these


class Selecting(Protocol):
    def select(self, placement: Placement, clusters: Clusters, totals: Ints, number: int, weight: int) -> Rows:
        """Return the positions of the chosen clusters, best first."""

    def depends_on(self, placement: Placement) -> Iterable[Hashable]:
        """Return what it reads of clusters."""


class Lapses(Protocol):
    def lapses(self, placement: Placement, clusters: Clusters) -> float | None:
        """Return when the first toleration ends that keeps one of these clusters."""


class Excludes(Protocol):
    def exclude(self, placement: Placement, clusters: Clusters) -> Iterable[Reject]:
        """Yield clusters that are not chosen because they have no score."""
