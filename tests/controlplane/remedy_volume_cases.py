"""Pods that wait because of volumes: claims, classes, zones, limits and disks. `remedy_cases.py` says how to read them.

Nobody makes volumes on the control plane, so the test does what a driver would do once a claim has its node.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.controlplane.remedy_cases import FULL, ZONE, Case, X, a_pod, label_in, owned, two

DRIVER = "csi.example.com"
STORAGE = "storage.k8s.io/v1"


def a_storage_class(name: str, provisioner: str = DRIVER, *, waits: bool = True) -> dict[str, Any]:
    return {
        "apiVersion": STORAGE,
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer" if waits else "Immediate",
    }


def a_claim(name: str, storage_class: str = "", mode: str = "ReadWriteOnce", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": [mode],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": storage_class,
            **more,
        },
    }


def a_claim_without_class(name: str) -> dict[str, Any]:
    """A claim for the default class, of which there is none."""
    found = a_claim(name)
    del found["spec"]["storageClassName"]
    return found


def a_volume(claim: str, labels: dict[str, str] | None = None, mode: str = "ReadWriteOnce", **more: Any) -> Any:
    """A volume for one claim."""
    source = {} if "csi" in more else {"hostPath": {"path": "/tmp"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"$N-{claim}", "labels": labels or {}},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": [mode],
            "storageClassName": "",
            "claimRef": {"namespace": "$N", "name": claim},
            **source,
            **more,
        },
    }


def bound(
    claim: str, labels: dict[str, str] | None = None, mode: str = "ReadWriteOnce", **more: Any
) -> tuple[Any, ...]:
    """A claim with its volume."""
    return a_volume(claim, labels, mode, **more), a_claim(claim, mode=mode, volumeName=f"$N-{claim}")


def mounts(*claims: str) -> list[dict[str, Any]]:
    return [{"name": f"v{at}", "persistentVolumeClaim": {"claimName": each}} for at, each in enumerate(claims)]


def csi(handle: str) -> dict[str, Any]:
    return {"driver": DRIVER, "volumeHandle": f"$N-{handle}"}


def limited(node: str) -> dict[str, Any]:
    driver = {"name": DRIVER, "nodeID": node, "topologyKeys": [], "allocatable": {"count": 1}}
    return {"apiVersion": STORAGE, "kind": "CSINode", "metadata": {"name": node}, "spec": {"drivers": [driver]}}


DISK = [{"name": "disk", "gcePersistentDisk": {"pdName": "shared"}}]
GONE = {"nodeSelectorTerms": [{"matchExpressions": [label_in("host", "gone")]}]}
NOBODY_MAKES = "kubernetes.io/no-provisioner"

CASES = [
    pytest.param(
        Case(
            "claim-missing",
            ("use-claim", "create-claim+create-class"),
            a_pod(volumes=mounts("dat")),
            objects=bound("data"),
        ),
        id="a claim with a typo",
    ),
    pytest.param(
        Case(
            "claim-missing",
            ("create-claim",),
            owned("Deployment", volumes=mounts("data")),
            objects=(a_storage_class("$N-fast"),),
        ),
        id="a claim that does not exist",
    ),
    pytest.param(
        Case("claim-missing", ("create-claim+create-class",), a_pod(volumes=mounts("data"))),
        id="a claim that does not exist, and no class",
    ),
    pytest.param(
        Case(
            "class-missing",
            ("create-class",),
            a_pod(volumes=mounts("data")),
            objects=(a_storage_class("$N-fast"), a_claim("data", "$N-fst")),
        ),
        id="a class that does not exist",
    ),
    pytest.param(
        Case(
            "no-volume",
            ("create-volume",),
            owned("StatefulSet", volumes=mounts("data")),
            objects=(a_storage_class("$N-static", NOBODY_MAKES), a_claim("data", "$N-static")),
        ),
        id="no free volume",
    ),
    pytest.param(
        Case(
            "no-capacity",
            ("use-claim", "create-volume"),
            a_pod(volumes=mounts("data")),
            objects=(
                {
                    "apiVersion": STORAGE,
                    "kind": "CSIDriver",
                    "metadata": {"name": "$N.example.com"},
                    "spec": {"storageCapacity": True, "attachRequired": False},
                },
                a_storage_class("$N-fast", "$N.example.com"),
                a_claim("data", "$N-fast"),
                *bound("other"),
            ),
        ),
        id="no capacity for a volume",
    ),
    pytest.param(
        Case(
            "claim-unbound",
            ("name-class",),
            a_pod(volumes=mounts("data")),
            objects=(a_storage_class("$N-fast"), a_claim_without_class("data")),
        ),
        id="a claim that names no class",
    ),
    pytest.param(
        Case(
            "claim-unbound",
            ("use-claim",),
            a_pod(volumes=mounts("data")),
            objects=(a_storage_class("$N-now", waits=False), a_claim("data", "$N-now"), *bound("other")),
        ),
        id="a claim that is not bound",
    ),
    pytest.param(
        Case(
            "claim-lost",
            ("use-claim",),
            a_pod(volumes=mounts("data")),
            objects=(*bound("data"), *bound("other")),
            then=(
                "wait pvc/data -n $N --for=jsonpath={.status.phase}=Bound",
                "delete pv $N-data --wait=false",
                'patch pv $N-data -p {"metadata":{"finalizers":null}}',
                "wait pvc/data -n $N --for=jsonpath={.status.phase}=Lost",
            ),
        ),
        id="a claim that lost its volume",
        marks=FULL,
    ),
    pytest.param(
        Case(
            "claim-terminating",
            ("use-claim",),
            a_pod(volumes=mounts("data")),
            objects=(*bound("data"), *bound("other")),
            first=(a_pod("a", X, volumes=mounts("data")),),
            then=("delete pvc data -n $N --wait=false",),
        ),
        id="a claim that is being deleted",
    ),
    pytest.param(
        Case(
            "claim-in-use",
            ("use-claim", "raise-priority", "free-room"),
            a_pod(volumes=mounts("data")),
            objects=(*bound("data", mode="ReadWriteOncePod"), *bound("other")),
            first=(a_pod("a", X, volumes=mounts("data")),),
        ),
        id="a claim for one pod at a time",
        marks=FULL,
    ),
    pytest.param(
        Case(
            "volume-affinity",
            ("use-claim", "add-nodes"),
            a_pod(volumes=mounts("data")),
            objects=(*bound("data", nodeAffinity={"required": GONE}), *bound("other")),
        ),
        id="a volume that no node reaches",
        marks=FULL,
    ),
    pytest.param(
        Case("volume-zone", ("add-nodes",), a_pod(volumes=mounts("data")), objects=bound("data", {ZONE: "zone-9"})),
        id="a volume in a zone without nodes",
        marks=FULL,
    ),
    pytest.param(
        Case(
            "volume-limit",
            ("add-nodes", "raise-priority", "free-room"),  # claims of other pods are left alone
            a_pod(volumes=mounts("c")),
            objects=(
                limited("$0"),
                limited("$1"),
                *(each for name in "abc" for each in bound(name, csi=csi(name))),
            ),
            first=tuple(a_pod(name, X, cpu="3", volumes=mounts(name)) for name in "ab"),
        ),
        id="too many volumes",
        marks=FULL,
    ),
    pytest.param(
        Case("disk", ("add-nodes", "raise-priority", "free-room"), a_pod(volumes=DISK), first=two(volumes=DISK)),
        id="a disk that other pods use",
        marks=FULL,
    ),
]
