"""Simulated kubelets: pods that are bound to a node run, and end.

    Pending, bound ──► Running ── deletion requested ──► terminating ──► deleted
                          └── run time over ──► Succeeded, or Failed

A pod runs until it is deleted, unless its annotation `stowplan.io/run-seconds` says how long; the pod of a Job without
it ends after `job_seconds`. A pod whose annotation `stowplan.io/exit-code` is not 0 fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.actions import Action, DeleteDocument, RequeueAfter, SetStatus
from stowplan.embedded.documents import Document
from stowplan.embedded.numbers import natural
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.embedded.timestamps import stamp

RUN_SECONDS, EXIT_CODE = "stowplan.io/run-seconds", "stowplan.io/exit-code"
_ORPHANED = 40.0  # seconds until a pod of a deleted node is deleted
_STAGES = ("bound", "running", "terminating", "orphaned")
_HIGHEST_CODE = (1 << 31) - 1  # the field has 32 bits
_ADDRESSES = 1 << 22  # 10.0.0.0 to 10.63.255.255, then from the start again


class SimulatedKubelets:
    """`start_seconds` and `stop_seconds` are the time that a pod takes to start and to terminate."""

    def __init__(
        self, store: DocumentStore, *, start_seconds: float = 0.0, stop_seconds: float = 0.0, job_seconds: float = 1.0
    ) -> None:
        self._store = store
        self._start, self._stop, self._job = start_seconds, stop_seconds, job_seconds
        self._since: dict[str, float] = {}  # when a stage of a pod began, by stage and uid
        self._last_address = 0

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection == "pods":
            if change.now is None:
                for stage in _STAGES:
                    self._since.pop(f"{stage} {change.document['metadata']['uid']}", None)
            elif change.now["spec"].get("nodeName"):
                return (change.key,)
        elif change.collection == "nodes" and (change.before is None or change.now is None):
            bound = self._store.collection("pods").find("spec.nodeName", change.key) or ()
            return [queries.key_of(stored.document) for stored in bound]
        return ()

    def reconcile(self, key: str, now: float) -> Iterator[Action]:
        pod = self._store.get("pods", key)
        if pod is None or not pod["spec"].get("nodeName"):
            return
        if queries.terminating(pod):
            grace = pod["metadata"].get("deletionGracePeriodSeconds", 0)
            wait = self._wait(pod, "terminating", min(self._stop, grace), now)
            yield RequeueAfter(wait) if wait > 0 else DeleteDocument("pods", key, pod["metadata"]["uid"], grace=0)
            return
        node = self._store.get("nodes", pod["spec"]["nodeName"])
        if node is None:
            wait = self._wait(pod, "orphaned", _ORPHANED, now)
            yield RequeueAfter(wait) if wait > 0 else DeleteDocument("pods", key, pod["metadata"]["uid"], grace=0)
            return
        self._since.pop(f"orphaned {pod['metadata']['uid']}", None)
        if queries.phase(pod) in ("Pending", ""):
            wait = self._wait(pod, "bound", self._start, now)
            yield RequeueAfter(wait) if wait > 0 else self._set(pod, self._running(pod, node, now))
        elif queries.phase(pod) == "Running":
            yield from self._finish(pod, now)

    def _finish(self, pod: Document, now: float) -> Iterator[Action]:
        duration = self._run_seconds(pod)
        if duration is None:
            return
        wait = self._wait(pod, "running", duration, now)
        if wait > 0:
            yield RequeueAfter(wait)
        else:
            yield self._set(pod, _finished_status(pod, now))

    def _wait(self, pod: Document, stage: str, duration: float, now: float) -> float:
        """Seconds left of a stage. A stage begins with the first call."""
        if duration <= 0:
            return 0.0
        since = self._since.setdefault(f"{stage} {pod['metadata']['uid']}", now)
        left = since + duration - now
        if left <= 0:
            del self._since[f"{stage} {pod['metadata']['uid']}"]
        return left

    def _run_seconds(self, pod: Document) -> float | None:
        text = pod["metadata"].get("annotations", {}).get(RUN_SECONDS)
        if text is not None:
            try:
                return max(float(text), 0.0)
            except ValueError:
                return None
        owner = queries.controller_of(pod)
        return self._job if owner is not None and owner["kind"] == "Job" else None

    def _set(self, pod: Document, status: Document) -> Action:
        return SetStatus("pods", queries.key_of(pod), pod["metadata"]["uid"], status)

    def _running(self, pod: Document, node: Document, now: float) -> Document:
        status = dict(pod.get("status", {}))
        host = _address_of(node)
        if host:
            status |= {"hostIP": host, "hostIPs": [{"ip": host}]}
        address = host if pod["spec"].get("hostNetwork") else self._address()
        if address:
            status |= {"podIP": address, "podIPs": [{"ip": address}]}
        scheduled = [each for each in status.get("conditions", ()) if each["type"] == "PodScheduled"]
        conditions = [each for each in status.get("conditions", ()) if each["type"] != "PodScheduled"]
        gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates", ())]
        for kind in ("Initialized", "ContainersReady", "Ready", *gates):
            conditions = queries.with_condition(conditions, kind, "True", now)
        conditions += scheduled  # kubelets write this condition last
        running = {"running": {"startedAt": stamp(now)}}
        statuses = [_container(each, running, ready=True) for each in pod["spec"]["containers"]]
        status |= {"phase": "Running", "startTime": stamp(now), "conditions": conditions, "containerStatuses": statuses}
        if first := pod["spec"].get("initContainers"):
            done = {
                "terminated": {"exitCode": 0, "reason": "Completed", "startedAt": stamp(now), "finishedAt": stamp(now)}
            }
            status["initContainerStatuses"] = [
                _container(each, running if each.get("restartPolicy") == "Always" else done, ready=True)
                for each in first
            ]
        return status

    def _address(self) -> str:
        self._last_address = self._last_address % _ADDRESSES + 1
        number = self._last_address
        return f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"


def _container(container: Document, state: Document, *, ready: bool) -> Document:
    return {
        "name": container["name"], "image": container["image"], "imageID": "", "ready": ready, "started": ready,
        "restartCount": 0, "state": state, "lastState": {},
    }  # fmt: skip


def _finished_status(pod: Document, now: float) -> Document:
    text = pod["metadata"].get("annotations", {}).get(EXIT_CODE, "0")
    code = min(natural(text, 1), _HIGHEST_CODE)
    status = dict(pod["status"])
    begun = status.get("startTime", stamp(now))
    state = {
        "exitCode": code, "reason": "Error" if code else "Completed", "startedAt": begun, "finishedAt": stamp(now),
    }  # fmt: skip
    conditions = status.get("conditions", [])
    for kind in ("ContainersReady", "Ready"):
        reason = "PodFailed" if code else "PodCompleted"
        conditions = queries.with_condition(conditions, kind, "False", now, reason)
    statuses = [_container(each, {"terminated": state}, ready=False) for each in pod["spec"]["containers"]]
    phase = "Failed" if code else "Succeeded"
    return {**status, "phase": phase, "conditions": conditions, "containerStatuses": statuses}


def _address_of(node: Document) -> str:
    found = node.get("status", {}).get("addresses", ())
    return next((each["address"] for each in found if each.get("type") == "InternalIP"), "")
