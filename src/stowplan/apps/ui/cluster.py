"""The model behind the pages: a cluster's objects, and an engine that knows them and decides nothing.

    changes ─► apply ──┐
                       ├─ one thread: the engine is read and changed there alone
    pages ───► ask ────┘

Objects come from a dump, or from the reflectors of a live cluster (`live`); `load` takes in the first of them, `apply`
what changes. Pages ask with `ask(question)`: the question is called with the model in its thread. `version` grows with
each change, so that whoever shows something knows whether it may be outdated.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from stowplan.apps import profile_loader
from stowplan.apps.explain.pod_explainer import PodExplainer, SearchSettings
from stowplan.apps.explain.schedulers import Schedulers
from stowplan.apps.explain.snapshot import Snapshot
from stowplan.apps.explain.sources import Document, ObjectSource
from stowplan.apps.explain.targets import WorkloadOwners
from stowplan.apps.leader_election import KUBE_SCHEDULER
from stowplan.apps.ui.feed import DecisionFeed
from stowplan.apps.ui.waiting import WaitingByCause
from stowplan.framework.config.configuration import Configuration
from stowplan.framework.placement.policy import ClusterPolicy
from stowplan.framework.plugin_faults import error_text
from stowplan.framework.profile import Profile
from stowplan.objects.changes import Change, Gone, Put
from stowplan.objects.clusters import AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding
from stowplan.objects.meta import Object
from stowplan.objects.placements import Placement, PlacementDecision
from stowplan.objects.pods import Pod
from stowplan.objects.workloads import ReplicaSet
from stowplan.placement.scheduler import PlacementScheduler

T = TypeVar("T")
OF_A_HUB = (
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, Placement, PlacementDecision,
)  # fmt: skip


class ModelSource(ObjectSource, Protocol):
    """Where single objects are read."""

    def all_events(self) -> list[Document]: ...

    def read_again(self) -> None:
        """Forget what was read of a cluster that goes on: leases, single objects."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Policies:
    """By what the engine judges: the profiles of a configuration, and the policy for placements."""

    configuration: Configuration
    profiles: dict[str, Profile]
    clusters: ClusterPolicy
    flags: tuple[str, ...] = ()  # of kubectl, for the commands on the pages

    @property
    def lease(self) -> str:
        """The name of the lease that a Stowplan with this configuration holds."""
        named = self.configuration.leader_election.resource_name
        return profile_loader.OWN_NAME if named in ("", KUBE_SCHEDULER) else named


class ClusterModel:
    """`name`: what is looked at, for people. `open_source`: opens where single objects are read, in this thread."""

    def __init__(
        self, name: str, policies: Policies, open_source: Callable[[], ModelSource], *, is_live: bool = False
    ) -> None:
        self.name, self.policies, self.is_live = name, policies, is_live
        self.open_source = open_source
        self.feed = DecisionFeed()
        self.waiting = WaitingByCause()
        self.version = 0
        self.loaded = False
        self.unseen: list[str] = []  # what the rights do not show
        self.notes: list[str] = []  # what else a reader should know: a watch that is not allowed, say
        self.queue_of: Callable[[Pod], Mapping[str, Any] | None] = lambda _: None
        self.snapshot = Snapshot((), policies.profiles)
        self.hub = PlacementScheduler(policies.clusters)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cluster-model")
        self._source: ModelSource | None = None
        self._explaining: tuple[int, Schedulers, WorkloadOwners] | None = None

    # -- from any thread

    async def ask(self, question: Callable[[ClusterModel], T]) -> T:
        """Return the answer to a question that reads the engine."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, question, self)

    def tell(self, changes: Sequence[Change]) -> None:
        """Let changes be taken in, soon and in their order."""
        self.later(lambda model: model.apply(changes))

    def begin(self, objects: Iterable[Object]) -> None:
        """Take in the first objects, soon."""
        found = list(objects)
        self.later(lambda model: model.load(found))

    def later(self, work: Callable[[ClusterModel], None]) -> None:
        """Let something be done in the thread, after what was told before. If it fails, the pages say so."""

        def done() -> None:
            try:
                work(self)
            except Exception as error:
                self.notes = [*self.notes, f"Not all could be read: {error_text(error)}."]

        self._thread.submit(done)

    def close(self) -> None:
        """Wait for what is being answered; the source is closed in the thread that opened it."""
        self._thread.submit(self._close_source)
        self._thread.shutdown(wait=True, cancel_futures=False)

    # -- in the thread

    @property
    def source(self) -> ModelSource:
        if self._source is None:
            self._source = self.open_source()
        return self._source

    def _close_source(self) -> None:
        if self._source is not None:
            self._source.close()

    def load(self, objects: Sequence[Object]) -> None:
        """Take in the first objects."""
        self.snapshot = Snapshot(objects, self.policies.profiles)
        for each in self.snapshot.pods.values():
            self.waiting.put(each)
        now = time.time()
        for found in objects:
            if isinstance(found, OF_A_HUB):
                self.hub.handle(Put(found), now)
        self.loaded = True
        self.version += 1

    def apply(self, changes: Sequence[Change]) -> None:
        """Take in changes, in their order."""
        for change in changes:
            found = change.object
            old = self.snapshot.objects.get((type(found).__name__, found.key))
            if isinstance(change, Gone):
                if old is not None and old.uid == found.uid:
                    self._gone(old)
                continue
            self.snapshot.put(found)
            if isinstance(found, Pod):
                self.waiting.put(found)
                self.feed.changed(old if isinstance(old, Pod) and old.uid == found.uid else None, found)
            elif isinstance(found, OF_A_HUB):
                self.hub.handle(Put(found), time.time())
                if isinstance(found, PlacementDecision):
                    self.feed.placed(old if isinstance(old, PlacementDecision) else None, found)
        self.version += 1

    def _gone(self, old: Object) -> None:
        self.snapshot.forget(old)
        if isinstance(old, Pod):
            self.waiting.remove(old.key)
        elif isinstance(old, OF_A_HUB):
            self.hub.handle(Gone(old), time.time())

    def objects(self) -> list[Object]:
        """Return all objects: what another snapshot is made of."""
        return list(self.snapshot.objects.values())

    def now(self) -> float:
        """The time of what is looked at."""
        return time.time() if self.is_live else self.source.now()

    def explainer(self) -> PodExplainer:
        """Return what answers one question about pods. It keeps what it read, so each question has its own."""
        if self._explaining is None or self._explaining[0] != self.version:
            self.source.read_again()
            schedulers, owners = parts(self.snapshot, self.source, self.policies, self.now())
            self._explaining = self.version, schedulers, owners
        _, schedulers, owners = self._explaining
        made = PodExplainer(self.snapshot, self.source, owners, schedulers, SearchSettings(flags=self.policies.flags))
        made.queue_of = self.queue_of
        return made

    @property
    def all_unseen(self) -> list[str]:
        """What the rights do not show, on the lists and in single questions."""
        own = [] if self._source is None else self._source.unseen
        return list(dict.fromkeys((*self.unseen, *own)))


def parts(
    snapshot: Snapshot, source: ObjectSource, policies: Policies, now: float
) -> tuple[Schedulers, WorkloadOwners]:
    """Return who serves which scheduler name, and who owns which pods."""
    schedulers = Schedulers(source.leases(), snapshot.pods.values(), policies.profiles, policies.lease, now)
    sets = (each for (kind, _), each in snapshot.objects.items() if kind == "ReplicaSet")
    return schedulers, WorkloadOwners(each for each in sets if isinstance(each, ReplicaSet))
