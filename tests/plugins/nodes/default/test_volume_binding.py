"""VolumeBinding in small clusters: claims that pods cannot use, and volumes that nodes can have.

What CSI drivers say of space and of volumes that moved to them is in `test_volume_binding_csi.py`.
"""

from __future__ import annotations

import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.objects.kinds import KINDS, convert
from stowplan.objects.meta import Object
from stowplan.plugins.nodes.default.volume_binding import VolumeBinding
from tests.plugins.nodes.default.volumes import (
    AFFINITY,
    EPHEMERAL,
    GONE,
    NOTHING_TO_BIND,
    ON_A,
    ON_B,
    UNBOUND,
    a_pod,
    claim,
    cluster_of,
    mount,
    named,
    node,
    said,
    volume,
    wait,
)

TERMS = "nodeSelectorTerms"


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
