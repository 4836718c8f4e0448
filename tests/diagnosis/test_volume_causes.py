"""What plugins name of volumes: claims, volumes, classes, disks, drivers."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.plugins.nodes.leaf_nodes.volume_binding import LeafNodeVolumeBinding
from stowplan.testing.builders import a_profile_of
from tests.diagnosis.cause_lines import node_causes, whole_pod
from tests.plugins.nodes.default.volumes import (
    EPHEMERAL,
    ON_A,
    ZONE,
    a_pod,
    attachment,
    claim,
    cluster_of,
    csi,
    limits,
    mount,
    named,
    volume,
    wait,
    zoned,
)
from tests.plugins.nodes.leaf_nodes import test_volume_binding as leaves


def node(name: str) -> Any:
    return named("Node", name, {"labels": {"host": name}}, status={"allocatable": {"cpu": "4", "pods": "9"}})


NODES = [node("a"), node("b")]
CAPACITY = named("CSIDriver", "csi.example.com", spec={"storageCapacity": True})
DISK = {"awsElasticBlockStore": {"volumeID": "vol-1"}}


@pytest.mark.parametrize(
    ("volumes", "objects", "expected"),
    [
        pytest.param(
            [mount("dta")],
            [claim("data", "v"), volume("v")],
            ["claim-missing: claim dta does not exist (there is data)"],
            id="a claim that does not exist",
        ),
        pytest.param(
            [mount("c")],
            [claim("c", storageClassName="fst"), wait("fast", "csi.example.com")],
            ["class-missing: claim c wants StorageClass fst, which does not exist (there is fast)"],
            id="a class that does not exist",
        ),
        pytest.param(
            [mount("c")],
            [claim("c")],
            ["claim-unbound: claim c is not bound, and has no StorageClass"],
            id="without a class",
        ),
        pytest.param(
            [mount("c")],
            [
                claim("c", storageClassName="now"),
                named("StorageClass", "now", provisioner="nfs", volumeBindingMode="Immediate"),
            ],
            ["claim-unbound: claim c is not bound yet, and StorageClass now (nfs) binds before pods are scheduled"],
            id="an immediate claim",
        ),
        pytest.param(
            [mount("c")],
            [
                named(
                    "PersistentVolumeClaim",
                    "c",
                    {"namespace": "default", "deletionTimestamp": "2026-01-01T00:00:00Z"},
                    spec={"storageClassName": "wait"},
                ),
                wait(),
            ],
            ["claim-terminating: claim c is being deleted"],
            id="a claim that is being deleted",
        ),
        pytest.param(
            [EPHEMERAL],
            [],
            ["claim-not-created: claim incoming-v0 of an ephemeral volume is not created yet"],
            id="an ephemeral volume",
        ),
        pytest.param(
            [mount("c")],
            [claim("c", "v")],
            ["volume-missing: claim c is bound to volume v, which does not exist"],
            id="a volume that does not exist",
        ),
    ],
)
def test_the_pod_as_a_whole(volumes: Any, objects: Any, expected: list[str]) -> None:
    """Several plugins reject such a pod, and it is said once."""
    assert whole_pod(a_pod(*volumes), cluster_of(*NODES, *objects)) == expected


@pytest.mark.parametrize(
    ("volumes", "objects", "expected"),
    [
        pytest.param(
            [mount("c")],
            [claim("c", "v"), volume("v", nodeAffinity=ON_A)],
            {"b": ["volume-affinity: volume v of claim c: it is reachable from host=a only"]},
            id="a volume elsewhere",
        ),
        pytest.param(
            [mount("c")],
            [claim("c", storageClassName="wait"), wait(), volume("v", nodeAffinity=ON_A)],
            {"b": ["no-volume: claim c: no free volume of StorageClass wait that the node reaches, for 1Gi"]},
            id="no volume there",
        ),
        pytest.param(
            [mount("c")],
            [claim("c", storageClassName="wait"), wait()],
            {"a b": ["no-volume: claim c: no free volume of StorageClass wait at all, for 1Gi"]},
            id="no volume at all",
        ),
        pytest.param(
            [mount("c"), mount("d")],
            [claim("c", storageClassName="wait"), claim("d", storageClassName="wait"), wait(), volume("v")],
            {"a b": ["no-volume: too few volumes for the claims c, d together"]},
            id="one volume for two claims",
        ),
        pytest.param(
            [mount("c")],
            [
                claim("c", storageClassName="made"),
                wait(
                    "made",
                    "csi.example.com",
                    allowedTopologies=[{"matchLabelExpressions": [{"key": "host", "values": ["a"]}]}],
                ),
            ],
            {"b": ["no-volume: claim c: StorageClass made makes volumes in host=a only"]},
            id="a class that makes volumes elsewhere",
        ),
        pytest.param(
            [mount("c")],
            [claim("c", storageClassName="made", size="5Gi"), wait("made", "csi.example.com"), CAPACITY],
            {"a b": ["no-capacity: claim c: StorageClass made has no capacity for 5Gi there"]},
            id="no capacity",
        ),
        pytest.param(
            [DISK],
            [a_pod(DISK, name="other", on="a")],
            {"a": ["disk: disk ebs vol-1 is used by default/other"]},
            id="a disk",
        ),
        pytest.param(
            [mount("c")],
            [
                claim("c", "v", accessModes=["ReadWriteOncePod"]),
                volume("v"),
                a_pod(mount("c"), name="other", on="a"),
            ],
            {"a b": ["claim-in-use: claim c is for one pod at a time, and default/other uses it"]},
            id="a claim for one pod",
        ),
        pytest.param(
            [mount("c")],
            [
                claim("c", "v"),
                volume("v", **csi("x.example", "h1")),
                volume("w", **csi("x.example", "h2")),
                limits("a", x_example=1),
                attachment("one", "x.example", "a", "w"),
            ],
            {"a": ["volume-limit: x.example attaches at most 1 volumes to the node; with the pod it would have 2"]},
            id="a limit of attached volumes",
        ),
    ],
)
def test_nodes(volumes: Any, objects: Any, expected: dict[str, list[str]]) -> None:
    assert node_causes(a_pod(*volumes), cluster_of(*NODES, *objects)) == expected


def test_a_zone() -> None:
    nodes = [zoned("a", {ZONE: "x"}), zoned("b", {ZONE: "y"})]
    objects = [claim("c", "v"), volume("v", meta={"labels": {ZONE: "x"}})]
    found = node_causes(a_pod(mount("c")), cluster_of(*nodes, *objects))
    assert found["b"][-1] == f"volume-zone: volume v of claim c is in {ZONE}=x"


def test_leaf_nodes() -> None:
    pod, profile = a_pod(mount("c")), a_profile_of(LeafNodeVolumeBinding())
    state = cluster_of(*leaves.NODES, claim("c", "v"), volume("v", meta=leaves.OF_M1))
    assert node_causes(pod, state, profile) == {
        "m2": ["volume-affinity: volume v of claim c belongs to cluster m1"],
    }
    state = cluster_of(*leaves.NODES, claim("c", storageClassName="wait"), wait())
    found = node_causes(pod, state, profile)
    assert found["m1 m2"] == ["no-volume: claim c: the node's cluster has no volume, and would make none"]
