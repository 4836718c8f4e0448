"""NodeVolumeLimits: small clusters, and what it says of their nodes."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects.changes import Put
from stowplan.objects.meta import Object
from stowplan.plugins.nodes.default.node_volume_limits import NodeVolumeLimits
from tests.plugins.nodes.default.volumes import (
    TOO_MANY,
    a_pod,
    attachment,
    claim,
    cluster_of,
    csi,
    limits,
    mount,
    node,
    said,
    volume,
    wait,
)

TWO_BOUND = (
    claim("c1", "p1"), claim("c2", "p2"), claim("c3", "p3"),
    volume("p1", **csi("d.x", "h1")), volume("p2", **csi("d.x", "h2")), volume("p3", **csi("e.x", "h3")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("objects", "volumes", "expected"),
    [
        pytest.param([], [mount("c1")], (), id="no CSINode, no limit"),
        pytest.param([limits("a", e_x=0)], [mount("c1")], (), id="a limit for another driver"),
        pytest.param([limits("a", d_x=0)], [mount("c1")], (TOO_MANY,), id="a limit of zero"),
        pytest.param([limits("a", d_x=1)], [mount("c1")], (), id="just enough"),
        pytest.param([limits("a", d_x=1)], [mount("c1"), mount("c2")], (TOO_MANY,), id="two where one is allowed"),
        pytest.param([limits("a", d_x=1)], [mount("c1"), mount("c1")], (), id="one volume mounted twice"),
        pytest.param(
            [limits("a", d_x=1), a_pod(mount("c1"), name="o", on="a")],
            [mount("c2")],
            (TOO_MANY,),
            id="another pod's volume",
        ),
        pytest.param(
            [limits("a", d_x=0), a_pod(mount("c1"), name="o", on="a")],
            [mount("c1")],
            (),
            id="a volume that is there already is welcome even beyond the limit",
        ),
        pytest.param(
            [limits("a", d_x=1), a_pod(mount("c3"), name="o", on="a")], [mount("c1")], (), id="another driver's volume"
        ),
        pytest.param(
            [limits("a", d_x=1), attachment("va", "d.x", "a", "p2")], [mount("c1")], (TOO_MANY,), id="an attachment"
        ),
        pytest.param(
            [limits("a", d_x=1), attachment("va", "d.x", "a", "p1")],
            [mount("c1")],
            (TOO_MANY,),
            id="an attachment of this very volume counts twice while no pod on the node has it",
        ),
        pytest.param(
            [limits("a", d_x=2), attachment("va", "d.x", "a", "p1"), a_pod(mount("c1"), name="o", on="a")],
            [mount("c2")],
            (),
            id="an attachment of a volume that a pod has counts once",
        ),
        pytest.param(
            [limits("a", d_x=1), attachment("v1", "d.x", "a", None), attachment("v2", "d.x", "a", "nope")],
            [mount("c1")],
            (),
            id="attachments without a known volume",
        ),
        pytest.param(
            [limits("a", d_x=0), claim("u", storageClassName="dyn"), wait("dyn", "d.x")],
            [mount("u")],
            (TOO_MANY,),
            id="an unbound claim counts for the driver of its class",
        ),
        pytest.param(
            [limits("a", ebs_csi_aws_com=0), claim("u", storageClassName="old"), wait("old", "kubernetes.io/aws-ebs")],
            [mount("u")],
            (TOO_MANY,),
            id="a class of a built-in kind counts for the driver that took it over",
        ),
        pytest.param(
            [
                limits("a", file_csi_azure_com=0),
                claim("u", storageClassName="f"),
                wait("f", "kubernetes.io/azure-file"),
            ],
            [mount("u")],
            (),
            id="a built-in kind that a scheduler does not take for moved",
        ),
        pytest.param(
            [limits("a", pd_csi_storage_gke_io=1), a_pod({"gcePersistentDisk": {"pdName": "g"}}, name="o", on="a")],
            [{"gcePersistentDisk": {"pdName": "g"}}],
            (),
            id="an inline disk that is there already",
        ),
        pytest.param(
            [limits("a", pd_csi_storage_gke_io=0)],
            [{"gcePersistentDisk": {"pdName": "g"}}],
            (TOO_MANY,),
            id="an inline disk of a driver that takes none",
        ),
        pytest.param(
            [
                limits("a", ebs_csi_aws_com=1),
                claim("e", "pe"),
                volume("pe", awsElasticBlockStore={"volumeID": "aws://z/vol-1"}),
            ],
            [mount("e"), {"awsElasticBlockStore": {"volumeID": "vol-1"}}],
            (),
            id="one EBS volume under its old and its new identifier",
        ),
    ],
)
def test_volume_limits(objects: list[Object], volumes: list[dict[str, Any]], expected: tuple[str, ...]) -> None:
    state = cluster_of(node("a"), *TWO_BOUND, *objects)
    assert said(NodeVolumeLimits(), a_pod(*volumes), state) == {"a": expected}


def test_a_missing_claim_is_said_of_every_node() -> None:
    found = said(NodeVolumeLimits(), a_pod(mount("nope")), cluster_of(node("a")))
    assert found == {"a": ('looking up PVC default/nope: persistentvolumeclaim "nope" not found',)}


def test_a_disk_that_its_driver_does_not_know_is_trouble_only_where_there_is_a_csi_node() -> None:
    shared = {"azureDisk": {"diskName": "d", "diskURI": "/d", "kind": "Shared"}}
    found = said(NodeVolumeLimits(), a_pod(shared), cluster_of(node("a"), node("b"), limits("b")))
    reason = "converting volume(v0) from inline to csi: kind(Shared) is not supported in csi migration"
    assert found == {"a": (), "b": (reason,)}


def test_a_pod_without_attachable_volumes_is_of_no_interest() -> None:
    assert said(NodeVolumeLimits(), a_pod({"csi": {"driver": "d.x"}}, {}), cluster_of(node("a"))) == {}


def test_limits_follow_what_ifs_and_changes() -> None:
    state = cluster_of(node("a"), *TWO_BOUND, limits("a", d_x=1), a_pod(mount("c1"), name="o", on="a"))
    plugin, pod = NodeVolumeLimits(), a_pod(mount("c2"))
    assert said(plugin, pod, state) == {"a": (TOO_MANY,)}
    with state.trial() as trial:
        trial.remove_pod("uid-o", as_extension=True)
        assert said(plugin, pod, state) == {"a": ()}
    assert said(plugin, pod, state) == {"a": (TOO_MANY,)}
    state.apply(Put(limits("a", d_x=2)))
    assert said(plugin, pod, state) == {"a": ()}
    state.apply(Put(attachment("va", "d.x", "a", "p2")))
    assert said(plugin, pod, state) == {"a": (TOO_MANY,)}


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        pytest.param(limits("a", d_x=1), limits("a", d_x=2), True, id="a driver takes more"),
        pytest.param(limits("a", d_x=2), limits("a", d_x=1), False, id="a driver takes fewer"),
        pytest.param(limits("a"), limits("a", d_x=1), True, id="a driver comes"),
        pytest.param(limits("a", d_x=1), limits("a"), False, id="a driver goes"),
    ],
)
def test_a_csi_node_that_changes(old: Any, new: Any, wakes: bool) -> None:
    assert NodeVolumeLimits().limit_raised(a_pod(mount("c1")), old, new) is wakes


def test_hints_exist() -> None:
    plugin = NodeVolumeLimits()
    for wake in plugin.wakes_on():
        assert not wake.hint or callable(getattr(plugin, wake.hint))
