"""NoExecute taints: pods that do not tolerate them are deleted, at once or after their tolerationSeconds.

    a taint appears ──► tolerated for ever: nothing
                   ──► tolerated for some seconds: due ──► the taint goes: cancelled
                                                       ──► the time is over: deleted
                   ──► not tolerated: deleted

The seconds count from the first taint. A second one, or more tolerations, do not start them anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from stowplan.embedded.controllers import queries, tolerations
from stowplan.embedded.controllers.actions import Action, DeleteDocument, RecordEvent, RequeueAfter, SetStatus
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore, StoreChange

_COMPONENT = "taint-eviction-controller"
_REASON = "TaintManagerEviction"
_EFFECT = "NoExecute"
_CONDITION = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")


class Eviction(msgspec.Struct, frozen=True):
    """An eviction that is due at a time."""

    uid: str
    at: float


class TaintEvictions:
    """A key is that of a pod."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._due: dict[str, Eviction] = {}

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection == "nodes":
            return self._pods_on(change.key) if _taints(change.before) != _taints(change.now) else ()
        if change.collection != "pods":
            return ()
        before, now = change.before, change.now
        if change.key in self._due:
            return (change.key,)
        if now is None or (before is not None and _place(before) == _place(now)):
            return ()
        return (change.key,) if _taints(self._store.get("nodes", now["spec"].get("nodeName", ""))) else ()

    def _pods_on(self, node: str) -> list[str]:
        found = self._store.collection("pods").find("spec.nodeName", node) or ()
        return [queries.key_of(stored.document) for stored in found]

    def reconcile(self, key: str, now: float) -> Iterator[Action]:
        pod = self._store.get("pods", key)
        uid = pod["metadata"]["uid"] if pod is not None else ""
        if key in self._due and self._due[key].uid != uid:
            yield from self._cancel(key)
        node = self._store.get("nodes", pod["spec"].get("nodeName", "")) if pod is not None else None
        if pod is None or node is None or queries.terminating(pod):
            return  # it goes without us; what is due is cancelled when it is gone
        seconds = _tolerated_seconds(pod, node)
        if seconds is None:
            yield from self._cancel(key)
            return
        if seconds > 0:
            eviction = self._due.setdefault(key, Eviction(uid, now + seconds))
            if eviction.at > now:
                yield RequeueAfter(eviction.at - now)
                return
            del self._due[key]
        else:
            yield from self._cancel(key)
        yield from self._evict(key, pod, now)

    def _cancel(self, key: str) -> Iterator[Action]:
        if self._due.pop(key, None) is not None:
            yield _event(key, f"Cancelling deletion of Pod {key}")

    def _evict(self, key: str, pod: Document, now: float) -> Iterator[Action]:
        yield _event(key, f"Marking for deletion Pod {key}")
        status, uid = pod.get("status", {}), pod["metadata"]["uid"]
        conditions = queries.with_condition(status.get("conditions", []), "DisruptionTarget", "True", now, *_CONDITION)
        yield SetStatus("pods", key, uid, {**status, "conditions": conditions})
        yield DeleteDocument("pods", key, uid)


def _taints(node: Document | None) -> list[Document]:
    return tolerations.taints_of(node, _EFFECT)


def _place(pod: Document) -> tuple[str, list[Document]]:
    """What decides whether a pod is evicted, apart from its node."""
    return pod["spec"].get("nodeName", ""), pod["spec"].get("tolerations", [])


def _tolerated_seconds(pod: Document, node: Document) -> float | None:
    """How long a pod tolerates the taints of its node: 0 if it does not, None if for ever."""
    taints = _taints(node)
    used = tolerations.matching(pod["spec"].get("tolerations", ()), taints)
    if used is None:
        return 0.0
    limits = [each["tolerationSeconds"] for each in used if "tolerationSeconds" in each]
    return max(float(min(limits)), 0.0) if limits else None


def _event(key: str, message: str) -> RecordEvent:
    """An event about a pod by its name; it may be gone."""
    namespace, _, name = key.partition("/")
    about = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace}}
    return RecordEvent(about, _REASON, message, _COMPONENT)
