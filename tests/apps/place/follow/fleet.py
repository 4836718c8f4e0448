"""A hub and member clusters, all embedded, and a follower in a thread of its own."""

from __future__ import annotations

import asyncio
import io
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from stowplan.apps.logging import Log
from stowplan.apps.place.follow.options import FollowOptions
from stowplan.apps.place.follow.service import FollowService
from stowplan.kube import event_loop
from stowplan.objects.placements import GROUP, PLACEMENT_LABEL, SATISFIED
from stowplan.testing import EmbeddedCluster

WORKLOAD = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {colour: blue}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: nginx, resources: {requests: {cpu: 1000m}}}]
"""


class TestFleet:
    """`choose` writes what a placement scheduler would write."""

    __test__ = False

    def __init__(self, folder: Path, names: tuple[str, ...], stack: ExitStack) -> None:
        self.folder = folder
        self.hub = self._started("hub", stack)
        self.members = {name: self._started(name, stack) for name in names}
        self.manifest = folder / "workload.yaml"
        self.manifest.write_text(WORKLOAD)

    def _started(self, name: str, stack: ExitStack) -> EmbeddedCluster:
        (self.folder / name).mkdir()
        return stack.enter_context(EmbeddedCluster(nodes=0, folder=self.folder / name))

    def options(self, **more: Any) -> FollowOptions:
        given: dict[str, Any] = {
            "namespace": "default", "placement": "web", "files": (self.manifest,), "follower": "default.web",
            "clusters": {name: found.kubeconfig for name, found in self.members.items()},
            "kubeconfig": str(self.hub.kubeconfig), "secure_port": 0, "resync": 0.1, "v": 2,
        }  # fmt: skip
        return FollowOptions(**given | more)

    def words(self, *more: str) -> list[str]:
        """The command line."""
        clusters = [word for name, it in self.members.items() for word in ("--cluster", f"{name}={it.kubeconfig}")]
        hub = ["--kubeconfig", str(self.hub.kubeconfig)]
        return ["place", "follow", "default/web", "-f", str(self.manifest), *hub, *clusters, *more]

    def choose(self, *clusters: str, slices: int = 1) -> None:
        """The Placement has these clusters, and says so."""
        for number in range(slices):
            self.decide(number, *clusters[number::slices])
        self.say(len(clusters))

    def say(self, number: int) -> None:
        condition = {"type": SATISFIED, "status": "True", "reason": "AllDecisionsScheduled", "message": "",
                     "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
        self.hub.apply(
            {
                "apiVersion": f"{GROUP}/v1beta1",
                "kind": "Placement",
                "metadata": {"name": "web", "namespace": "default"},
                "spec": {},
                "status": {"numberOfSelectedClusters": number, "conditions": [condition], "decisionGroups": []},
            }
        )

    def decide(self, number: int, *clusters: str) -> None:
        self.hub.apply(
            {
                "apiVersion": f"{GROUP}/v1beta1",
                "kind": "PlacementDecision",
                "metadata": {"name": f"web-{number}", "namespace": "default", "labels": {PLACEMENT_LABEL: "web"}},
                "status": {"decisions": [{"clusterName": name, "reason": ""} for name in clusters]},
            }
        )

    def having(self) -> set[str]:
        """The clusters with the whole workload. None has a part of it."""
        found = set()
        for name, member in self.members.items():
            parts = [
                member.get(kind, key) for kind, key in (("ConfigMap", "shop/settings"), ("Deployment", "default/web"))
            ]
            if all(parts):
                found.add(name)
        return found

    def waits_until(self, *clusters: str) -> None:
        self.hub.wait_until(lambda: self.having() == set(clusters))


@contextmanager
def a_fleet(folder: Path, *names: str) -> Iterator[TestFleet]:
    with ExitStack() as stack:
        yield TestFleet(folder, names, stack)


class RunningFollower:
    def __init__(self, options: FollowOptions) -> None:
        self._stream = io.StringIO()
        self._options, self._started = options, threading.Event()
        self._thread = threading.Thread(target=self._run, name="follower")
        self.code: int | None = None

    @property
    def log(self) -> str:
        return self._stream.getvalue()

    def _run(self) -> None:
        async def main() -> int:
            self.loop = asyncio.get_running_loop()
            self.service = FollowService(self._options, Log(self._options.v, stream=self._stream))
            self._started.set()
            return await self.service.main()

        with asyncio.Runner(loop_factory=event_loop.new) as runner:
            self.code = runner.run(main())

    def __enter__(self) -> RunningFollower:
        self._thread.start()
        assert self._started.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self.service.stop)
        self._thread.join(60)
        assert self.code == 0, self.log
