"""Leader election: which lease a program holds while it works, and the campaign for it in a thread of its own.

The identity of a holder begins with `stowplan:`. So a Stowplan that holds kube-scheduler's own lease can be told from a
kube-scheduler, whose identity begins with the name of a host.
"""

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
from stowplan.kube.other_lease import OtherLease

OWN_IDENTITY = "stowplan:"  # no name of a host has a colon
KUBE_SCHEDULER = "kube-scheduler"  # the lease that another program may hold, too


def is_stowplan(identity: str) -> bool:
    """True if this holder of a lease is a Stowplan."""
    return identity.startswith(OWN_IDENTITY)


@dataclass(frozen=True, kw_only=True)
class ElectionSettings:
    """The lease, and its durations in seconds. Nobody leads while a Stowplan renews the lease named `other`."""

    name: str
    namespace: str = "kube-system"
    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0
    other: str = ""


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
    loop, identity = asyncio.get_running_loop(), f"{OWN_IDENTITY}{socket.gethostname()}_{uuid.uuid4()}"

    def elector() -> Elector:
        connected = client()
        return Elector(
            connected,
            namespace=election.namespace,
            name=election.name,
            identity=identity,
            lease_duration=election.lease_duration,
            renew_deadline=election.renew_deadline,
            retry_period=election.retry_period,
            other=_other(election, connected),
            on_leader=lambda leader: log.info("New leader elected", identity=leader),
            on_other=lambda holder: log.warning(
                "This replica does not lead, because another Stowplan holds the other lease", lease=election.name,
                other=election.other, identity=holder, remedy="if they serve different pods, give one of them a lease "
                "of its own: --leader-elect-resource-name",
            ),
            on_unseen=lambda: log.info(
                "The other lease may not be read; this replica leads one lease duration after it has its own",
                lease=election.name, other=election.other,
            ),
            on_problem=lambda text: log.warning("Lease", problem=text),
        )  # fmt: skip

    def leading() -> None:
        log.info("Leading", lease=election.name, identity=identity)
        won()

    thread = LeaseThread(elector, on_started=lambda: _call(loop, leading), on_stopped=lambda: _call(loop, ended))
    thread.start()
    return thread


def _other(election: ElectionSettings, client: Client) -> OtherLease | None:
    if not election.other:
        return None
    return OtherLease(
        client,
        namespace=election.namespace,
        name=election.other,
        is_ours=is_stowplan if election.other == KUBE_SCHEDULER else bool,  # older ones have no prefix
        timeout=election.renew_deadline / 2,
    )


def _call(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    """Call a function in the loop's own thread, unless the loop is closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(function)
