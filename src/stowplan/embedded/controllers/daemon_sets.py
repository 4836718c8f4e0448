"""DaemonSets: one pod for each eligible node. Node affinity names the node; the scheduler binds the pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from stowplan.embedded.controllers import queries
from stowplan.embedded.controllers.actions import Action, CreateDocument, DeleteDocument, RecordEvent, SetStatus
from stowplan.embedded.controllers.revisions import revision
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.objects import selectors

DAEMON_SETS = "daemonsets.apps"
_REVISION = "controller-revision-hash"
_COMPONENT = "daemonset-controller"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"), ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"), ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"), ("node.kubernetes.io/unschedulable", "NoSchedule"),
)  # fmt: skip


class DaemonSetController:
    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection == DAEMON_SETS:
            return (change.key,)
        if change.collection == "nodes":
            return list(self._store.collection(DAEMON_SETS).items)
        key = queries.owner_key(change.document, "DaemonSet") if change.collection == "pods" else None
        return (key,) if key else ()

    def reconcile(self, key: str, _now: float) -> Iterator[Action]:
        owner = self._store.get(DAEMON_SETS, key)
        if owner is None:
            return
        nodes = [stored.document for stored in self._store.all("nodes") if _should_run_on(owner, stored.document)]
        if not queries.terminating(owner):
            yield from self._sync_pods(owner, {node["metadata"]["name"] for node in nodes})
        yield from self._update_status(key, len(nodes))

    def _sync_pods(self, owner: Document, nodes: set[str]) -> Iterator[Action]:
        latest = revision(owner)
        rolling = owner["spec"]["updateStrategy"]["type"] == "RollingUpdate"
        pods = [pod for pod in queries.owned(self._store, owner, "pods") if not queries.terminating(pod)]
        present: set[str] = set()
        for pod in pods:
            node = _node_of(pod)
            outdated = rolling and pod["metadata"].get("labels", {}).get(_REVISION) != latest
            if node not in nodes or node in present or outdated or not queries.active(pod):
                event = RecordEvent(owner, "SuccessfulDelete", "Deleted pod: {name}", _COMPONENT)
                yield DeleteDocument("pods", queries.key_of(pod), pod["metadata"]["uid"], event=event)
                if outdated:
                    return  # one at a time
            else:
                present.add(node)
        terminating = {_node_of(pod) for pod in queries.owned(self._store, owner, "pods") if queries.terminating(pod)}
        for node in sorted(nodes - present - terminating):
            event = RecordEvent(owner, "SuccessfulCreate", "Created pod: {name}", _COMPONENT)
            yield CreateDocument("pods", owner["metadata"]["namespace"], _pod(owner, node, latest), event)

    def _update_status(self, key: str, desired: int) -> Iterator[Action]:
        owner = self._store.get(DAEMON_SETS, key)
        if owner is None:
            return
        pods = [pod for pod in queries.owned(self._store, owner, "pods") if queries.active(pod)]
        ready = sum(queries.ready(pod) for pod in pods)
        updated = sum(pod["metadata"].get("labels", {}).get(_REVISION) == revision(owner) for pod in pods)
        counts = {"updatedNumberScheduled": updated, "numberAvailable": ready, "numberUnavailable": desired - ready}
        status = {name: count for name, count in counts.items() if count > 0}
        status |= {
            "currentNumberScheduled": len(pods), "desiredNumberScheduled": desired, "numberMisscheduled": 0,
            "numberReady": ready, "observedGeneration": owner["metadata"]["generation"],
        }  # fmt: skip
        if status != owner.get("status"):
            yield SetStatus(DAEMON_SETS, key, owner["metadata"]["uid"], status)


def _node_of(pod: Document) -> str:
    """The node of a pod, or the node that its affinity names."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", ()):
        for field in term.get("matchFields", ()):
            return str(field["values"][0])
    return ""


def _should_run_on(owner: Document, node: Document) -> bool:
    spec = owner["spec"]["template"]["spec"]
    labels, name = node["metadata"].get("labels", {}), node["metadata"]["name"]
    if not spec.get("nodeSelector", {}).items() <= labels.items():
        return False
    required = spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is not None:
        terms = selectors.compile_node_selector(msgspec.convert(required, selectors.NodeSelector))
        if not any(term.matches(labels, name) for term in terms):
            return False
    tolerated = [*spec.get("tolerations", ()), *_tolerations()]
    return all(_tolerates(tolerated, taint) for taint in node["spec"].get("taints", ()))


def _tolerates(tolerations: list[Document], taint: Document) -> bool:
    if taint["effect"] == "PreferNoSchedule":
        return True
    for each in tolerations:
        if (
            each.get("key", taint["key"]) not in (taint["key"], "")
            or each.get("effect", taint["effect"]) != taint["effect"]
        ):
            continue
        if each.get("operator") == "Exists" or each.get("value", "") == taint.get("value", ""):
            return True
    return False


def _tolerations() -> list[Document]:
    return [{"key": key, "operator": "Exists", "effect": effect} for key, effect in _TOLERATED]


def _pod(owner: Document, node: str, latest: str) -> Document:
    pod = queries.pod_from(owner["spec"]["template"], owner)
    pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), _REVISION: latest}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    affinity = {**pod["spec"].get("affinity", {}), "nodeAffinity": required}
    tolerations = [*pod["spec"].get("tolerations", ()), *_tolerations()]
    pod["spec"] = {**pod["spec"], "affinity": affinity, "tolerations": tolerations}
    return pod
