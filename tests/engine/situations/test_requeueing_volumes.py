"""What requeues a pod that was rejected because of its volumes: claims, volumes, classes, drivers, attachments, pods,
nodes.
"""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.objects.changes import Gone
from stowplan.objects.meta import Object
from stowplan.objects.pods import Pod
from stowplan.testing.builders import a_node, a_pod
from tests.engine.situations.requeueing import queued_again, rejected
from tests.plugins.nodes.default.volumes import attachment, claim, csi, limits, mount, named, volume

ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
MIGRATED = "storage.alpha.kubernetes.io/migrated-plugins"
ONE_POD: dict[str, Any] = {"accessModes": ["ReadWriteOncePod"]}


def using(name: str, *claims: str, node: str = "", inline: dict[str, Any] | None = None) -> Pod:
    """Return a pod that mounts these claims, and perhaps an inline volume."""
    volumes = [{"name": each, **mount(each)} for each in claims]
    return a_pod(name, node=node, volumes=[*volumes, *([{"name": "inline", **inline}] if inline else [])])


def pv(name: str, zone: str = "", on: tuple[str, str] | None = None, **spec: Any) -> Object:
    """Return a volume without a class, labelled with a zone, or limited to nodes with a label."""
    labels = {ZONE: zone} if zone else {}
    if on is not None:
        expression = {"key": on[0], "operator": "In", "values": [on[1]]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return volume(name, meta={"labels": labels}, **{"storageClassName": "", **spec})


def a_class(mode: str = "WaitForFirstConsumer", zone: str = "", **labels: str) -> Object:
    topologies = [{"matchLabelExpressions": [{"key": ZONE, "values": [zone]}]}] if zone else []
    meta = {"labels": labels}
    return named("StorageClass", "sc1", meta, provisioner="p", volumeBindingMode=mode, allowedTopologies=topologies)


def csi_node(name: str, **annotations: str) -> Object:
    return named("CSINode", name, {"annotations": annotations})


def driver(keeps_books: bool) -> Object:
    return named("CSIDriver", "csidriver", spec={"storageCapacity": keeps_books})


def capacity(amount: int) -> Object:
    meta = {"namespace": "default"}
    return named("CSIStorageCapacity", "csc", meta, storageClassName="sc1", capacity=str(amount))


IN_WEST = a_node("n", labels={"node": "n", ZONE: "west"})
HELD = [IN_WEST, pv("pv1", "west"), claim("pvc1", "pv1", **ONE_POD), using("pod1", "pvc1", node="n")]
BOUND2 = claim("pvc2", "pv2", **ONE_POD)

ZONES = [
    pytest.param(
        "VolumeZone",
        [*HELD, BOUND2],
        [using("pod2", "pvc2")],
        [pv("pv2", "west")],
        {"pod2"},
        id="zones: the volume comes",
    ),
    pytest.param(
        "VolumeZone",
        [*HELD, BOUND2, pv("pv2", "east")],
        [using("pod2", "pvc2")],
        [pv("pv2", "west")],
        {"pod2"},
        id="zones: the volume is in another zone now",
    ),
    pytest.param(
        "VolumeZone",
        [*HELD, pv("pv2", "east")],
        [using("pod2", "pvc2"), using("pod3", "pvc3")],
        [BOUND2],
        {"pod2"},
        id="zones: the claim comes",
    ),
    pytest.param(
        "VolumeZone",
        [*HELD, pv("pv2", "east"), claim("pvc2", meta={"annotations": {}}, **ONE_POD)],
        [using("pod2", "pvc2"), using("pod3", "pvc3")],
        [BOUND2],
        {"pod2"},
        id="zones: the claim is bound",
    ),
    pytest.param(
        "VolumeZone",
        [*HELD, BOUND2],
        [using("pod2", "pvc2")],
        [a_class()],
        {"pod2"},
        id="zones: a class comes that waits",
    ),
    pytest.param(
        "VolumeZone",
        [*HELD, BOUND2, pv("pv2", "east")],
        [using("pod2", "pvc2")],
        [volume("pv2", meta={"labels": {ZONE: "east", "unrelated": "x"}}, storageClassName="")],
        set(),
        id="zones: the volume changes otherwise",
    ),
]

RESTRICTIONS = [
    pytest.param(
        "VolumeRestrictions",
        [a_node("n"), pv("pv1")],
        [using("pod1", "pvc1"), using("pod2", "pvc2")],
        [claim("pvc1", "pv1", **ONE_POD)],
        {"pod1"},
        id="restrictions: the claim comes",
    ),
    pytest.param(
        "VolumeRestrictions",
        [a_node("n"), pv("pv1"), claim("pvc1", "pv1", **ONE_POD), using("pod1", "pvc1", node="n")],
        [using("pod2", "pvc1"), using("pod3", "pvc2")],
        [Gone(a_pod("pod1"))],
        {"pod2"},
        id="restrictions: the pod is deleted that had the claim",
    ),
]

N = a_node("n", labels={"node": "n", "aaa": "bbb"})
UNBOUND = claim("pvc1")
OF_CLASS = claim("pvc1", storageClassName="sc1")
POD1 = using("pod1", "pvc1")
WITH_INLINE = using("pod1", "pvc1", inline={"csi": {"driver": "csidriver"}})

BINDING = [
    pytest.param(
        "VolumeBinding",
        [a_node("n", labels={ZONE: "1b"}), pv("pv1", on=(ZONE, "1a")), claim("pvc1", "pv1")],
        [POD1],
        [a_node("m", labels={ZONE: "1a"})],
        {"pod1"},
        id="binding: a node comes",
    ),
    pytest.param(
        "VolumeBinding",
        [N, pv("pv1", on=("aaa", "ccc")), claim("pvc1", "pv1")],
        [POD1],
        [a_node("n", labels={"node": "n", "aaa": "ccc"})],
        {"pod1"},
        id="binding: a node gets another label",
    ),
    pytest.param(
        "VolumeBinding",
        [N, pv("pv1", on=("aaa", "ccc")), claim("pvc1", "pv1")],
        [POD1],
        [Gone(pv("pv1")), pv("pv1", on=("aaa", "bbb"))],
        {"pod1"},
        id="binding: the volume is created again",
    ),
    pytest.param(
        "VolumeBinding",
        [a_node("n", labels={ZONE: "1a"}), pv("pv1", on=(BETA_ZONE, "1a")), claim("pvc1", "pv1")],
        [POD1],
        [pv("pv1", on=(ZONE, "1a"))],
        {"pod1"},
        id="binding: the volume can be reached from elsewhere now",
    ),
    pytest.param(
        "VolumeBinding",
        [N, pv("pv1"), UNBOUND, claim("pvc2")],
        [POD1, using("pod2", "pvc2")],
        [Gone(UNBOUND), claim("pvc1", "pv1")],
        {"pod1"},
        id="binding: the claim is created again",
    ),
    pytest.param(
        "VolumeBinding",
        [N, pv("pv1"), UNBOUND, claim("pvc2")],
        [POD1, using("pod2", "pvc2")],
        [claim("pvc1", "pv1")],
        {"pod1"},
        id="binding: the claim is bound",
    ),
    pytest.param(
        "VolumeBinding",
        [N, pv("pv1", storageClassName="sc1"), OF_CLASS],
        [POD1],
        [a_class()],
        {"pod1"},
        id="binding: the class comes",
    ),
    pytest.param(
        "VolumeBinding",
        [a_node("n", labels={ZONE: "1a"}), pv("pv1", storageClassName="other"), OF_CLASS, a_class(zone="1c")],
        [POD1],
        [a_class(zone="1a")],
        {"pod1"},
        id="binding: the class is allowed elsewhere",
    ),
    pytest.param(
        "VolumeBinding",
        [
            a_node("n", labels={ZONE: "1c"}),
            pv("pv1", storageClassName="other"),
            OF_CLASS,
            a_class(zone="1a", key="value"),
        ],
        [POD1],
        [a_class(zone="1a", key="updated")],
        set(),
        id="binding: the class changes otherwise",
    ),
    pytest.param(
        "VolumeBinding",
        [N, pv("pv1"), UNBOUND],
        [POD1],
        [csi_node("n")],
        {"pod1"},
        id="binding: a node's drivers become known",
    ),
    pytest.param(
        "VolumeBinding",
        [N, pv("pv1", storageClassName="sc1"), OF_CLASS, csi_node("n")],
        [POD1],
        [csi_node("n", **{MIGRATED: "value"})],
        {"pod1"},
        id="binding: a node's drivers take over other kinds of disks",
    ),
    pytest.param(
        "VolumeBinding",
        [N, pv("pv1"), UNBOUND, driver(keeps_books=True)],
        [WITH_INLINE],
        [driver(keeps_books=False)],
        {"pod1"},
        id="binding: a driver stops reporting its capacity",
    ),
    pytest.param(
        "VolumeBinding",
        [N, pv("pv1"), UNBOUND, driver(keeps_books=False)],
        [WITH_INLINE],
        [driver(keeps_books=True)],
        set(),
        id="binding: a driver starts reporting its capacity",
    ),
    pytest.param(
        "VolumeBinding",
        [N, pv("pv1", storageClassName="sc1"), OF_CLASS, a_class("Immediate")],
        [POD1],
        [capacity(10)],
        {"pod1"},
        id="binding: space becomes known",
    ),
    pytest.param(
        "VolumeBinding",
        [N, pv("pv1", storageClassName="sc1"), OF_CLASS, a_class("Immediate"), capacity(10)],
        [POD1],
        [capacity(20)],
        {"pod1"},
        id="binding: there is more space",
    ),
    pytest.param(
        "VolumeBinding",
        [N, pv("pv1"), UNBOUND, a_class("Immediate"), capacity(10)],
        [POD1],
        [capacity(5)],
        set(),
        id="binding: there is less space",
    ),
]


def disk(name: str, driver: str = "csidriver") -> Object:
    return pv(name, **csi(driver, f"handle-of-{name}"))


FULL = [a_node("n", labels={"node": "n"}), driver(keeps_books=True), disk("pv1"), claim("pvc1", "pv1")]
INLINE_DISKS = [
    using("pod1", inline={"awsElasticBlockStore": {"volumeID": "pv1"}}),
    using("pod2", inline={"gcePersistentDisk": {"pdName": "pv2"}}),
]

LIMITS = [
    pytest.param(
        "NodeVolumeLimits",
        [*FULL, limits("n", csidriver=0)],
        [POD1],
        [csi_node("other")],
        {"pod1"},
        id="limits: the drivers of some node become known",
    ),
    pytest.param(
        "NodeVolumeLimits",
        [*FULL, disk("pv2"), claim("pvc2", "pv2"), limits("n", csidriver=1), using("pod1", "pvc1", node="n")],
        [using("pod2", "pvc2")],
        [Gone(a_pod("pod1"))],
        {"pod2"},
        id="limits: a pod is deleted that had a volume",
    ),
    pytest.param(
        "NodeVolumeLimits",
        [*FULL, disk("pv2"), limits("n", csidriver=1), using("pod1", "pvc1", node="n")],
        [using("pod2", "pvc2")],
        [claim("pvc2", "pv2")],
        {"pod2"},
        id="limits: the claim comes",
    ),
    pytest.param(
        "",
        [*FULL, limits("n", csidriver=0), attachment("va1", "test.storage.gke.io", "n", "pv1")],
        [POD1],
        [Gone(attachment("va1", "test.storage.gke.io", "n", "pv1"))],
        {"pod1"},
        id="limits: a volume is detached, of whatever driver, and the pod has a claim",
    ),
    pytest.param(
        "",
        [
            a_node("n"),
            disk("pv1", "ebs.csi.aws.com"),
            disk("pv2", "pd.csi.storage.gke.io"),
            claim("pvc1", "pv1"),
            claim("pvc2", "pv2"),
            limits("n", ebs_csi_aws_com=0, pd_csi_storage_gke_io=0),
            attachment("va1", "ebs.csi.aws.com", "n", "pv1"),
            attachment("va2", "pd.csi.storage.gke.io", "n", "pv2"),
        ],
        INLINE_DISKS,
        [Gone(attachment("va1", "ebs.csi.aws.com", "n", "pv1"))],
        {"pod1"},
        id="limits: a volume is detached, and the pods have disks of their own, one of that driver's kind",
    ),
]

ROWS = [*ZONES, *RESTRICTIONS, *BINDING, *LIMITS]


@pytest.mark.parametrize(("plugins", "there", "pods", "happens", "requeued"), ROWS)
def test_what_requeues_a_pod(
    plugins: str, there: list[Object], pods: list[Pod], happens: list[Object | Gone], requeued: set[str]
) -> None:
    world = rejected(plugins, there, pods)
    assert queued_again(world, pods, happens) == requeued
