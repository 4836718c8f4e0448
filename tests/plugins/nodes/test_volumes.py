"""The four volume policies, each table a list of small clusters and what is said of their nodes.

Every expectation was taken from kube-scheduler 1.36.4's own behaviour (its source, and the recorder in tests/oracle).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from stowplan.columns.state import ClusterState
from stowplan.columns.views import Cluster
from stowplan.framework.verdict import SKIP, Refuse
from stowplan.objects.changes import Put
from stowplan.objects.kinds import KINDS, convert
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.plugins.nodes.node_volume_limits import NodeVolumeLimits
from stowplan.plugins.nodes.volume_binding import VolumeBinding
from stowplan.plugins.nodes.volume_restrictions import VolumeRestrictions
from stowplan.plugins.nodes.volume_zone import VolumeZone

DISK = "node(s) had no available disk"
IN_USE = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
TOO_MANY = "node(s) exceed max volume count"
WRONG_ZONE = "node(s) had no available volume zone"
AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NOTHING_TO_BIND = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"

ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
ON_A = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "host", "operator": "In", "values": ["a"]}]}]}}
ON_B = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "host", "operator": "In", "values": ["b"]}]}]}}

# -- builders


def named(kind: str, name: str, /, meta: Mapping[str, Any] = {}, **fields: Any) -> Object:
    return convert(KINDS[kind], {"metadata": {"name": name, **meta}, **fields})


def node(name: str) -> Object:
    return named("Node", name, {"labels": {"host": name}})


def zoned(name: str, labels: Mapping[str, str]) -> Object:
    return named("Node", name, {"labels": labels})


def a_pod(*volumes: Mapping[str, Any], name: str = "incoming", on: str = "", namespace: str = "default") -> Pod:
    spec = {"nodeName": on, "volumes": [{"name": f"v{at}", **volume} for at, volume in enumerate(volumes)]}
    return convert(Pod, {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"}, "spec": spec})


def mount(claim: str) -> dict[str, Any]:
    return {"persistentVolumeClaim": {"claimName": claim}}


def claim(name: str, volume: str = "", meta: Mapping[str, Any] = {}, size: str = "1Gi", **spec: Any) -> Object:
    """A claim, bound if it has a volume."""
    asked = {"requests": {"storage": size}}
    filled = {"accessModes": ["ReadWriteOnce"], "resources": asked, "volumeName": volume, **spec}
    described = {"namespace": "default", "uid": f"uid-{name}", "annotations": BOUND if volume else {}, **meta}
    return named("PersistentVolumeClaim", name, described, spec=filled)


def volume(
    name: str, size: str = "10Gi", meta: Mapping[str, Any] = {}, phase: str = "Available", **spec: Any
) -> Object:
    filled = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "wait", **spec}
    return named("PersistentVolume", name, meta, spec=filled, status={"phase": phase})


def csi(driver: str, handle: str) -> dict[str, Any]:
    return {"csi": {"driver": driver, "volumeHandle": handle}}


def wait(name: str = "wait", provisioner: str = "kubernetes.io/no-provisioner", **fields: Any) -> Object:
    return named("StorageClass", name, provisioner=provisioner, volumeBindingMode="WaitForFirstConsumer", **fields)


def limits(node_name: str, *moved: str, **counts: int) -> Object:
    """A CSINode; a driver's dots are written as underscores."""
    drivers = [{"name": driver.replace("_", "."), "allocatable": {"count": count}} for driver, count in counts.items()]
    return named("CSINode", node_name, {"annotations": {MIGRATED: ",".join(moved)}}, spec={"drivers": drivers})


def attachment(name: str, attacher: str, node_name: str, pv: str | None) -> Object:
    source = {} if pv is None else {"persistentVolumeName": pv}
    return named("VolumeAttachment", name, spec={"attacher": attacher, "nodeName": node_name, "source": source})


def cluster_of(*objects: Object) -> ClusterState:
    state = ClusterState()
    for found in objects:
        state.apply(Put(found))
    return state


def said(plugin: Any, pod: Pod, state: ClusterState) -> dict[str, tuple[str, ...]]:
    """The reasons that a plugin has against each node; {} for SKIP; "" stands for the cluster if it refuses the pod."""
    cluster = Cluster(state)
    answer = plugin.pre_filter(pod, cluster)
    if isinstance(answer, Refuse):
        assert not answer.resolvable
        return {"": answer.reasons}
    if answer is SKIP:
        return {}
    found: dict[str, tuple[str, ...]] = dict.fromkeys(cluster.nodes.names, ())
    for reject in plugin.filter(pod, cluster.nodes):
        assert reject.resolvable is (reject.reason in (DISK, IN_USE, TOO_MANY))
        for at in np.flatnonzero(reject.rows).tolist():
            found[cluster.nodes.names[at]] += (reject.reason,)
    return found


# -- VolumeRestrictions


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
EPHEMERAL: dict[str, Any] = {"ephemeral": {"volumeClaimTemplate": {}}}


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
    assert VolumeRestrictions().freed_a_volume(pod, old, None) is wakes


# -- NodeVolumeLimits

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
    assert NodeVolumeLimits().takes_more(a_pod(mount("c1")), old, new) is wakes


# -- VolumeZone


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


# -- VolumeBinding


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param([], 'persistentvolumeclaim "c" not found', id="no claim"),
        pytest.param(
            [
                convert(
                    KINDS["PersistentVolumeClaim"],
                    {
                        "metadata": {"name": "c", "namespace": "default"},
                        "spec": {"volumeName": "p"},
                        "status": {"phase": "Lost"},
                    },
                )
            ],
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "p"',
            id="a claim that lost its volume",
        ),
        pytest.param(
            [claim("c", "p", {"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            'persistentvolumeclaim "c" is being deleted',
            id="a claim on its way out",
        ),
        pytest.param([claim("c")], "pod has unbound immediate PersistentVolumeClaims", id="unbound, without a class"),
        pytest.param(
            [claim("c", storageClassName="nope")],
            "pod has unbound immediate PersistentVolumeClaims",
            id="an unknown class",
        ),
        pytest.param(
            [claim("c", "p", {"annotations": {}}, storageClassName="wait"), wait()],
            "pod has unbound immediate PersistentVolumeClaims",
            id="a claim that names its volume but is not bound yet",
        ),
        pytest.param(
            [claim("c", storageClassName="s"), named("StorageClass", "s", provisioner="x")],
            'VolumeBindingMode not set for StorageClass "s"',
            id="a class without a binding mode",
        ),
    ],
)
def test_claims_that_cannot_be_used(objects: list[Object], reason: str) -> None:
    assert said(VolumeBinding(), a_pod(mount("c")), cluster_of(node("a"), *objects)) == {"": (reason,)}


@pytest.mark.parametrize(
    ("owner", "reason"),
    [
        pytest.param(
            None, "waiting for ephemeral volume controller to create the persistentvolumeclaim", id="not made yet"
        ),
        pytest.param(
            "someone", "PVC default/incoming-v0 was not created for pod default/incoming", id="made for another pod"
        ),
    ],
)
def test_ephemeral_volumes(owner: str | None, reason: str) -> None:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": owner, "controller": True}]
    made = [] if owner is None else [claim("incoming-v0", "p", {"ownerReferences": owners})]
    (found,) = said(VolumeBinding(), a_pod(EPHEMERAL), cluster_of(node("a"), *made))[""]
    assert found.startswith(reason)


def test_a_pod_without_claims_is_skipped() -> None:
    assert said(VolumeBinding(), a_pod({"gcePersistentDisk": {"pdName": "d"}}), cluster_of(node("a"))) == {}


UNBOUND = claim("u", storageClassName="wait")
TERMS = "nodeSelectorTerms"


@pytest.mark.parametrize(
    ("objects", "mounts", "on_a", "on_b"),
    [
        pytest.param(
            [claim("c", "p"), volume("p", nodeAffinity=ON_A)], "c", (), (AFFINITY,), id="a volume of one node"
        ),
        pytest.param([claim("c", "p"), volume("p")], "c", (), (), id="a volume without affinity"),
        pytest.param(
            [claim("c", "p"), volume("p", nodeAffinity={})], "c", (), (), id="a volume with an empty affinity"
        ),
        pytest.param(
            [claim("c", "p"), volume("p", nodeAffinity={"required": {TERMS: []}})],
            "c",
            (AFFINITY,),
            (AFFINITY,),
            id="an affinity without terms matches nothing",
        ),
        pytest.param(
            [
                claim("c", "p"),
                volume(
                    "p",
                    nodeAffinity={
                        "required": {
                            TERMS: [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}]
                        }
                    },
                ),
            ],
            "c",
            (),
            (),
            id="conditions on a node's name are read but not applied to volumes",
        ),
        pytest.param([claim("c", "p")], "c", (GONE,), (GONE,), id="a bound volume that does not exist"),
        pytest.param(
            [claim("c", "p"), volume("p", nodeAffinity=ON_A), claim("d", "q")],
            "cd",
            (GONE,),
            (AFFINITY,),
            id="of two bound claims the first that fails speaks",
        ),
        pytest.param(
            [wait(), UNBOUND], "u", (NOTHING_TO_BIND,), (NOTHING_TO_BIND,), id="nothing there, nothing to be made"
        ),
        pytest.param(
            [wait(), UNBOUND, volume("p", nodeAffinity=ON_B)], "u", (NOTHING_TO_BIND,), (), id="a free volume"
        ),
        pytest.param([wait(), UNBOUND, volume("p", "512Mi")], "u", *[(NOTHING_TO_BIND,)] * 2, id="a volume too small"),
        pytest.param(
            [wait(), UNBOUND, volume("p", phase="Released")],
            "u",
            *[(NOTHING_TO_BIND,)] * 2,
            id="a volume not available",
        ),
        pytest.param(
            [wait(), UNBOUND, volume("p", volumeMode="Block")],
            "u",
            *[(NOTHING_TO_BIND,)] * 2,
            id="a volume of another mode",
        ),
        pytest.param(
            [wait(), UNBOUND, volume("p", accessModes=["ReadOnlyMany"])],
            "u",
            *[(NOTHING_TO_BIND,)] * 2,
            id="for readers only",
        ),
        pytest.param(
            [wait(), UNBOUND, volume("p", volumeAttributesClassName="gold")],
            "u",
            *[(NOTHING_TO_BIND,)] * 2,
            id="a volume of another attributes class",
        ),
        pytest.param(
            [wait(), UNBOUND, volume("p", claimRef={"namespace": "default", "name": "other"})],
            "u",
            *[(NOTHING_TO_BIND,)] * 2,
            id="a volume meant for another claim",
        ),
        pytest.param(
            [
                wait(),
                UNBOUND,
                volume("q"),
                volume("p", phase="Bound", nodeAffinity=ON_A, claimRef={"namespace": "default", "name": "u"}),
            ],
            "u",
            (),
            (NOTHING_TO_BIND,),
            id="a volume that names the claim is the only one, even out of reach",
        ),
        pytest.param(
            [wait(), UNBOUND, claim("w", storageClassName="wait"), volume("p", nodeAffinity=ON_A), volume("q")],
            "uw",
            (),
            (NOTHING_TO_BIND,),
            id="two claims need two volumes",
        ),
        pytest.param(
            [wait(), UNBOUND, volume("p", nodeAffinity=ON_A), volume("q")],
            "uu",
            (),
            (NOTHING_TO_BIND,),
            id="a claim mounted twice needs two volumes, as kube-scheduler counts",
        ),
        pytest.param(
            [
                wait(),
                claim("s", size="1Gi", storageClassName="wait"),
                claim("l", size="8Gi", storageClassName="wait"),
                volume("p", "1Gi"),
                volume("q", "8Gi", nodeAffinity=ON_A),
            ],
            "ls",
            (),
            (NOTHING_TO_BIND,),
            id="the smallest claim takes the smallest volume, in whatever order they are mounted",
        ),
        pytest.param([wait(provisioner="x"), UNBOUND], "u", (), (), id="a volume can be made anywhere"),
        pytest.param(
            [
                wait(
                    provisioner="x", allowedTopologies=[{"matchLabelExpressions": [{"key": "host", "values": ["b"]}]}]
                ),
                UNBOUND,
            ],
            "u",
            (NOTHING_TO_BIND,),
            (),
            id="a volume can be made where the class allows it",
        ),
        pytest.param(
            [wait(provisioner="x", allowedTopologies=[{"matchLabelExpressions": []}]), UNBOUND],
            "u",
            *[(NOTHING_TO_BIND,)] * 2,
            id="an empty topology allows no node",
        ),
        pytest.param(
            [
                wait(provisioner="x"),
                claim("u", meta={"annotations": {"volume.kubernetes.io/selected-node": "b"}}, storageClassName="wait"),
            ],
            "u",
            (NOTHING_TO_BIND,),
            (),
            id="a claim promised to a node",
        ),
        pytest.param(
            [claim("c", "p"), volume("p", nodeAffinity=ON_B, phase="Bound"), wait(), UNBOUND],
            "cu",
            (AFFINITY, NOTHING_TO_BIND),
            (NOTHING_TO_BIND,),
            id="several reasons at once",
        ),
    ],
)
def test_volumes_that_nodes_can_have(
    objects: list[Object], mounts: str, on_a: tuple[str, ...], on_b: tuple[str, ...]
) -> None:
    state = cluster_of(node("a"), node("b"), *objects)
    assert said(VolumeBinding(), a_pod(*map(mount, mounts)), state) == {"a": on_a, "b": on_b}


BOOKKEEPER = named("CSIDriver", "x", spec={"storageCapacity": True})


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


IN_Z1 = {"required": {TERMS: [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z1"]}]}]}}
GKE_ZONE = "topology.gke.io/zone"


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


def test_a_plan_says_what_each_claim_gets_where() -> None:
    state = cluster_of(
        node("a"), node("b"), wait("wait", "x"), claim("s", storageClassName="wait"),
        claim("l", size="5Gi", storageClassName="wait"), volume("small", "1Gi", nodeAffinity=ON_A),
        volume("large", "5Gi", nodeAffinity=ON_A), volume("huge", "50Gi"),
    )  # fmt: skip
    nodes = Cluster(state).nodes
    claims = [state.store.every(KINDS["PersistentVolumeClaim"])[f"default/{name}"] for name in ("l", "s")]
    plan = VolumeBinding().planner.plan(claims, nodes)  # type: ignore[arg-type]
    assert [(c.name, v.name) for c, v in plan.bindings(0)] == [("s", "small"), ("l", "large")]
    assert [(c.name, v.name) for c, v in plan.bindings(1)] == [("s", "huge")]
    assert [c.name for c in plan.provisions(1)] == ["l"]
    assert plan.open.all()


def test_a_volume_that_is_assumed_to_be_given_away_is_no_longer_free() -> None:
    state = cluster_of(node("a"), wait(), UNBOUND, volume("p"))
    plugin, pod = VolumeBinding(), a_pod(mount("u"))
    assert said(plugin, pod, state) == {"a": ()}
    with state.trial() as trial:
        trial.assume(volume("p", claimRef={"namespace": "default", "name": "other"}))
        assert said(plugin, pod, state) == {"a": (NOTHING_TO_BIND,)}
    assert said(plugin, pod, state) == {"a": ()}


@pytest.mark.parametrize(
    ("hint", "old", "new", "wakes"),
    [
        pytest.param("allows_more", None, wait(), True, id="a new class"),
        pytest.param("allows_more", wait(), wait(), False, id="a class that is as before"),
        pytest.param(
            "allows_more", wait(), wait(allowedTopologies=[{"matchLabelExpressions": []}]), True, id="other topologies"
        ),
        pytest.param("is_claimed", None, claim("c"), True, id="the pod's claim"),
        pytest.param("is_claimed", None, claim("d"), False, id="another claim"),
        pytest.param("moved_other_kinds", None, limits("a"), True, id="a new CSINode"),
        pytest.param(
            "moved_other_kinds", limits("a"), limits("a", d=1), False, id="a CSINode with the same kinds moved"
        ),
        pytest.param("moved_other_kinds", limits("a"), limits("a", "k"), True, id="a kind has moved"),
        pytest.param(
            "stopped_keeping_books", BOOKKEEPER, named("CSIDriver", "x"), True, id="a driver of the pod's own volume"
        ),
        pytest.param("stopped_keeping_books", BOOKKEEPER, BOOKKEEPER, False, id="a driver that goes on keeping books"),
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


@pytest.mark.parametrize("plugin", [VolumeRestrictions(), NodeVolumeLimits(), VolumeZone(), VolumeBinding()])
def test_hints_exist(plugin: Any) -> None:
    for wake in plugin.wakes_on():
        assert not wake.hint or callable(getattr(plugin, wake.hint))
