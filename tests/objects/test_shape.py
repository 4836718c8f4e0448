"""Pods of one template share a shape; pods of other templates do not."""

from __future__ import annotations

import gc
from typing import Any

import msgspec
import pytest

from stowplan.objects import shape
from stowplan.objects.applications import identity
from stowplan.objects.pods import Pod
from stowplan.objects.shape import signature
from stowplan.testing.builders import HOSTNAME, REQUIRED, a_pod

BASE: dict[str, Any] = {"cpu": "1", "labels": {"app": "x"}, "image": "web"}
TOKEN = [{"name": "kube-api-access-x7k2p", "projected": {}}]
ANTI = {"podAntiAffinity": {REQUIRED: [{"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "x"}}}]}}
RESIZED = {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}


def changed(**keywords: Any) -> Pod:
    return a_pod(**{**BASE, **keywords})


@pytest.mark.parametrize(
    "alike",
    [
        pytest.param(changed(name="other"), id="another name and uid"),
        pytest.param(changed(labels={"app": "y"}), id="other labels"),
        pytest.param(changed(node="a"), id="on a node"),
        pytest.param(changed(annotations={"alibabacloud.com/gpu-index": "0"}), id="with a GPU assigned"),
        pytest.param(changed(priority=5), id="another priority"),
        pytest.param(changed(phase="Running"), id="another phase"),
        pytest.param(changed(terminating=True), id="on its way out"),
        pytest.param(changed(nominated="a"), id="nominated"),
        pytest.param(changed(volumes=TOKEN), id="a volume of which only the name differs"),
        pytest.param(changed(schedulingGates=[{"name": "g"}]), id="gated"),
        pytest.param(changed(status={"conditions": [{"type": "Ready", "status": "True"}]}), id="another condition"),
    ],
)
def test_pods_of_one_template_share_a_shape(alike: Pod) -> None:
    assert signature(alike) == signature(changed())
    assert alike.shape is changed().shape


SIZES = [
    pytest.param(changed(cpu="2"), id="requests"),
    pytest.param(changed(overhead={"cpu": "1"}), id="overhead"),
    pytest.param(changed(resources={"requests": {"cpu": "1"}}), id="requests of the pod itself"),
    pytest.param(changed(status=RESIZED), id="a resize in flight"),
    pytest.param(
        changed(status={**RESIZED, "conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}),
        id="a resize that will not come",
    ),
]
OTHERS = [
    pytest.param(changed(namespace="other"), id="the namespace"),
    pytest.param(changed(image="db"), id="the image"),
    pytest.param(changed(ports=[80]), id="host ports"),
    pytest.param(changed(node_selector={"zone": "a"}), id="a node selector"),
    pytest.param(changed(tolerations=["k=v:NoSchedule"]), id="tolerations"),
    pytest.param(changed(affinity=ANTI), id="affinity"),
    pytest.param(changed(topologySpreadConstraints=[{"topologyKey": "zone", "maxSkew": 1}]), id="spreading"),
    pytest.param(changed(annotations={"gpu-fraction": "0.5"}), id="a share of a GPU"),
    pytest.param(changed(initContainers=[{"name": "i"}]), id="init containers"),
    pytest.param(changed(initContainers=[{"name": "i", "restartPolicy": "Always"}]), id="a sidecar"),
    pytest.param(changed(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]), id="a claim"),
    pytest.param(changed(volumes=[{"name": "v", "gcePersistentDisk": {"pdName": "d"}}]), id="a disk"),
    pytest.param(changed(resourceClaims=[{"name": "gpu"}]), id="a resource claim"),
    pytest.param(changed(hostNetwork=True), id="the host's network"),
    pytest.param(changed(hostUsers=False), id="users of its own"),
]


@pytest.mark.parametrize("other", [*SIZES, *OTHERS])
def test_pods_of_different_templates_have_different_shapes(other: Pod) -> None:
    assert signature(other) != signature(changed())
    assert other.shape is not changed().shape


@pytest.mark.parametrize("other", SIZES)
def test_pods_that_differ_in_their_requests_share_the_rest(other: Pod) -> None:
    mine, base = other.shape, changed().shape
    assert mine.unsized is not None and mine.unsized is base.unsized
    assert mine.unsized.unsized is None
    for value in ("node_terms", "required_anti_affinity", "host_ports", "uses", "tolerations"):
        assert getattr(mine, value) is getattr(base, value)


@pytest.mark.parametrize("other", OTHERS)
def test_pods_that_differ_in_anything_else_do_not(other: Pod) -> None:
    unsized = (other.shape.bare or other.shape).unsized
    shares = other.shape.bare is not None  # volumes are apart from it all
    assert (unsized is changed().shape.unsized) == shares


def test_each_pod_has_requests_of_its_own() -> None:
    small, large = changed(cpu="1"), changed(cpu="2", memory="1Gi")
    assert (small.shape.request["cpu"], large.shape.request["cpu"]) == (1000, 2000)
    assert dict(large.shape.taken)["cpu"] == 2000 and large.shape.presumed == (2000, 2**30)


def test_an_ephemeral_volume_makes_the_name_part_of_the_shape() -> None:
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}}]
    one, other = changed(name="one", volumes=volumes), changed(name="other", volumes=volumes)
    assert signature(one) != signature(other)
    assert one.shape.claims == ("default/one-scratch",)


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    sidecar = {
        "name": "s",
        "restartPolicy": "Always",
        "ports": [{"hostPort": 82, "hostIP": "10.0.0.1", "protocol": "UDP"}],
    }
    init = {"name": "i", "ports": [{"hostPort": 83}]}
    pod = changed(ports=[80], initContainers=[sidecar, init])
    assert set(pod.shape.host_ports) == {("0.0.0.0", "TCP", 80), ("10.0.0.1", "UDP", 82)}


def test_unused_shapes_are_dropped() -> None:
    before = len(shape._shapes)
    for number in range(3000):
        assert a_pod(cpu=number).shape
    assert len(shape._shapes) <= before + shape.RECENT_SHAPES


def test_derived_values_are_no_part_of_a_pod() -> None:
    one, other = changed(labels={"spark-role": "driver"}), changed(labels={"spark-role": "driver"})
    assert one.shape is one.shape and identity(one) is identity(one)
    assert one == other and msgspec.json.encode(one, enc_hook=str) == msgspec.json.encode(other, enc_hook=str)
    relabelled = msgspec.structs.replace(one, metadata=msgspec.structs.replace(one.metadata, labels={}))
    assert identity(one).role == "driver" and identity(relabelled).role == ""


def test_a_shape_keeps_nothing_of_a_pod_but_its_template() -> None:
    """Recent shapes stay when their pods are gone, and annotations may be large."""
    pod = a_pod("fat", labels={"app": "web"}, cpu="1234567m")  # of a shape that no other test has
    pod.annotations["a"] = "x" * 250_000
    assert (pod.shape.pod.key, pod.shape.pod.annotations, pod.shape.pod.labels) == ("default/fat", {}, {})
    assert pod.annotations and pod.labels, "the pod itself has them"


def test_a_large_shape_goes_with_its_pods() -> None:
    large = {f"example.com/r{number}": "x" * 60 for number in range(300)}
    pod = a_pod("large", node_selector=large)
    key = pod.shape.key
    assert len(key) > shape.LONGEST_RECENT and key in shape._shapes
    del pod
    gc.collect()
    assert key not in shape._shapes


def test_pods_that_differ_in_their_volumes_share_the_rest() -> None:
    """The pods of a StatefulSet have a claim each, and are alike otherwise."""

    def claiming(name: str, **more: Any) -> Pod:
        return changed(volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": name}}], **more)

    one, other, larger = claiming("one"), claiming("other"), claiming("one", cpu="2")

    assert one.shape is not other.shape and one.shape.bare is other.shape.bare is changed().shape
    assert one.shape.request is other.shape.request and one.shape.claims != other.shape.claims
    assert larger.shape.bare is not one.shape.bare
    assert changed().shape.bare is None
