"""Watches the pods of the storm and lets `pod_judge` judge them.

After a break the watch goes on where it was. If that is too long ago, everything is listed again, and what happened in
between is not seen: `relisted` counts it.
"""

from __future__ import annotations

import http.client
import threading
import time
from typing import TypeVar

import msgspec

from stowplan.objects import json_text
from tests.controlplane.api import Api
from tests.soak.pod_judge import Metadata, PodJudge, SeenPod

SILENCE = 30.0  # seconds
T = TypeVar("T")


class PodList(msgspec.Struct):
    metadata: Metadata
    items: list[SeenPod]


class WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


def _decoded(document: bytes | msgspec.Raw, kind: type[T]) -> T:
    """A document, without what nests too deep: poison comes by here, too."""
    try:
        return msgspec.json.decode(document, type=kind)
    except RecursionError:
        return msgspec.json.decode(json_text.readable(bytes(document)), type=kind)


class PodWatch(threading.Thread):
    """Watches all pods of a namespace until `end`. Others ask it from their own threads."""

    def __init__(self, api: Api, namespace: str, judge: PodJudge) -> None:
        super().__init__(name="pod-watch", daemon=True)
        self._api, self._path, self._judge = api, f"/api/v1/namespaces/{namespace}/pods", judge
        self._lock = threading.Lock()
        self._version, self._ended = "", False
        self.relisted = -1  # the first list is none

    def end(self) -> None:
        self._ended = True

    def is_bound(self, name: str) -> bool:
        with self._lock:
            return self._judge.is_bound(name)

    def unbound(self) -> list[str]:
        with self._lock:
            return self._judge.unbound()

    def partial_groups(self) -> list[str]:
        with self._lock:
            return self._judge.partial_groups()

    def counts(self) -> tuple[int, int]:
        with self._lock:
            return self._judge.counts()

    def run(self) -> None:
        while not self._ended:
            try:
                if not self._version:
                    self._list()
                self._watch()
            except (OSError, http.client.HTTPException, RuntimeError, msgspec.DecodeError):
                time.sleep(0.2)  # the API server is away on purpose

    def _list(self) -> None:
        answer = self._api.get(self._path)
        if answer.status != 200:
            raise RuntimeError(f"list: {answer.status}")
        found = _decoded(answer.body, PodList)
        with self._lock:
            self._judge.listed(found.items, time.monotonic())
        self._version = found.metadata.resource_version
        self.relisted += 1

    def _watch(self) -> None:
        query = f"?watch=1&allowWatchBookmarks=true&resourceVersion={self._version}"
        with self._api.stream(self._path + query, seconds=SILENCE) as lines:
            for line in lines:
                if self._ended:
                    return
                event = _decoded(line, WatchEvent)
                if event.type == "ERROR":
                    self._version = ""
                    return
                self._take(event.type, _decoded(event.object, SeenPod))

    def _take(self, what: str, pod: SeenPod) -> None:
        with self._lock:
            if what == "DELETED":
                self._judge.gone(pod.metadata.uid)
            elif what != "BOOKMARK":
                self._judge.seen(pod, time.monotonic())
        self._version = pod.metadata.resource_version
