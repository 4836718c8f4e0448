"""Who leads: our own lease, kept in a thread of its own; and whether kube-scheduler serves already, by its lease."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import msgspec

from stowplan.apps.logging import Log
from stowplan.apps.run.options import OWN_NAME, RunningScheduler, RunOptions
from stowplan.kube.client import Client
from stowplan.kube.lease import Elector
from stowplan.kube.lease_thread import LeaseThread
from stowplan.kube.resources import LEASES

KEY = "kube-system/kube-scheduler"


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: datetime | None = None


class _Lease(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


async def somebody_schedules(client: Client, now: float, warn: Callable[[str], None]) -> str:
    """Who holds kube-scheduler's lease and renewed it lately; nobody if there is no such lease, or we may not look."""
    answer = await client.get(LEASES, KEY)
    if not answer.ok:
        if answer.status != 404:
            warn(f"Whether kube-scheduler serves cannot be seen: {answer.status} {answer.message}")
        return ""
    spec = msgspec.json.decode(answer.body, type=_Lease).spec
    if not spec.holder_identity or spec.renew_time is None:
        return ""
    held_until = spec.renew_time.timestamp() + (spec.lease_duration_seconds or 15)
    return spec.holder_identity if held_until > now else ""


@dataclass(frozen=True)
class ElectionSettings:
    """Which lease, and how long it lasts."""

    namespace: str = "kube-system"
    name: str = OWN_NAME
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


class Campaign:
    """For a lease, in a thread of its own; `won` and `ended` are called in the event loop that starts it."""

    def __init__(
        self,
        election: ElectionSettings,
        client: Callable[[], Client],
        log: Log,
        *,
        won: Callable[[], None],
        ended: Callable[[], None],
    ) -> None:
        """`client` makes one for another thread's event loop."""
        self._election, self._client, self._log, self._won, self._ended = election, client, log, won, ended
        self._identity = f"{socket.gethostname()}_{uuid.uuid4()}"

    def start(self) -> LeaseThread:
        loop = asyncio.get_running_loop()
        thread = LeaseThread(
            self._elector, on_started=lambda: call(loop, self._begin), on_stopped=lambda: call(loop, self._ended)
        )
        thread.start()
        return thread

    def _elector(self) -> Elector:
        election, log = self._election, self._log
        return Elector(
            self._client(),
            namespace=election.namespace,
            name=election.name,
            identity=self._identity,
            lease_duration=election.lease_duration,
            renew_deadline=election.renew_deadline,
            retry_period=election.retry_period,
            on_leader=lambda who: log.info("New leader elected", identity=who),
            on_problem=lambda text: log.warning("Lease", problem=text),
        )

    def _begin(self) -> None:
        self._log.info("Leading", lease=self._election.name, identity=self._identity)
        self._won()


class LeaderElector:
    """Campaigns for the lease, lets decisions begin once it is ours, and tells when it is lost."""

    def __init__(self, running: RunningScheduler, client: Callable[[], Client], lost: Callable[[], None]) -> None:
        """`client` makes one for another thread's event loop."""
        self._running, self._client, self._lost = running, client, lost

    def start(self) -> None:
        running = self._running
        if not running.elects:
            self._begin()
            return
        campaign = Campaign(self._election, self._client, running.log, won=self._begin, ended=self._ended)
        running.lease = campaign.start()

    @property
    def _election(self) -> ElectionSettings:
        given = self._running.loaded.configuration.leader_election
        namespace = self._running.options.lease_namespace or given.resource_namespace
        return ElectionSettings(namespace, self.name, given.lease_duration, given.renew_deadline, given.retry_period)

    @property
    def name(self) -> str:
        """kube-scheduler's own lease is used only by who takes its place."""
        options: RunOptions = self._running.options
        name = options.lease_name or self._running.loaded.configuration.leader_election.resource_name
        ours = name == "kube-scheduler" and not options.lease_name and not options.replace
        return OWN_NAME if ours else name

    def _begin(self) -> None:
        assert self._running.live is not None
        self._running.live.start_deciding()

    def _ended(self) -> None:
        if self._running.stopping:
            return  # given back, since we were told to stop
        self._running.log.error("The lease is lost", lease=self.name)
        if self._running.live is not None:
            self._running.live.deciding = False
        self._lost()


def call(loop: asyncio.AbstractEventLoop, what: Callable[[], None]) -> None:
    """In that loop's thread, unless it is over."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(what)
