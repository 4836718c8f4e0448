"""Claims: another claim that exists, a claim that is missing created, or its class named or created."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import islice, zip_longest

from stowplan.columns.state import ClusterState
from stowplan.diagnosis import ranking
from stowplan.diagnosis.edits import Edit, Edits, distinct
from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.remedy import CreateObject, Operation, PatchObject
from stowplan.objects.pod_parts import Volume
from stowplan.objects.pods import Pod
from stowplan.objects.shape import claim_of
from stowplan.objects.storage import PersistentVolumeClaim, StorageClass

USE_CLAIM, CREATE_CLAIM, CREATE_CLASS, CREATE_VOLUME = "use-claim", "create-claim", "create-class", "create-volume"
NAME_CLASS = "name-class"
MOST_CLAIMS = 3  # that are tried instead of one that cannot be used
MOST_CLASSES = 6  # that are tried for a claim
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_NO_PROVISIONER = "kubernetes.io/no-provisioner"
_TO_FILL_IN = "example.com/fill-in-the-provisioner"  # where no class tells which provisioner the cluster has


def alternatives(pod: Pod, state: ClusterState, awaited: Container[str] = ()) -> Iterator[Edits]:
    """Yield what could be done about claims that no node can use: for each volume that is in trouble, alone.

    The best of each volume comes first, so that a caller who takes only a few has something for every volume.

    awaited   the claims of other pods that wait, by key
    """
    by_volume = (_for_volume(pod, at, volume, state, awaited) for at, volume in enumerate(pod.spec.volumes))
    for choices in zip_longest(*by_volume):
        yield from (edits for edits in choices if edits is not None)


def together(pod: Pod, state: ClusterState, awaited: Container[str] = ()) -> Iterator[Edits]:
    """Yield what could be done about all volumes that are in trouble at once: the best of each, then what creates."""
    seen: list[Edits] = []
    for creating in (False, True):
        chosen: list[Edit] = []
        for at, volume in enumerate(pod.spec.volumes):
            for edits in _for_volume(pod, at, volume, state, awaited):
                if not any(edit.ranked_as == ranking.OTHER_DATA or (creating and _uses(edit)) for edit in edits):
                    chosen += edits
                    break
        if len(chosen) > 1 and distinct(chosen) not in seen:
            seen.append(distinct(chosen))
            yield seen[-1]


def _uses(edit: Edit) -> bool:
    return edit.code == USE_CLAIM


def _for_volume(pod: Pod, at: int, volume: Volume, state: ClusterState, awaited: Container[str]) -> Iterator[Edits]:
    key = claim_of(pod, volume)
    if not key:
        return
    claim = state.store.every(PersistentVolumeClaim).get(key)
    others: Iterator[Edits] = iter(())
    if volume.persistent_volume_claim is not None and (claim is None or not _is_of_template(pod, key)):
        others = _others(pod, at, key, state, awaited, is_missing=claim is None)
    if claim is None:
        yield from islice(others, 1)
        yield from _created(pod, volume, key, state)
    elif claim.storage_class and state.store.get(StorageClass, claim.storage_class) is None:
        yield (_class(claim.storage_class, state),)
    elif not claim.bound and not claim.spec.volume_name:
        if not claim.storage_class and claim.spec.storage_class_name is None:
            yield from _classes_for(claim, state)
        yield (_volume(claim),)
    yield from others


def _is_of_template(pod: Pod, key: str) -> bool:
    """True if a StatefulSet made the claim for just this pod, from a volumeClaimTemplate."""
    owner = pod.controller()
    return owner is not None and owner.kind == "StatefulSet" and key.endswith(f"-{pod.name}")


def _is_used(key: str, state: ClusterState) -> bool:
    """True if a pod on a node, or one that is nominated to a node, mounts a claim."""
    tally = state.uses.tallies.get(("claim", key))
    if tally is not None and len(tally.sparse()[0]):
        return True
    return any(key in each.shape.claims for others in state.nominated_pods.by_node.values() for each in others.values())


def _others(
    pod: Pod, at: int, key: str, state: ClusterState, awaited: Container[str], *, is_missing: bool
) -> Iterator[Edits]:
    """Yield claims of the namespace instead, the nearest spelling first, and last those that the pod has already.

    A claim that exists has data of its own: instead of it nobody gets the data of another pod. One that is missing is
    taken for a typo.
    """
    name = key.rpartition("/")[2]
    found = [
        each.name
        for each in state.store.every(PersistentVolumeClaim).values()
        if each.namespace == pod.namespace and each.key != key and not each.terminating
    ]
    if not is_missing:
        keys = {other: f"{pod.namespace}/{other}" for other in found}
        found = [each for each in found if keys[each] not in awaited and not _is_used(keys[each], state)]
    mounted = {claim.rpartition("/")[2] for claim in pod.shape.claims}
    found.sort(key=lambda other: (other in mounted, -SequenceMatcher(None, name, other).ratio(), other))
    path = pointer("spec", "volumes", at, "persistentVolumeClaim", "claimName")
    for other in islice(found, MOST_CLAIMS):
        far = 1.0 - SequenceMatcher(None, name, other).ratio()
        patch = PatchObject("Pod", pod.key, (Operation("replace", path, other),))
        text = f"use the claim {other} instead of {name}"
        if is_missing:
            yield (Edit(USE_CLAIM, text, (patch,), size=far),)
        else:
            also = "the pod would find other data"
            yield (Edit(USE_CLAIM, text, (patch,), size=far, ranked_as=ranking.OTHER_DATA, also=also),)


def _created(pod: Pod, volume: Volume, key: str, state: ClusterState) -> Iterator[Edits]:
    """Yield the missing claim, of a class that waits for a pod; and the class, if there is none."""
    classes = _waiting_classes(state)
    for place, name in enumerate(classes):
        yield (replace(_claim(pod, volume, key, name), size=place / MOST_CLASSES),)
    if not classes:
        yield (_claim(pod, volume, key, "standard"), _class("standard", state))


def _classes_for(claim: PersistentVolumeClaim, state: ClusterState) -> Iterator[Edits]:
    """Yield a class for a claim that names none; this one field of a claim may be set later."""
    classes = _waiting_classes(state)
    for place, name in enumerate(classes):
        yield (_named_class(claim, name, place / MOST_CLASSES),)
    if not classes:
        yield (_named_class(claim, "standard"), _class("standard", state))


def _named_class(claim: PersistentVolumeClaim, name: str, size: float = 0.0) -> Edit:
    patch = PatchObject("PersistentVolumeClaim", claim.key, (Operation("add", "/spec/storageClassName", name),))
    return Edit(NAME_CLASS, f"give the claim {claim.key} the storage class {name}", (patch,), size=size)


def _waiting_classes(state: ClusterState) -> list[str]:
    """Return classes whose claims wait for a pod: the default first, then those that make volumes, anywhere."""

    def order(each: StorageClass) -> tuple[bool, bool, bool, str]:
        by_hand = each.provisioner == _NO_PROVISIONER
        return each.annotations.get(_DEFAULT) != "true", by_hand, bool(each.allowed_topologies), each.name

    waiting = (each for each in state.store.every(StorageClass).values() if each.waits)
    return [each.name for each in sorted(waiting, key=order)[:MOST_CLASSES]]


def _claim(pod: Pod, volume: Volume, key: str, storage_class: str) -> Edit:
    name = key.rpartition("/")[2]
    metadata: dict[str, object] = {"name": name, "namespace": pod.namespace}
    if volume.ephemeral is not None:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
        metadata["ownerReferences"] = [owner]
    document = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    return Edit(CREATE_CLAIM, f"create the claim {key}, of class {storage_class}", (CreateObject(document),))


def _class(name: str, state: ClusterState) -> Edit:
    known = state.store.every(StorageClass).values()
    provisioner = next((each.provisioner for each in known if each.provisioner), "")
    document = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner or _TO_FILL_IN,
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    text = f"create the storage class {name}"
    if provisioner:
        return Edit(CREATE_CLASS, f"{text}, with the provisioner {provisioner}", (CreateObject(document),))
    text += f"; put the name of your provisioner in place of {_TO_FILL_IN}: no class here tells it"
    return Edit(CREATE_CLASS, text, (CreateObject(document),), ranked_as=ranking.TO_FILL_IN)


def _volume(claim: PersistentVolumeClaim) -> Edit:
    """Return the edit that creates a volume for a claim; where its data is, is for the user to say."""
    size = claim.spec.resources.requests.get("storage", "1Gi")
    labels = {} if claim.spec.selector is None else dict(claim.spec.selector.match_labels)
    document = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"for-{claim.namespace}-{claim.name}", "labels": labels},
        "spec": {
            "capacity": {"storage": str(size)},
            "accessModes": list(claim.spec.access_modes) or ["ReadWriteOnce"],
            "storageClassName": claim.storage_class,
            "volumeMode": claim.spec.volume_mode or "Filesystem",
            "hostPath": {"path": f"/mnt/{claim.name}"},
        },
        "status": {"phase": "Available"},
    }
    text = f"create a volume of {size} and class {claim.storage_class} for the claim {claim.key}"
    return Edit(CREATE_VOLUME, text, (CreateObject(document),))
