"""The service behind the pages of a live cluster: it follows what a scheduler follows, into the model. It cannot write.

    reflectors (or lists, where a watch is not allowed) ─► ClusterModel ─► pages

`Program` has the life cycle; the pages are served from before the first list on, and say that the cluster is read.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

import click

from stowplan.apps import http_server, plugin_kinds
from stowplan.apps.explain.sources import ALWAYS, ClusterSource, event_time
from stowplan.apps.explain.texts import some
from stowplan.apps.http_server import HttpServer, Listener
from stowplan.apps.logging import Log
from stowplan.apps.place.kinds import KINDS
from stowplan.apps.program import Program
from stowplan.apps.ui.access import BrowserAccess
from stowplan.apps.ui.cluster import ClusterModel, Policies
from stowplan.apps.ui.followable_kinds import FollowableKinds, followable
from stowplan.apps.ui.polling import PolledKind
from stowplan.apps.ui.scheduler_feed import SchedulerFeed
from stowplan.apps.ui.site import Site
from stowplan.kube import credentials
from stowplan.kube.reflector import Reflector, Sink
from stowplan.kube.resources import RESOURCES
from stowplan.objects.changes import Change

CONNECTIONS = 32
MOST_NAMES = 4  # of kinds and namespaces that are named


@contextmanager
def serving(site: Site, access: BrowserAccess, port: int, log: Log) -> Iterator[str]:
    """Serve the pages on the loopback; yield the address to open."""
    server = HttpServer(site.pages(), [Listener("127.0.0.1", port)], log.warning, http_server.connection_limits())
    server.start()
    access.port = server.ports[0]
    try:
        yield access.address()
    finally:
        server.stop()
        site.close()


def live_model(name: str, policies: Policies, kubeconfig: str, context: str) -> ClusterModel:
    """Return the model of a live cluster, which is empty until a service fills it."""
    return ClusterModel(name, policies, lambda: ClusterSource(kubeconfig, context), is_live=True)


def remember_events(model: ClusterModel) -> None:
    """Fill the feed with what the cluster's events say happened before. In the model's thread."""
    found = []
    for event in model.source.all_events():
        about = event.get("regarding") or event.get("involvedObject") or {}
        at = event_time(event)
        if at is not None and about.get("kind") == "Pod":
            key = f"{about.get('namespace')}/{about.get('name')}"
            message = str(event.get("note") or event.get("message") or "")
            reporter = event.get("reportingController") or event.get("reportingComponent") or ""
            found.append((at, str(event.get("reason", "")), key, message, str(reporter)))
    model.feed.remember(found)


def _notes(kinds: FollowableKinds) -> Iterator[str]:
    """Yield what a reader should know of the rights."""
    if kinds.listed:
        names = sorted(each.plural for each in kinds.listed)
        what = ", ".join(names) if len(names) <= MOST_NAMES else f"{len(names)} of the kinds"
        yield f"You may not watch {what}, so they are listed again every few seconds."
    if kinds.namespaces:
        out = f" ({some(kinds.left_out, MOST_NAMES)})" if kinds.left_out else ""
        yield (
            f"Only pods of {some(list(kinds.namespaces), MOST_NAMES)} are seen. You may not list those of other "
            f"namespaces{out}, so nodes look emptier than they are."
        )


class UiService(Program):
    """Fills a model from a cluster until it is stopped."""

    def __init__(
        self, model: ClusterModel, policies: Policies, kubeconfig: str, context: str, log: Log,
        scheduler: SchedulerFeed | None = None,
    ) -> None:  # fmt: skip
        """`scheduler`: a Stowplan in the cluster, whose decisions are followed, too."""
        super().__init__(log)
        self.model, self._policies = model, policies
        self._kubeconfig, self._context = kubeconfig, context
        self._kinds = FollowableKinds()
        self._others: list[PolledKind | Reflector] = []  # what is not followed by a watch of the whole cluster
        self._scheduler = scheduler
        self._begun = False

    @property
    def leading(self) -> bool:
        """Never: a client writes only while its program leads, and this one writes nothing."""
        return False

    def access(self, kubeconfig: str = "") -> credentials.Access:
        return credentials.load(kubeconfig or self._kubeconfig or None, self._context or None)

    async def prepare(self) -> None:
        access = self.access()
        self._client = self.open_client(access, CONNECTIONS)
        wanted = plugin_kinds.read_by(self._policies.profiles.values())
        wanted |= {kind: RESOURCES[kind] for kind in (*ALWAYS, *KINDS)}
        asking = followable(self._client, wanted.values(), access.namespace)
        self._kinds = await self.unless_stopped(asking) or FollowableKinds()
        self.model.unseen = self._kinds.unseen
        self.model.notes = list(_notes(self._kinds))
        if self._kinds.unseen:
            click.echo(f"Not seen, for lack of rights: {', '.join(self._kinds.unseen)}.", err=True)

    def start(self) -> None:
        for resource in self._kinds.watched:
            self.follow(self._client, resource, self._sink())
        for resource in self._kinds.listed:
            self._others.append(PolledKind(self._client, resource, self._sink(), self.log.warning))
        pods, warn = RESOURCES["Pod"], self.log.warning
        for name, may_watch in self._kinds.namespaces.items():
            self._others.append(
                Reflector(self._client, pods, self._sink(), namespace=name, on_problem=warn)
                if may_watch
                else PolledKind(self._client, pods, self._sink(), warn, name)
            )
        for each in self._others:
            self.start_task(each.run())

    async def wait_for_sync(self) -> None:
        await super().wait_for_sync()
        for each in self._others:
            await each.synced.wait()

    def caches_synced(self) -> None:
        caches = [*(each.cache for each in self.reflectors.values()), *(each.cache for each in self._others)]
        self._begun = True
        self.model.begin([found for cache in caches for found in cache.objects.values()])
        self.model.later(remember_events)
        gc.collect()
        gc.freeze()  # the listed objects stay
        if self._scheduler is not None:
            self.start_task(self._scheduler.run(self._client))

    def _sink(self) -> Sink:
        def receive(changes: list[Change]) -> None:
            if self._begun:  # before that, the caches have it
                self.model.tell(changes)

        return receive
