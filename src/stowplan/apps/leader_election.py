"""Leader election: which lease a program holds while it works, and the campaign for it in a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from stowplan.apps.logging import Log
from stowplan.kube.client import Client
from stowplan.kube.lease import Elector
from stowplan.kube.lease_thread import LeaseThread


@dataclass(frozen=True, kw_only=True)
class ElectionSettings:
    """The lease, and its durations in seconds."""

    name: str
    namespace: str = "kube-system"
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


def campaign(
    election: ElectionSettings,
    client: Callable[[], Client],
    log: Log,
    *,
    won: Callable[[], None],
    ended: Callable[[], None],
) -> LeaseThread:
    """Start a thread that acquires the lease and renews it.

    `won` is called when the lease is acquired, `ended` when it is lost or released, both in the calling event loop.
    `client` makes a client for the thread's event loop.
    """
    loop, identity = asyncio.get_running_loop(), f"{socket.gethostname()}_{uuid.uuid4()}"

    def elector() -> Elector:
        return Elector(
            client(),
            namespace=election.namespace,
            name=election.name,
            identity=identity,
            lease_duration=election.lease_duration,
            renew_deadline=election.renew_deadline,
            retry_period=election.retry_period,
            on_leader=lambda leader: log.info("New leader elected", identity=leader),
            on_problem=lambda text: log.warning("Lease", problem=text),
        )

    def leading() -> None:
        log.info("Leading", lease=election.name, identity=identity)
        won()

    thread = LeaseThread(elector, on_started=lambda: _call(loop, leading), on_stopped=lambda: _call(loop, ended))
    thread.start()
    return thread


def _call(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call a function in the loop's own thread, unless the loop is closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function)
