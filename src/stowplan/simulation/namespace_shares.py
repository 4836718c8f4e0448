"""How fairly namespaces get what they ask for.

For each namespace two sums over time are kept: what its pods ask for, and what those that have a node got. Both count a
pod with its dominant share: the largest fraction of a resource of the whole cluster that it requests. The satisfaction
of a namespace is what it got divided by what it asked for, and Jain's index says how equal the namespaces are:
1 if all are satisfied alike, 1/n if one of n got everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec


class NamespaceShare(msgspec.Struct):
    """The dominant shares of a namespace now, and times seconds until `last`."""

    last: float
    pods: int = 0
    asked: float = 0.0
    got: float = 0.0
    asked_time: float = 0.0
    got_time: float = 0.0

    def advance(self, now: float) -> None:
        """Let time pass until `now`."""
        passed, self.last = now - self.last, now
        self.asked_time += max(self.asked, 0.0) * passed
        self.got_time += max(self.got, 0.0) * passed

    @property
    def satisfaction(self) -> float | None:
        """What it got of what it asked for; None if it asked for nothing."""
        return min(self.got_time / self.asked_time, 1.0) if self.asked_time > 0 else None


class NamespaceShares:
    """The shares of all namespaces. Only the namespace of a pod that changes is touched."""

    def __init__(self) -> None:
        self.shares: dict[str, NamespaceShare] = {}

    def asked(self, namespace: str, share: float, now: float, sign: int = 1) -> None:
        """A pod that requests this share arrived, or (`sign` -1) is gone."""
        found = self._at(namespace, now)
        found.asked += sign * share
        found.pods += sign > 0

    def got(self, namespace: str, share: float, now: float, sign: int = 1) -> None:
        """A pod got a node, or (`sign` -1) lost it."""
        self._at(namespace, now).got += sign * share

    def end(self, now: float) -> None:
        """Bring all sums up to date."""
        for found in self.shares.values():
            found.advance(now)

    def _at(self, namespace: str, now: float) -> NamespaceShare:
        found = self.shares.get(namespace)
        if found is None:
            found = self.shares[namespace] = NamespaceShare(now)
        found.advance(now)
        return found


def dominant(amounts: Mapping[str, int], offered: Mapping[str, int]) -> float:
    """The largest fraction of a resource that is requested. What no node offers does not count."""
    return max((amount / offered[name] for name, amount in amounts.items() if offered.get(name, 0) > 0), default=0.0)


def jain(values: Iterable[float]) -> float | None:
    """Jain's index of fairness; None without values."""
    found = list(values)
    squares = sum(each * each for each in found)
    return sum(found) ** 2 / (len(found) * squares) if squares > 0 else (1.0 if found else None)
