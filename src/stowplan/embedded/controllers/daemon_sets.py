"""DaemonSets: one pod for each eligible node. Node affinity names the node; the scheduler binds the pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from stowplan.embedded.api.lifecycle import template_generation
from stowplan.embedded.controllers import queries, revisions, tolerations
from stowplan.embedded.controllers.actions import Action, CreateDocument, DeleteDocument, RecordEvent, SetStatus
from stowplan.embedded.controllers.revisions import REVISION_LABEL
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.objects import selectors

DAEMON_SETS = "daemonsets.apps"
_TEMPLATE = "pod-template-generation"
_COMPONENT = "daemonset-controller"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"), ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"), ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"), ("node.kubernetes.io/unschedulable", "NoSchedule"),
)  # fmt: skip


class DaemonNodes(msgspec.Struct, frozen=True):
    """`wanted`: the nodes that get a pod. `allowed`: those where a pod that is there may stay."""

    wanted: set[str]
    allowed: set[str]


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
        nodes = self._nodes(owner)
        if not queries.terminating(owner):
            yield from revisions.recorded(self._store, owner)
            yield from self._sync_pods(owner, nodes)
        yield from self._update_status(key, nodes.wanted)

    def refused(self, key: str, _error: str, _now: float) -> Iterator[Action]:
        """Count the pods that were created before one was refused."""
        owner = self._store.get(DAEMON_SETS, key)
        if owner is not None:
            yield from self._update_status(key, self._nodes(owner).wanted)

    def _nodes(self, owner: Document) -> DaemonNodes:
        fitting = [stored.document for stored in self._store.all("nodes") if _fits(owner, stored.document)]
        names = [
            {node["metadata"]["name"] for node in fitting if _tolerates(owner, node, *effects)}
            for effects in (("NoSchedule", "NoExecute"), ("NoExecute",))
        ]
        return DaemonNodes(*names)

    def _sync_pods(self, owner: Document, nodes: DaemonNodes) -> Iterator[Action]:
        latest = _hash(owner)
        rolling = owner["spec"]["updateStrategy"]["type"] == "RollingUpdate"
        pods = [pod for pod in queries.owned(self._store, owner, "pods") if not queries.terminating(pod)]
        present: set[str] = set()
        for pod in pods:
            node = _node_of(pod)
            outdated = rolling and pod["metadata"].get("labels", {}).get(REVISION_LABEL) != latest
            if node not in nodes.allowed or node in present or outdated or not queries.active(pod):
                event = RecordEvent(owner, "SuccessfulDelete", "Deleted pod: {name}", _COMPONENT)
                yield DeleteDocument("pods", queries.key_of(pod), pod["metadata"]["uid"], event=event)
                if outdated:
                    return  # one at a time
            else:
                present.add(node)
        terminating = {_node_of(pod) for pod in queries.owned(self._store, owner, "pods") if queries.terminating(pod)}
        for node in sorted(nodes.wanted - present - terminating):
            event = RecordEvent(owner, "SuccessfulCreate", "Created pod: {name}", _COMPONENT)
            yield CreateDocument("pods", owner["metadata"]["namespace"], _pod(owner, node, latest), event)

    def _update_status(self, key: str, wanted: set[str]) -> Iterator[Action]:
        owner = self._store.get(DAEMON_SETS, key)
        if owner is None:
            return
        everywhere = [pod for pod in queries.owned(self._store, owner, "pods") if queries.active(pod)]
        pods = [pod for pod in everywhere if _node_of(pod) in wanted]
        desired, elsewhere = len(wanted), {_node_of(pod) for pod in everywhere} - wanted
        ready = sum(queries.ready(pod) for pod in pods)
        updated = sum(pod["metadata"].get("labels", {}).get(REVISION_LABEL) == _hash(owner) for pod in pods)
        counts = {"updatedNumberScheduled": updated, "numberAvailable": ready, "numberUnavailable": desired - ready}
        status = {name: count for name, count in counts.items() if count > 0}
        status |= {
            "currentNumberScheduled": len(pods), "desiredNumberScheduled": desired,
            "numberMisscheduled": len(elsewhere), "numberReady": ready,
            "observedGeneration": owner["metadata"]["generation"],
        }  # fmt: skip
        if status != owner.get("status"):
            yield SetStatus(DAEMON_SETS, key, owner["metadata"]["uid"], status)


def _hash(owner: Document) -> str:
    return revisions.revision(owner).rpartition("-")[2]


def _node_of(pod: Document) -> str:
    """The node of a pod, or the node that its affinity names."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    affinity = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {}).get("nodeSelectorTerms", ()):
        for field in term.get("matchFields", ()):
            return str(field["values"][0])
    return ""


def _fits(owner: Document, node: Document) -> bool:
    """True if the labels and the name of a node are what the pods ask for."""
    spec = owner["spec"]["template"]["spec"]
    labels, name = node["metadata"].get("labels", {}), node["metadata"]["name"]
    if not spec.get("nodeSelector", {}).items() <= labels.items():
        return False
    required = spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    terms = selectors.compile_node_selector(msgspec.convert(required, selectors.NodeSelector))
    return any(term.matches(labels, name) for term in terms)


def _tolerates(owner: Document, node: Document, *effects: str) -> bool:
    spec = owner["spec"]["template"]["spec"]
    known = [*spec.get("tolerations", ()), *_tolerations(spec)]
    return tolerations.matching(known, tolerations.taints_of(node, *effects)) is not None


def _tolerations(spec: Document) -> list[Document]:
    """What every pod of a DaemonSet tolerates."""
    more = [("node.kubernetes.io/network-unavailable", "NoSchedule")] if spec.get("hostNetwork") else []
    return [{"key": key, "operator": "Exists", "effect": effect} for key, effect in (*_TOLERATED, *more)]


def _pod(owner: Document, node: str, latest: str) -> Document:
    pod = queries.pod_from(owner["spec"]["template"], owner)
    labels = {REVISION_LABEL: latest, _TEMPLATE: str(template_generation(owner))}
    pod["metadata"]["labels"] = {**pod["metadata"].get("labels", {}), **labels}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    affinity = {**pod["spec"].get("affinity", {}), "nodeAffinity": required}
    tolerated = [*pod["spec"].get("tolerations", ()), *_tolerations(pod["spec"])]
    pod["spec"] = {**pod["spec"], "affinity": affinity, "tolerations": tolerated}
    return pod
