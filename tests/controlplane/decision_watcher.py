"""A watcher of a placement's decisions, which counts the clusters that were missing from all of them at any moment."""

from __future__ import annotations

import http.client
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any, Self

from tests.controlplane.hubs import GROUP
from tests.controlplane.place_process import Hub


class Watcher:
    """`lapses`: clusters of `staying` that were once in no slice; `homes`: the slices that each was ever seen in."""

    def __init__(self, hub: Hub, name: str = "p") -> None:
        self._hub, self._placement = hub, name
        self.staying: frozenset[str] = frozenset()
        self.lapses: Counter[str] = Counter()
        self.homes: defaultdict[str, set[str]] = defaultdict(set)
        self.events = 0
        self.on_event: Callable[[], None] = lambda: None
        self._held: dict[str, tuple[str, ...]] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def begin(self, staying: frozenset[str]) -> None:
        """From now on none of these may be missing."""
        self.staying = staying

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                self._follow(self._list())
            except (OSError, http.client.HTTPException, RuntimeError, ValueError):
                self._stop.wait(0.1)  # the server is away; what it shows when it is back counts again

    def _list(self) -> str:
        found = self._hub.api.must("GET", self._hub.path("placementdecisions"))
        self._held = {}
        for document in found["items"]:
            self._take(document)
        self._check()
        return str(found["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> None:
        path = f"{self._hub.path('placementdecisions')}?watch=1&resourceVersion={version}&timeoutSeconds=600"
        with self._hub.api.stream(path, seconds=2) as lines:
            while not self._stop.is_set():
                try:
                    line = lines.readline()
                except TimeoutError:
                    return  # silence: list again, and go on
                if not line:
                    return
                self._happened(json.loads(line))

    def _happened(self, event: Any) -> None:
        if event["type"] == "ERROR":
            raise RuntimeError(event)
        if event["type"] == "DELETED":
            self._held.pop(event["object"]["metadata"]["name"], None)
        else:
            self._take(event["object"])
        self.events += 1
        self._check()
        self.on_event()

    def _take(self, document: Any) -> None:
        metadata = document["metadata"]
        if metadata["labels"].get(f"{GROUP}/placement") == self._placement:
            decisions = document.get("status", {}).get("decisions") or ()
            self._held[metadata["name"]] = tuple(each["clusterName"] for each in decisions)

    def _check(self) -> None:
        there = set[str]()
        for name, clusters in self._held.items():
            assert len(clusters) <= 100
            there.update(clusters)
            for cluster in clusters:
                self.homes[cluster].add(name)
        self.lapses.update(self.staying - there)
