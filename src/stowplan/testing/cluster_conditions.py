"""What a test waits for in an embedded cluster: from the documents of the API, whether it is so, and what there is.

Each function answers with a `Seen`. A failing test shows its text, so the text says what is there instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

Document = Mapping[str, Any]
MOST_NAMED = 5  # pods that a text names


class Seen(NamedTuple):
    """`met`: it is so. `text`: what there is. `final`: it is not so, and waiting does not help."""

    met: bool
    text: str
    final: bool = False


def scheduled(pod: Document | None) -> Seen:
    """The pod has a node, and the text is its name."""
    if pod is None:
        return Seen(False, "there is no such pod")
    return Seen(True, _node(pod)) if _node(pod) else Seen(False, f"it is {state(pod)}")


def pending(pod: Document | None, reason: str) -> Seen:
    """The scheduler has said why the pod has no node, and the reason is part of it; the text is what it said."""
    if pod is None:
        return Seen(False, "there is no such pod")
    if _node(pod):
        return Seen(False, f"it is on {_node(pod)}", final=True)
    said = _said(pod)
    return Seen(True, said) if said and reason in said else Seen(False, f"it is {state(pod)}")


def running(pods: Sequence[Document], count: int | None) -> Seen:
    """All pods are Running, and there are as many as wanted: at least one if `count` is None."""
    there = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    others = [pod for pod in there if _phase(pod) != "Running"]
    if not others and (len(there) == count or (there and count is None)):
        return Seen(True, f"{len(there)} are Running")
    if not there:
        return Seen(False, "there is no such pod")
    named = [f"{pod['metadata']['name']} is {state(pod)}" for pod in others[:MOST_NAMED]]
    more = [f"and {len(others) - MOST_NAMED} more"] if len(others) > MOST_NAMED else []
    number = [] if count in (None, len(there)) else [f"there are {len(there)}, not {count}"]
    return Seen(False, "; ".join([*number, f"{len(there) - len(others)} of {len(there)} are Running", *named, *more]))


def available(deployment: Document | None) -> Seen:
    """Every replica is of the current template and available, as `kubectl rollout status` waits for it."""
    if deployment is None:
        return Seen(False, "there is no such Deployment")
    status, wanted = deployment.get("status") or {}, deployment["spec"].get("replicas", 1)
    observed = status.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    found = min(status.get("updatedReplicas", 0), status.get("availableReplicas", 0)) if observed else 0
    failures = [
        str(each.get("message", ""))
        for each in status.get("conditions") or ()
        if each.get("type") == "ReplicaFailure" and each.get("status") == "True"
    ]
    text = f"{found} of {wanted} replicas are updated and available"
    return Seen(found >= wanted and status.get("replicas", 0) <= wanted, "; ".join([text, *failures]))


def state(pod: Document) -> str:
    """Return a pod's phase, and where it is, or why it has no node."""
    where = f"on {_node(pod)}" if _node(pod) else "without a node"
    return f"{_phase(pod)} {where}" + (f", {_said(pod)}" if _said(pod) else "")


def without_node(pods: Sequence[Document]) -> list[str]:
    """Return the names of the pods that have no node."""
    return [pod["metadata"]["name"] for pod in pods if not _node(pod)]


def _node(pod: Document) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _phase(pod: Document) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def _said(pod: Document) -> str:
    """Return the reason and the message of the condition PodScheduled, while it is False."""
    for each in (pod.get("status") or {}).get("conditions") or ():
        if each.get("type") == "PodScheduled" and each.get("status") == "False":
            return f"{each.get('reason', '')}: {each.get('message', '')}"
    return ""
