"""Creates batches at a rate, and deletes each once it has been bound for its time."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from enum import Enum

from tests.soak.connection import Connection
from tests.soak.pod_watch import PodWatch
from tests.soak.workload import Batch, Workload

WORKERS = 8
LOOK_AGAIN = 2.0  # seconds


class Task(Enum):
    CREATE = "create"
    DELETE_IF_BOUND = "delete it if it is bound"
    DELETE = "delete it"


class Load:
    """`rate`: pods a second. What could not be created because of a fault is tried again."""

    def __init__(self, connect: Callable[[], Connection], namespace: str, workload: Workload, watch: PodWatch) -> None:
        self._connect, self._pods = connect, f"/api/v1/namespaces/{namespace}/pods"
        self._workload, self._watch = workload, watch
        self._lock, self._order = threading.Condition(), itertools.count()
        self._due: list[tuple[float, int, Batch, Task]] = []  # when, tie, what, and what is to be done with it
        self._creating, self._ended = True, False
        self._threads = [threading.Thread(target=self._work, name=f"load-{n}", daemon=True) for n in range(WORKERS)]
        self.created = self.deleted = self.refused = 0

    def start(self, rate: float) -> None:
        for each in (*self._threads, threading.Thread(target=self._pace, args=(rate,), daemon=True)):
            each.start()

    def stop_creating(self) -> None:
        self._creating = False

    @property
    def creating(self) -> bool:
        """Whether pods have yet to be created."""
        with self._lock:
            return any(task is Task.CREATE for _, _, _, task in self._due)

    def end(self) -> None:
        with self._lock:
            self._ended = True
            self._lock.notify_all()

    def _pace(self, rate: float) -> None:
        start, sent = time.monotonic(), 0
        while self._creating and not self._ended:
            time.sleep(0.05)
            while sent < (time.monotonic() - start) * rate and self._creating:
                batch = self._workload.batch()
                sent += len(batch.pods)
                self._put(0.0, batch, Task.CREATE)

    def _put(self, delay: float, batch: Batch, task: Task) -> None:
        with self._lock:
            heapq.heappush(self._due, (time.monotonic() + delay, next(self._order), batch, task))
            self._lock.notify()

    def _work(self) -> None:
        connection = self._connect()
        while (found := self._next()) is not None:
            batch, task = found
            if task is Task.CREATE:
                self._create(connection, batch)
            elif task is Task.DELETE or all(self._watch.is_bound(each["metadata"]["name"]) for each in batch.pods):
                self._delete(connection, batch)
            else:
                self._put(LOOK_AGAIN, batch, Task.DELETE_IF_BOUND)

    def _next(self) -> tuple[Batch, Task] | None:
        with self._lock:
            while not self._ended:
                now = time.monotonic()
                if self._due and self._due[0][0] <= now:
                    _, _, batch, task = heapq.heappop(self._due)
                    return batch, task
                self._lock.wait(min(self._due[0][0] - now, 0.2) if self._due else 0.2)
        return None

    def _create(self, connection: Connection, batch: Batch) -> None:
        for number, pod in enumerate(batch.pods):
            status, _ = connection.ask("POST", self._pods, pod)
            if status not in (201, 409):  # 409: it exists, the answer was lost
                self.refused += 1
                rest = Batch(batch.pods[number:], batch.lives)
                self._put(1.0, rest, Task.CREATE)
                self._put(batch.lives, Batch(batch.pods[:number], batch.lives), Task.DELETE_IF_BOUND)
                return
            self.created += 1
        self._put(batch.lives, batch, Task.DELETE_IF_BOUND)

    def _delete(self, connection: Connection, batch: Batch) -> None:
        for number, pod in enumerate(batch.pods):
            status, _ = connection.ask("DELETE", f"{self._pods}/{pod['metadata']['name']}?gracePeriodSeconds=0")
            if status not in (200, 202, 404):
                self._put(1.0, Batch(batch.pods[number:], batch.lives), Task.DELETE)
                return
            self.deleted += 1
