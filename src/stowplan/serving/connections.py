"""Which connections a server has, which must go to make room, and until when each one may do what it does.

    quiet ──first bytes──► opening ──handshake──► idle ◄──headers──► busy
                                                   │ a request was authorized: proven

A connection costs a descriptor from the start, and memory from its first bytes on (TLS takes 300 KB). So there are
three limits: connections in all, connections of one peer, and connections that have spoken but are not proven. At a
limit, a new connection is let in and another one is closed: one that is not proven, idle rather than busy, the
oldest, of the peers that have the most. So who holds a thousand connections loses its own, and a probe of the kubelet
is answered even from the same address. Proven connections are closed if they are idle and nobody else can go; busy ones
are not.

Times are bounded, too: for the first bytes and the handshake, for the headers of a request, and between two requests.
This is bookkeeping only: who owns a table calls `end` of what must go, and asks for `until` to set its timer.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain, groupby
from typing import TypeAlias

Peer: TypeAlias = str


class ConnectionPhase(Enum):
    QUIET = "quiet"
    OPENING = "opening"
    IDLE = "idle"
    READING = "reading"
    BUSY = "busy"


@dataclass(frozen=True)
class ConnectionLimits:
    """Numbers of connections, and seconds."""

    total: int
    per_peer: int
    unproven: int  # that have spoken
    opening_within: float = 10.0
    headers_within: float = 10.0
    idle_within: float = 60.0


@dataclass(eq=False)
class ServedConnection:
    """One connection; `end` closes it at once."""

    peer: Peer
    number: int  # in the order of arrival
    until: float | None
    end: Callable[[], None] = field(default=lambda: None)
    phase: ConnectionPhase = ConnectionPhase.QUIET
    proven: bool = False

    @property
    def spoken(self) -> bool:
        return self.phase is not ConnectionPhase.QUIET


class ConnectionTable:
    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.refused = 0  # connections that were closed to make room, or not let in
        self._by_peer: dict[Peer, dict[int, ServedConnection]] = {}
        self._arrived = 0

    def __len__(self) -> int:
        return sum(map(len, self._by_peer.values()))

    @property
    def all(self) -> list[ServedConnection]:
        return [each for found in self._by_peer.values() for each in found.values()]

    # -- making room

    def arrive(self, peer: Peer, now: float) -> ServedConnection | None:
        """Let a connection in, and close another one if there is no room. None: nobody can go."""
        if len(self._by_peer.get(peer, ())) >= self.limits.per_peer:
            room = self._close_one(self._by_peer[peer].values())
        else:
            room = len(self) < self.limits.total or self.close_one()
        if not room:
            self.refused += 1
            return None
        self._arrived += 1
        arrived = ServedConnection(peer, self._arrived, now + self.limits.opening_within)
        self._by_peer.setdefault(peer, {})[arrived.number] = arrived
        return arrived

    def close_one(self) -> bool:
        """Close a connection of the peer that has the most of them; False if nobody can go."""
        return any(map(self._close_one, _largest_first(list(each.values()) for each in self._by_peer.values())))

    def _close_one(self, candidates: Iterable[ServedConnection]) -> bool:
        """Close the one that is missed least; False if none can go."""
        able = [each for each in candidates if not (each.proven and each.phase is ConnectionPhase.BUSY)]
        if not able:
            return False
        gone = min(able, key=lambda each: (each.proven, each.phase is ConnectionPhase.BUSY, each.number))
        self.refused += 1
        self.leave(gone)
        gone.end()
        return True

    def leave(self, gone: ServedConnection) -> None:
        found = self._by_peer.get(gone.peer)
        if found is not None and found.pop(gone.number, None) is not None and not found:
            del self._by_peer[gone.peer]

    # -- what happens on a connection

    def speaks(self, one: ServedConnection) -> None:
        """Its first bytes are here: from now on it takes memory."""
        unproven = [
            [each for each in found.values() if each.spoken and not each.proven] for found in self._by_peer.values()
        ]
        if sum(map(len, unproven)) >= self.limits.unproven:
            self._close_one(next(_largest_first(unproven)))
        one.phase = ConnectionPhase.OPENING

    def opened(self, one: ServedConnection, now: float) -> None:
        """The handshake is done: the headers of the first request are due."""
        one.phase, one.until = ConnectionPhase.READING, now + self.limits.headers_within

    def received(self, one: ServedConnection, now: float) -> bool:
        """Bytes arrived; True if they begin a request, whose headers are due then."""
        if one.phase is not ConnectionPhase.IDLE:
            return False
        one.phase, one.until = ConnectionPhase.READING, now + self.limits.headers_within
        return True

    def request_begins(self, one: ServedConnection) -> None:
        one.phase, one.until = ConnectionPhase.BUSY, None

    def request_ends(self, one: ServedConnection, now: float) -> None:
        """The answer is made; the client must read it, and ask again if it likes, in the time for idle ones."""
        one.phase, one.until = ConnectionPhase.IDLE, now + self.limits.idle_within


def _largest_first(peers: Iterable[list[ServedConnection]]) -> Iterator[list[ServedConnection]]:
    """Yield the connections of the peers that have the most of them, together if several have as many, and so on."""
    for _, equals in groupby(sorted(peers, key=len, reverse=True), key=len):
        yield list(chain.from_iterable(equals))


def peer_of(address: str) -> Peer:
    """Return whose connection this is: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return address if found.is_loopback else str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
