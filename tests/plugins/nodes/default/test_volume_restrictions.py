"""VolumeRestrictions: small clusters, and what it says of their nodes."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.default.volume_restrictions import VolumeRestrictions
from tests.plugins.nodes.default.volumes import DISK, EPHEMERAL, IN_USE, a_pod, claim, cluster_of, mount, node, said


@pytest.mark.parametrize(
    ("held", "wanted", "clash"),
    [
        pytest.param({"pdName": "d"}, {"pdName": "d"}, True, id="a disk written to by both"),
        pytest.param(
            {"pdName": "d", "readOnly": True}, {"pdName": "d", "readOnly": True}, False, id="a disk both only read"
        ),
        pytest.param({"pdName": "d"}, {"pdName": "d", "readOnly": True}, True, id="a disk written to by the other pod"),
        pytest.param({"pdName": "d", "readOnly": True}, {"pdName": "d"}, True, id="a disk written to by this pod"),
        pytest.param({"pdName": "d"}, {"pdName": "e"}, False, id="two disks"),
    ],
)
def test_gce_disks_can_be_shared_by_readers(held: dict[str, Any], wanted: dict[str, Any], clash: bool) -> None:
    there = a_pod({"gcePersistentDisk": held}, name="other", on="a")
    state = cluster_of(node("a"), node("b"), there)
    found = said(VolumeRestrictions(), a_pod({"gcePersistentDisk": wanted}), state)
    assert found == {"a": (DISK,) if clash else (), "b": ()}


@pytest.mark.parametrize(
    ("held", "wanted", "clash"),
    [
        pytest.param(
            {"awsElasticBlockStore": {"volumeID": "v", "readOnly": True}},
            {"awsElasticBlockStore": {"volumeID": "v", "readOnly": True}},
            True,
            id="an EBS volume is never shared, not even by readers",
        ),
        pytest.param(
            {"iscsi": {"iqn": "q", "targetPortal": "1", "lun": 0}},
            {"iscsi": {"iqn": "q", "targetPortal": "2", "lun": 1, "readOnly": True}},
            True,
            id="an iSCSI target is known by its name, whatever portal and unit",
        ),
        pytest.param(
            {"rbd": {"monitors": ["m1", "m2"], "pool": "p", "image": "i"}},
            {"rbd": {"monitors": ["m2", "m3"], "pool": "p", "image": "i"}},
            True,
            id="a Ceph image seen through a common monitor",
        ),
        pytest.param(
            {"rbd": {"monitors": ["m1"], "pool": "p", "image": "i"}},
            {"rbd": {"monitors": ["m2"], "pool": "p", "image": "i"}},
            False,
            id="Ceph images of clusters without a common monitor",
        ),
    ],
)
def test_other_disks(held: dict[str, Any], wanted: dict[str, Any], clash: bool) -> None:
    state = cluster_of(node("a"), a_pod(held, name="other", on="a"))
    assert said(VolumeRestrictions(), a_pod(wanted), state) == {"a": (DISK,) if clash else ()}


ONE_POD: dict[str, Any] = {"accessModes": ["ReadWriteOncePod"]}


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param(
            [a_pod(mount("c"), name="x", on="a")], {"a": (IN_USE,), "b": (IN_USE,)}, id="its pod is on any node"
        ),
        pytest.param([a_pod(mount("c"), name="x", on="gone")], {}, id="its pod is on a node that is gone"),
        pytest.param(
            [a_pod(mount("c"), name="x", on="a", namespace="other")], {}, id="a namesake in another namespace"
        ),
        pytest.param([a_pod(mount("d"), name="x", on="a")], {}, id="nobody uses it"),
    ],
)
def test_a_claim_for_one_pod_only(others: list[Pod], expected: dict[str, tuple[str, ...]]) -> None:
    state = cluster_of(node("a"), node("b"), claim("c", **ONE_POD), *others)
    assert said(VolumeRestrictions(), a_pod(mount("c")), state) == expected


def test_a_claim_made_for_an_ephemeral_volume_is_not_looked_for() -> None:
    state = cluster_of(node("a"), claim("x-v0", **ONE_POD), a_pod(EPHEMERAL, name="x", on="a"))
    assert said(VolumeRestrictions(), a_pod(mount("x-v0")), state) == {}


def test_a_missing_claim_refuses_the_pod() -> None:
    refused = said(VolumeRestrictions(), a_pod(mount("nope")), cluster_of(node("a")))
    assert refused == {"": ('persistentvolumeclaim "nope" not found',)}


def _what_if(gone: list[str]) -> bool:
    """Does node a take the pod, when these pods are gone from their nodes?"""
    users = [a_pod(mount("c"), name="x", on="a"), a_pod(mount("c"), name="y", on="b")]
    namesake = a_pod(mount("c"), name="z", on="b", namespace="other")
    state = cluster_of(node("a"), node("b"), claim("c", **ONE_POD), *users, namesake)
    plugin, pod = VolumeRestrictions(), a_pod(mount("c"))
    before = Cluster(state)
    assert plugin.pre_filter(pod, before) is None
    with state.trial() as trial:
        for name in gone:
            trial.remove_pod(f"uid-{name}", as_extension=True)
        rejects = list(plugin.filter(pod, Cluster(state, before.notes).nodes))
    return not any(reject.rows[0] for reject in rejects)


@pytest.mark.parametrize(
    ("gone", "passes"),
    [
        pytest.param([], False, id="nobody"),
        pytest.param(["x"], True, id="one of two users is enough, as kube-scheduler counts"),
        pytest.param(["z"], True, id="even a namesake of another namespace is enough, as kube-scheduler counts"),
        pytest.param(["x", "y"], True, id="both users"),
    ],
)
def test_evicting_users_of_a_claim(gone: list[str], passes: bool) -> None:
    assert _what_if(gone) is passes


@pytest.mark.parametrize(
    ("old", "wakes"),
    [
        pytest.param(a_pod(mount("c")), True, id="a pod with the same claim"),
        pytest.param(a_pod(mount("d")), False, id="a pod with another claim"),
        pytest.param(a_pod({"gcePersistentDisk": {"pdName": "d"}}), True, id="a pod with the same disk"),
        pytest.param(
            a_pod({"gcePersistentDisk": {"pdName": "d"}}, namespace="x"), False, id="a pod of another namespace"
        ),
    ],
)
def test_a_pod_that_goes_may_free_a_volume(old: Pod, wakes: bool) -> None:
    pod = a_pod(mount("c"), {"gcePersistentDisk": {"pdName": "d", "readOnly": True}})
    assert VolumeRestrictions().pod_freed_volume(pod, old, None) is wakes


def test_hints_exist() -> None:
    plugin = VolumeRestrictions()
    for wake in plugin.wakes_on():
        assert not wake.hint or callable(getattr(plugin, wake.hint))
