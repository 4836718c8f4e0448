"""Claims: another claim that exists, a claim that is missing created, or its class."""

from __future__ import annotations

from collections.abc import Container, Iterator
from difflib import SequenceMatcher
from itertools import islice

from stowplan.columns.state import ClusterState
from stowplan.diagnosis import ranking
from stowplan.diagnosis.edits import Edit, Edits
from stowplan.diagnosis.patches import pointer
from stowplan.diagnosis.remedy import CreateObject, Operation, PatchObject
from stowplan.objects.pod_parts import Volume
from stowplan.objects.pods import Pod
from stowplan.objects.shape import claim_of
from stowplan.objects.storage import PersistentVolumeClaim, StorageClass

USE_CLAIM, CREATE_CLAIM, CREATE_CLASS, CREATE_VOLUME = "use-claim", "create-claim", "create-class", "create-volume"
MOST_CLAIMS = 3  # that are tried instead of one that cannot be used
_DEFAULT = "storageclass.kubernetes.io/is-default-class"
_TO_FILL_IN = "example.com/fill-in-the-provisioner"  # where no class tells which provisioner the cluster has


def alternatives(pod: Pod, state: ClusterState, awaited: Container[str] = ()) -> Iterator[Edits]:
    """Yield what could be done about claims that no node can use: for each volume that is in trouble, alone.

    awaited   the claims of other pods that wait, by key
    """
    claims = state.store.every(PersistentVolumeClaim)
    for at, volume in enumerate(pod.spec.volumes):
        key = claim_of(pod, volume)
        if not key:
            continue
        claim = claims.get(key)
        if volume.persistent_volume_claim is not None and (claim is None or not _is_of_template(pod, key)):
            yield from _others(pod, at, key, state, awaited, is_missing=claim is None)
        if claim is None:
            yield from _created(pod, volume, key, state)
        elif claim.storage_class and state.store.get(StorageClass, claim.storage_class) is None:
            yield (_class(claim.storage_class, state),)
        elif not claim.bound and not claim.spec.volume_name:
            yield (_volume(claim),)


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
    """Yield claims of the namespace instead, the nearest spelling first. A claim that exists has data of its own.

    Instead of a claim that exists nobody gets the data of another pod. One that is missing is taken for a typo.
    """
    name = key.rpartition("/")[2]
    found = [
        each.name
        for each in state.store.every(PersistentVolumeClaim).values()
        if each.namespace == pod.namespace and each.name != name and not each.terminating
    ]
    if not is_missing:
        keys = {other: f"{pod.namespace}/{other}" for other in found}
        found = [each for each in found if keys[each] not in awaited and not _is_used(keys[each], state)]
    found.sort(key=lambda other: (-SequenceMatcher(None, name, other).ratio(), other))
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
    classes = [each for each in state.store.every(StorageClass).values() if each.waits]
    classes.sort(key=lambda each: (each.annotations.get(_DEFAULT) != "true", each.name))
    for each in classes[:2]:
        yield (_claim(pod, volume, key, each.name),)
    if not classes:
        yield (_claim(pod, volume, key, "standard"), _class("standard", state))


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
