"""VolumeZone: small clusters, and what it says of their nodes."""

from __future__ import annotations

import pytest

from stowplan.objects.meta import Object
from stowplan.plugins.nodes.default.volume_zone import VolumeZone
from tests.plugins.nodes.default.volumes import (
    BETA_ZONE,
    WRONG_ZONE,
    ZONE,
    a_pod,
    claim,
    cluster_of,
    mount,
    named,
    node,
    said,
    volume,
    wait,
    zoned,
)


@pytest.mark.parametrize(
    ("labels", "node_labels", "fits"),
    [
        pytest.param({ZONE: "z1"}, {ZONE: "z1"}, True, id="the same zone"),
        pytest.param({ZONE: "z1"}, {ZONE: "z2"}, False, id="another zone"),
        pytest.param({ZONE: "z1"}, {}, True, id="a node without any zone or region label"),
        pytest.param({ZONE: "z1"}, {"topology.kubernetes.io/region": "r"}, False, id="a node that only has a region"),
        pytest.param({ZONE: "z1__z2"}, {ZONE: "z2"}, True, id="one of several zones"),
        pytest.param({ZONE: "z1__"}, {ZONE: "z2"}, None, id="a label with a gap says nothing"),
        pytest.param({BETA_ZONE: "z1"}, {ZONE: "z1"}, True, id="a volume's beta label and a node's new one"),
        pytest.param({BETA_ZONE: "z1"}, {BETA_ZONE: "z2", ZONE: "z1"}, False, id="a node's beta label goes first"),
        pytest.param(
            {ZONE: "z1"}, {BETA_ZONE: "z1"}, False, id="a volume's new label is not looked for under the beta one"
        ),
        pytest.param({ZONE: "z1", "topology.kubernetes.io/region": "r"}, {ZONE: "z1"}, False, id="every label counts"),
    ],
)
def test_zones(labels: dict[str, str], node_labels: dict[str, str], fits: bool | None) -> None:
    state = cluster_of(zoned("a", node_labels), claim("c", "p"), volume("p", meta={"labels": labels}))
    expected = {} if fits is None else {"a": () if fits else (WRONG_ZONE,)}
    assert said(VolumeZone(), a_pod(mount("c")), state) == expected


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([], 'persistentvolumeclaim "c" not found', id="no claim"),
        pytest.param([claim("c", "p")], 'persistentvolume "p" not found', id="no volume"),
        pytest.param(
            [claim("c")], "PersistentVolumeClaim had no pv name and storageClass name", id="neither volume nor class"
        ),
        pytest.param(
            [claim("c", storageClassName="s")],
            'storageclass.storage.k8s.io "s" not found',
            id="a class that is not there",
        ),
        pytest.param(
            [claim("c", storageClassName="s"), named("StorageClass", "s")],
            'VolumeBindingMode not set for StorageClass "s"',
            id="a class without a binding mode",
        ),
        pytest.param(
            [claim("c", storageClassName="s"), named("StorageClass", "s", volumeBindingMode="Immediate")],
            "PersistentVolume had no name",
            id="an unbound claim of a class that does not wait",
        ),
    ],
)
def test_zones_that_cannot_be_told(objects: list[Object], reason: str) -> None:
    assert said(VolumeZone(), a_pod(mount("c")), cluster_of(node("a"), *objects)) == {"": (reason,)}


def test_claims_that_wait_for_a_pod_have_no_zone_yet() -> None:
    state = cluster_of(node("a"), claim("c", storageClassName="wait"), wait())
    assert said(VolumeZone(), a_pod(mount("c")), state) == {}


def test_hints_exist() -> None:
    plugin = VolumeZone()
    for wake in plugin.wakes_on():
        assert not wake.hint or callable(getattr(plugin, wake.hint))
