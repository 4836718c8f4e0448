"""Pods: the ready containers, and the status in one word."""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.embedded.documents import Document
from stowplan.embedded.tables.columns import Row, TablePrinter, columns
from stowplan.embedded.timestamps import age, seconds, span


def _cells(pod: Document, now: float) -> Row:
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
    statuses = status.get("containerStatuses", ())
    ready = sum(bool(each.get("ready")) for each in statuses)
    sidecars = [each for each in spec.get("initContainers", ()) if each.get("restartPolicy") == "Always"]
    total = len(spec.get("containers", ())) + len(sidecars)
    return [
        metadata["name"], f"{ready}/{total}", _status(pod), _restarts(statuses, now),
        age(metadata.get("creationTimestamp"), now), _addresses(status), spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>", _gates(pod),
    ]  # fmt: skip


def _status(pod: Document) -> str:
    status = pod.get("status", {})
    reason = status.get("reason") or status.get("phase", "")
    if any(each["type"] == "PodScheduled" and each.get("reason") == "SchedulingGated" for each in _conditions(pod)):
        reason = "SchedulingGated"
    first = _initializing(pod)
    if first is not None:
        reason = first
    else:
        for each in reversed(status.get("containerStatuses", ())):
            reason = _state_reason(each) or reason
        if reason == "Completed" and any(_runs(each) for each in status.get("containerStatuses", ())):
            reason = "Running" if _has(pod, "Ready") else "NotReady"
    if "deletionTimestamp" in pod["metadata"]:
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(reason)


def _conditions(pod: Document) -> list[Document]:
    found: list[Document] = pod.get("status", {}).get("conditions", [])
    return found


def _has(pod: Document, kind: str) -> bool:
    return any(each["type"] == kind and each.get("status") == "True" for each in _conditions(pod))


def _runs(status: Document) -> bool:
    return bool(status.get("ready")) and "running" in status.get("state", {})


def _state_reason(status: Document) -> str:
    """The reason why a container does not run; "" if it runs."""
    state = status.get("state", {})
    if reason := state.get("waiting", {}).get("reason"):
        return str(reason)
    ended = state.get("terminated")
    if ended is None:
        return ""
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _initializing(pod: Document) -> str | None:
    """The status of the first init container that has not finished; None if all have."""
    specs = {each.get("name"): each for each in pod["spec"].get("initContainers", ())}
    for number, each in enumerate(pod.get("status", {}).get("initContainerStatuses", ())):
        ended = each.get("state", {}).get("terminated")
        if ended is not None and ended.get("exitCode") == 0:
            continue
        if specs.get(each.get("name"), {}).get("restartPolicy") == "Always" and each.get("started"):
            continue
        reason = _state_reason(each)
        return f"Init:{reason}" if reason and reason != "PodInitializing" else f"Init:{number}/{len(specs)}"
    return None


def _restarts(statuses: list[Document], now: float) -> str:
    count = sum(each.get("restartCount", 0) for each in statuses)
    ends = [each.get("lastState", {}).get("terminated", {}).get("finishedAt") for each in statuses]
    last = max((seconds(end) for end in ends if end), default=0.0)
    return f"{count} ({span(now - last)} ago)" if count and last else str(count)


def _addresses(status: Document) -> str:
    return ",".join(each.get("ip", "") for each in status.get("podIPs", ())) or status.get("podIP") or "<none>"


def _gates(pod: Document) -> str:
    gates = [each.get("conditionType", "") for each in pod["spec"].get("readinessGates", ())]
    return f"{sum(_has(pod, gate) for gate in gates)}/{len(gates)}" if gates else "<none>"


def _printers() -> Iterator[tuple[str, TablePrinter]]:
    wide = ("IP", "Node", "Nominated Node", "Readiness Gates")
    yield "pods", TablePrinter(columns("Ready", "Status", "Restarts", "Age", wide=wide), _cells)


PRINTERS = dict(_printers())
