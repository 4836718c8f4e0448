"""LeafNodeVolumeBinding: what claims need on host nodes, on leaf nodes of one node, and on those of a whole cluster."""

from __future__ import annotations

import pytest

from stowplan.columns.nodes.views import Cluster
from stowplan.objects.changes import Put
from stowplan.objects.meta import Object
from stowplan.plugins.nodes.default.volume_binding import VolumeBinding
from stowplan.plugins.nodes.leaf_nodes.volume_binding import LeafNodeVolumeBinding
from tests.plugins.nodes.default.volumes import (
    AFFINITY,
    GONE,
    NOTHING_TO_BIND,
    ON_A,
    a_pod,
    claim,
    cluster_of,
    mount,
    named,
    reached_from,
    said,
    volume,
    wait,
)

LEAF, TAINT = {"kosmos.io/node": "true"}, {"key": "kosmos.io/node", "value": "true", "effect": "NoSchedule"}
CLUSTER = {"leafNodeMode": "one2cluster"}


def leaf(name: str, of: str, annotations: dict[str, str] = CLUSTER) -> Object:
    """A node that stands for a cluster, or without the annotation for one of its nodes."""
    meta = {"labels": {"host": name, **LEAF}, "annotations": {**annotations, "kosmos-io/owned-by-cluster": of}}
    return named("Node", name, meta, spec={"taints": [TAINT]})


NODES = [named("Node", "a", {"labels": {"host": "a"}}), leaf("one", "m1", {}), leaf("m1", "m1"), leaf("m2", "m2")]
OF_M1 = {"annotations": {"kosmos-io/cluster-owners": "m1"}}
U = claim("c", storageClassName="wait")
MADE = wait("made", "csi.example.com")


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            [claim("c", "v"), volume("v", nodeAffinity=ON_A)],
            {"one": (AFFINITY,), "m1": (AFFINITY,), "m2": (AFFINITY,)}, id="bound to a volume of a host node",
        ),
        pytest.param(
            [claim("c", "v"), volume("v", meta=OF_M1)], {"m2": (AFFINITY,)}, id="to a volume of a member cluster",
        ),
        pytest.param(
            [claim("c", "v"), volume("v")], {"m1": (AFFINITY,), "m2": (AFFINITY,)},
            id="to a volume of nobody, without an affinity",
        ),
        pytest.param(
            [claim("c", "v"), volume("v", nodeAffinity=reached_from("host", "m2"))],
            {"a": (AFFINITY,), "one": (AFFINITY,), "m1": (AFFINITY,)}, id="to a volume of nobody, on a leaf node",
        ),
        pytest.param([claim("c", "v")], dict.fromkeys(("a", "one", "m1", "m2"), (GONE,)), id="to a lost volume"),
        pytest.param(
            [U, wait()], {"a": (NOTHING_TO_BIND,), "m1": (NOTHING_TO_BIND,), "m2": (NOTHING_TO_BIND,)},
            id="unbound, without a volume and a provisioner",
        ),
        pytest.param([claim("c", storageClassName="made"), MADE], {}, id="unbound, and one can be provisioned"),
        pytest.param(
            [U, wait(), volume("v", nodeAffinity=reached_from("host", "m1"))],
            {"a": (NOTHING_TO_BIND,), "m2": (NOTHING_TO_BIND,)}, id="unbound, with a volume on a leaf node",
        ),
        pytest.param(
            [claim("c", meta=OF_M1, storageClassName="made"), MADE], {"m2": (NOTHING_TO_BIND,)},
            id="unbound, of a member cluster",
        ),
        pytest.param(
            [claim("c", meta=OF_M1, storageClassName="wait"), wait()],
            {"a": (NOTHING_TO_BIND,), "m1": (NOTHING_TO_BIND,), "m2": (NOTHING_TO_BIND,)},
            id="unbound, of a member cluster, and nobody provisions",
        ),
    ],
)  # fmt: skip
def test_claims(objects: list[Object], expected: dict[str, tuple[str, ...]]) -> None:
    found = said(LeafNodeVolumeBinding(), a_pod(mount("c")), cluster_of(*NODES, *objects))
    assert {name: reasons for name, reasons in found.items() if reasons} == expected


def test_some_claims_bound_and_some_not() -> None:
    """A leaf node of one node is then as any other."""
    bound = [claim("c", "v"), volume("v", nodeAffinity=reached_from("host", "one"), storageClassName="another")]
    objects = [*bound, claim("d", storageClassName="wait"), wait()]
    found = said(LeafNodeVolumeBinding(), a_pod(mount("c"), mount("d")), cluster_of(*NODES, *objects))
    assert found["one"] == (NOTHING_TO_BIND,)
    assert found["a"] == (AFFINITY, NOTHING_TO_BIND)


def test_a_pod_without_claims_is_skipped() -> None:
    assert said(LeafNodeVolumeBinding(), a_pod(), cluster_of(*NODES)) == {}


def test_without_leaf_nodes_it_is_volume_binding() -> None:
    other = named("Node", "b", {"labels": {"host": "b"}})
    state = cluster_of(NODES[0], other, claim("c", "v"), volume("v", nodeAffinity=ON_A))
    pod = a_pod(mount("c"))
    assert said(LeafNodeVolumeBinding(), pod, state) == said(VolumeBinding(), pod, state) == {"a": (), "b": (AFFINITY,)}


def test_a_node_that_changes_is_looked_at_again() -> None:
    plugin, state = LeafNodeVolumeBinding(), cluster_of(*NODES, claim("c", "v"), volume("v", meta=OF_M1))
    pod = a_pod(mount("c"))
    assert said(plugin, pod, state)["m2"] == (AFFINITY,)
    state.apply(Put(leaf("m2", "m1")))
    assert said(plugin, pod, state)["m2"] == ()
    state.apply(Put(named("Node", "m1", {"labels": {"host": "m1"}})))
    assert said(plugin, pod, state)["m1"] == (), "a host node reaches a volume without an affinity"
    other = cluster_of(leaf("x", "m2"), *NODES, claim("c", "v"), volume("v", meta=OF_M1))
    assert said(plugin, pod, other)["x"] == (AFFINITY,), "of another cluster"


@pytest.mark.parametrize(
    ("node", "taken"),
    [
        pytest.param("a", True, id="a host node"),
        pytest.param("m1", False, id="a cluster"),
        pytest.param("one", False, id="a node of a cluster"),
    ],
)
def test_what_is_chosen_on_a_leaf_node_is_bound_in_its_cluster(node: str, taken: bool) -> None:
    state = cluster_of(*NODES, claim("c", storageClassName="made"), MADE)
    plugin, pod = LeafNodeVolumeBinding(), a_pod(mount("c"))
    assert plugin.reserve(pod, node, Cluster(state)) is None
    assert bool(state.assumed.taken_by(pod.uid)) == taken
    assert bool(list(plugin.pre_bind(pod, node, Cluster(state)))) == taken
    if not taken:
        assert plugin.pre_bound(pod, node, Cluster(state)) is True


def test_arguments() -> None:
    assert LeafNodeVolumeBinding(bind_timeout_seconds=5).pre_bind_timeout == 5
