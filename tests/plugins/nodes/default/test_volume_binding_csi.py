"""VolumeBinding and CSI drivers: the space that they report, the built-in kinds of volumes that moved to them, and
which changes wake a pod that waits.
"""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects.meta import Object
from stowplan.plugins.nodes.default.volume_binding import VolumeBinding
from tests.plugins.nodes.default.volumes import (
    AFFINITY,
    BETA_ZONE,
    NO_SPACE,
    UNBOUND,
    ZONE,
    a_pod,
    claim,
    cluster_of,
    limits,
    mount,
    named,
    node,
    reached_from,
    said,
    volume,
    wait,
    zoned,
)

BOOKKEEPER = named("CSIDriver", "x", spec={"storageCapacity": True})
IN_Z1 = reached_from(ZONE, "z1")
GKE_ZONE = "topology.gke.io/zone"


def capacity(name: str, **fields: Any) -> Object:
    return named("CSIStorageCapacity", name, {"namespace": "kube-system"}, **{"storageClassName": "wait", **fields})


@pytest.mark.parametrize(
    ("objects", "on_a", "on_b"),
    [
        pytest.param([], (), (), id="a driver that keeps no books has space"),
        pytest.param([BOOKKEEPER], (NO_SPACE,), (NO_SPACE,), id="a driver that knows of no space has none"),
        pytest.param(
            [BOOKKEEPER, capacity("k", capacity="1Gi", nodeTopology={"matchLabels": {"host": "a"}})],
            (),
            (NO_SPACE,),
            id="space on one node",
        ),
        pytest.param([BOOKKEEPER, capacity("k", capacity="1Gi", nodeTopology={})], (), (), id="space on every node"),
        pytest.param(
            [BOOKKEEPER, capacity("k", capacity="9Gi")], (NO_SPACE,), (NO_SPACE,), id="space that no node can reach"
        ),
        pytest.param(
            [BOOKKEEPER, capacity("k", capacity="9Gi", maximumVolumeSize="1Mi", nodeTopology={})],
            (NO_SPACE,),
            (NO_SPACE,),
            id="the largest volume goes before the space",
        ),
        pytest.param(
            [BOOKKEEPER, capacity("k", capacity="9Gi", nodeTopology={}, storageClassName="other")],
            (NO_SPACE,),
            (NO_SPACE,),
            id="space of another class",
        ),
    ],
)
def test_space(objects: list[Object], on_a: tuple[str, ...], on_b: tuple[str, ...]) -> None:
    state = cluster_of(node("a"), node("b"), wait(provisioner="x"), UNBOUND, *objects)
    assert said(VolumeBinding(), a_pod(mount("u")), state) == {"a": on_a, "b": on_b}


@pytest.mark.parametrize(
    ("moved", "pv", "fits"),
    [
        pytest.param(
            [], volume("p", nodeAffinity=IN_Z1, gcePersistentDisk={"pdName": "d"}), True, id="not moved: the old key"
        ),
        pytest.param(
            ["kubernetes.io/gce-pd"],
            volume("p", nodeAffinity=IN_Z1, gcePersistentDisk={"pdName": "d"}),
            False,
            id="moved: the driver's key, which has another value here",
        ),
        pytest.param(
            ["kubernetes.io/gce-pd"],
            volume("p", meta={"labels": {BETA_ZONE: "z2"}}, gcePersistentDisk={"pdName": "d"}),
            True,
            id="moved: a volume without affinity gets one from its label",
        ),
        pytest.param(
            ["kubernetes.io/azure-disk"],
            volume("p", nodeAffinity=IN_Z1, azureDisk={"diskName": "d", "diskURI": "/d", "kind": "Managed"}),
            True,
            id="moved, but the driver keeps the old key",
        ),
        pytest.param(
            ["kubernetes.io/aws-ebs"],
            volume("p", nodeAffinity=IN_Z1, gcePersistentDisk={"pdName": "d"}),
            True,
            id="another kind has moved",
        ),
    ],
)
def test_built_in_kinds_on_nodes_that_have_moved(moved: list[str], pv: Object, fits: bool) -> None:
    here = zoned("a", {ZONE: "z1", GKE_ZONE: "z2"})
    state = cluster_of(here, limits("a", *moved), claim("c", "p"), pv)
    assert said(VolumeBinding(), a_pod(mount("c")), state) == {"a": () if fits else (AFFINITY,)}


@pytest.mark.parametrize(
    ("hint", "old", "new", "wakes"),
    [
        pytest.param("topologies_changed", None, wait(), True, id="a new class"),
        pytest.param("topologies_changed", wait(), wait(), False, id="a class that is as before"),
        pytest.param(
            "topologies_changed",
            wait(),
            wait(allowedTopologies=[{"matchLabelExpressions": []}]),
            True,
            id="other topologies",
        ),
        pytest.param("is_claimed", None, claim("c"), True, id="the pod's claim"),
        pytest.param("is_claimed", None, claim("d"), False, id="another claim"),
        pytest.param("migrated_plugins_changed", None, limits("a"), True, id="a new CSINode"),
        pytest.param(
            "migrated_plugins_changed", limits("a"), limits("a", d=1), False, id="a CSINode with the same kinds moved"
        ),
        pytest.param("migrated_plugins_changed", limits("a"), limits("a", "k"), True, id="a kind has moved"),
        pytest.param(
            "capacity_unchecked_now", BOOKKEEPER, named("CSIDriver", "x"), True, id="a driver of the pod's own volume"
        ),
        pytest.param("capacity_unchecked_now", BOOKKEEPER, BOOKKEEPER, False, id="a driver that goes on keeping books"),
        pytest.param("has_more_space", None, capacity("k"), True, id="a new pool"),
        pytest.param(
            "has_more_space", capacity("k", capacity="1Gi"), capacity("k", capacity="2Gi"), True, id="a pool grew"
        ),
        pytest.param(
            "has_more_space", capacity("k", capacity="2Gi"), capacity("k", capacity="1Gi"), False, id="a pool shrank"
        ),
        pytest.param(
            "has_more_space", capacity("k"), capacity("k", maximumVolumeSize="1"), True, id="a pool is known now"
        ),
    ],
)
def test_what_wakes_volume_binding(hint: str, old: Any, new: Any, wakes: bool) -> None:
    pod = a_pod(mount("c"), {"csi": {"driver": "x"}})
    assert getattr(VolumeBinding(), hint)(pod, old, new) is wakes


def test_hints_exist() -> None:
    plugin = VolumeBinding()
    for wake in plugin.wakes_on():
        assert not wake.hint or callable(getattr(plugin, wake.hint))
