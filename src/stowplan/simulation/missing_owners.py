"""Controllers of pods that a dump leaves out: `kubectl get nodes,pods` has pods whose ReplicaSet nobody wrote down.

Without its owner nobody would make a pod again that is evicted. So the ReplicaSet, ReplicationController or StatefulSet
is made from its pods: as many replicas as there are, with the template that they have in common.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Document = dict[str, Any]
Pairs = Sequence[tuple[str, Document]]
Name = tuple[str, str, str]  # kind, namespace, name

VERSIONS = {"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "ReplicationController": "v1"}
HASH, REVISION = "pod-template-hash", "deployment.kubernetes.io/revision"
OF_EACH_POD = (
    HASH, "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "controller-revision-hash",
)  # fmt: skip
_SET_BY_SERVER = ("nodeName", "priority", "preemptionPolicy", "hostname")
_ORDINAL = re.compile(r"-(\d+)$")
_CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}  # the claims exist already


def missing_owners(pairs: Pairs) -> Iterator[tuple[str, Document]]:
    """Yield the owners that pods name and nobody wrote down, each with the file of its first pod."""
    known = {_name(each) for _, each in pairs}
    pods: defaultdict[Name, list[tuple[str, Document]]] = defaultdict(list)
    for file, document in pairs:
        owner = _controller(document) if document.get("kind") == "Pod" else None
        if owner is not None and _is_alive(document):
            name = str(owner.get("kind")), _namespace(document), str(owner.get("name"))
            if name[0] in VERSIONS and name not in known:
                pods[name].append((file, document))
    deployments = {
        (each[1], each[2]): document for _, document in pairs if (each := _name(document))[0] == "Deployment"
    }
    for name, found in pods.items():
        made = _made(name, [document for _, document in found], deployments)
        if made is not None:
            yield found[0][0], made


def _made(name: Name, pods: list[Document], deployments: Mapping[tuple[str, str], Document]) -> Document | None:
    """Return the owner; None if its pods have no label in common, by which it could find them."""
    kind, namespace, own = name
    labels = _labels(pods)
    wanted = {key: value for key, value in labels.items() if key not in OF_EACH_POD or key == HASH}
    if not wanted:
        return None
    metadata: Document = {"name": own, "namespace": namespace, "labels": wanted}
    spec, claims = _template(pods[0])
    template: Document = {"metadata": {"labels": wanted}, "spec": spec}
    deployment = deployments.get((namespace, own.removesuffix(f"-{wanted.get(HASH)}")))
    if kind == "ReplicaSet" and deployment is not None and HASH in wanted:
        above = {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment["metadata"]["name"], "uid": ""}
        metadata |= {"ownerReferences": [{**above, "controller": True}], "annotations": {REVISION: "1"}}
        inner = (deployment.get("spec") or {}).get("template") or {}
        given = (inner.get("metadata") or {}).get("labels") or {}
        template = {**inner, "metadata": {**(inner.get("metadata") or {}), "labels": {**given, HASH: wanted[HASH]}}}
    selector = wanted if kind == "ReplicationController" else {"matchLabels": wanted}
    found: Document = {"replicas": len(pods), "selector": selector, "template": template}
    if kind == "StatefulSet":
        found |= _ordinals(pods) | {"podManagementPolicy": "Parallel", "volumeClaimTemplates": claims}
    return {"apiVersion": VERSIONS[kind], "kind": kind, "metadata": metadata, "spec": found}


def _labels(pods: Iterable[Document]) -> dict[str, str]:
    """Return the labels that all pods have, with the same value."""
    first, *others = (dict(_metadata(pod).get("labels") or {}) for pod in pods)
    return {key: value for key, value in first.items() if all(each.get(key) == value for each in others)}


def _template(pod: Document) -> tuple[Document, list[Document]]:
    """Return the spec of a template for pods like this one, and templates of its own claims."""
    spec = {key: value for key, value in pod["spec"].items() if key not in _SET_BY_SERVER}
    volumes, claims, ending = [], [], f"-{_metadata(pod).get('name')}"
    for volume in spec.pop("volumes", None) or ():
        claim = str((volume.get("persistentVolumeClaim") or {}).get("claimName", ""))
        if claim.endswith(ending):
            claims.append({"metadata": {"name": claim.removesuffix(ending)}, "spec": _CLAIM})
        else:
            volumes.append(volume)
    return ({**spec, "volumes": volumes} if volumes else spec), claims


def _ordinals(pods: Iterable[Document]) -> Document:
    """Return the replicas of a StatefulSet with these pods, and where their numbers start."""
    found = [int(each[1]) for pod in pods if (each := _ORDINAL.search(str(_metadata(pod).get("name"))))]
    low, high = min(found, default=0), max(found, default=0)
    return {"replicas": high - low + 1, "ordinals": {"start": low}}


def _is_alive(pod: Document) -> bool:
    status = pod.get("status")
    ended = isinstance(status, dict) and status.get("phase") in ("Succeeded", "Failed")
    return not ended and isinstance(pod.get("spec"), dict)


def _controller(document: Document) -> Document | None:
    owners = _metadata(document).get("ownerReferences")
    found = owners if isinstance(owners, list) else ()
    return next((each for each in found if isinstance(each, dict) and each.get("controller")), None)


def _name(document: Document) -> Name:
    return str(document.get("kind")), _namespace(document), str(_metadata(document).get("name"))


def _namespace(document: Document) -> str:
    return str(_metadata(document).get("namespace") or "default")


def _metadata(document: Document) -> Document:
    found = document.get("metadata")
    return found if isinstance(found, dict) else {}
