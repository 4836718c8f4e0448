"""Waiting in a test: until a pod is scheduled, pods run, a Deployment is available. Nothing sleeps longer than needed.

A wait in vain is an AssertionError that tells what there is instead (`cluster_conditions`), the diagnosis of
`stowplan explain` for pods without a node, and the cluster as it is.
"""

from __future__ import annotations

import textwrap
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from stowplan.objects.errors import StowplanError
from stowplan.testing import cluster_conditions
from stowplan.testing.cluster_conditions import Seen

T = TypeVar("T")
Document: TypeAlias = dict[str, Any]
PodNames: TypeAlias = tuple[str, list[str]]  # a namespace, and names in it as `stowplan explain` takes them

LOOK_AGAIN = 0.2  # seconds until a condition is looked at again although nothing changed


class ClusterWaits(ABC):
    """The waits of a cluster. Internal: tests use an `EmbeddedCluster`."""

    def __init__(self) -> None:
        self._changed = threading.Event()  # set after each change of the cluster

    @abstractmethod
    def get(self, kind: str, key: str) -> Document | None: ...

    @abstractmethod
    def pods(self, namespace: str = "", selector: str = "") -> list[Document]: ...

    @abstractmethod
    def explain(self, *names: str, namespace: str = "default") -> str: ...

    @abstractmethod
    def picture(self) -> str: ...

    @property
    @abstractmethod
    def scheduler_runs(self) -> bool: ...

    def wait_until(self, condition: Callable[[], T], within: float = 30.0) -> T:
        """Wait until the condition is true, and return what it returned.

        Otherwise the AssertionError shows the pods, the latest events and the end of the scheduler's log.

            cluster.wait_until(lambda: len(cluster.pods()) == 3, within=60)
        """
        __tracebackhide__ = True
        for _ in self._looks(within):
            found = condition()
            if found:
                return found
        raise AssertionError(f"not so after {within:g} s. {self.picture()}")

    def wait_until_scheduled(self, pod: str, within: float = 30.0) -> str:
        """Wait until a pod has a node, and return the node's name.

        Otherwise the AssertionError tells what there is instead, and why, in the words of `stowplan explain`. So do
        those of the other waits.

            assert cluster.wait_until_scheduled("web") == "node-1"
        """
        look, names = lambda: cluster_conditions.scheduled(self.get("Pod", pod)), lambda: _names(pod)
        return self._wait(f"pod {pod} is not scheduled", look, within, names)

    def wait_until_pending(self, pod: str, reason: str = "", within: float = 30.0) -> str:
        """Wait until the scheduler has said why a pod has no node; return the reason and the message that it gave.

        `reason` is a part of them: "Insufficient cpu", "SchedulingGated". A pod with a node fails the test at once.

            cluster.wait_until_pending("large", "Insufficient memory")
        """
        look, names = lambda: cluster_conditions.pending(self.get("Pod", pod), reason), lambda: _names(pod)
        return self._wait(f"pod {pod} is not pending{f' with {reason!r}' if reason else ''}", look, within, names)

    def wait_until_running(
        self, selector: str = "", count: int | None = None, *, namespace: str = "default", within: float = 30.0
    ) -> list[Document]:
        """Wait until all pods with these labels are Running, and return them.

        `count`: how many there are, no more and no fewer; without it, at least one. Controllers create pods one by one,
        so give it for a workload.

            cluster.wait_until_running("app=web", count=3)
        """

        def names() -> tuple[str, list[str]]:
            return namespace, cluster_conditions.without_node(self.pods(namespace, selector))

        def look() -> Seen:
            return cluster_conditions.running(self.pods(namespace, selector), count)

        wanted = "" if count is None else f"{count} "
        self._wait(f"{wanted}pods with {selector or 'any labels'} in {namespace} are not Running", look, within, names)
        return self.pods(namespace, selector)

    def wait_until_available(self, deployment: str, within: float = 30.0) -> Document:
        """Wait until all replicas of a Deployment are updated and available, and return the Deployment.

        cluster.wait_until_available("shop/web")
        """
        look = lambda: cluster_conditions.available(self.get("Deployment", deployment))  # noqa: E731
        self._wait(f"Deployment {deployment} is not available", look, within, lambda: _names(deployment, "deploy/"))
        return cast("Document", self.get("Deployment", deployment))

    def _wait(self, what: str, look: Callable[[], Seen], within: float, names: Callable[[], PodNames]) -> str:
        __tracebackhide__ = True
        seen = Seen(False, "")
        for _ in self._looks(within):
            seen = look()
            if seen.met:
                return seen.text
            if seen.final:
                break
        after = "" if seen.final else f" after {within:g} s"
        why = "" if seen.final else self._why(*names())
        raise AssertionError(f"{what}{after}: {seen.text}\n{why}{self.picture()}")

    def _looks(self, within: float) -> Iterator[None]:
        """Yield at once, after each change of the cluster, and last when the time is over."""
        deadline = time.monotonic() + within
        while True:
            self._changed.clear()
            yield
            if time.monotonic() > deadline:
                return
            self._changed.wait(LOOK_AGAIN)

    def _why(self, namespace: str, names: Sequence[str]) -> str:
        if not names:
            return ""
        if not self.scheduler_runs:
            return "No scheduler runs here: scheduler=True, or start_scheduler(), starts one.\n"
        try:
            return f"stowplan explain:\n{textwrap.indent(self.explain(*names, namespace=namespace), '  ')}"
        except StowplanError:
            return ""  # what was asked for is gone, or never was


def _names(key: str, kind: str = "") -> PodNames:
    """Return the namespace of a key, and what `stowplan explain` calls its object."""
    namespace, _, name = key.rpartition("/")
    return namespace or "default", [f"{kind}{name}"]
