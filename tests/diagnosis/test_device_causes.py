"""What DynamicResources names: the request that lacks devices, and what the devices lack."""

from __future__ import annotations

from typing import Any

import pytest

from stowplan.columns.state import ClusterState
from stowplan.objects.devices import DeviceClass
from stowplan.objects.kinds import convert
from stowplan.objects.meta import Object
from stowplan.objects.resource_claims import ResourceClaim
from stowplan.objects.resource_slices import ResourceSlice
from stowplan.testing.builders import a_node, a_pod, a_state
from tests.diagnosis.cause_lines import node_causes, the_cause, whole_pod

DRIVER = "gpu.example.com"
MODEL = 'device.attributes["gpu.example.com"].model == "h100"'


def a_class(name: str = "gpu", expression: str = 'device.driver == "gpu.example.com"') -> DeviceClass:
    selectors = [{"cel": {"expression": expression}}]
    return convert(DeviceClass, {"metadata": {"name": name}, "spec": {"selectors": selectors}})


def a_device(name: str, model: str = "a100", **more: Any) -> dict[str, Any]:
    return {"name": name, "attributes": {"model": {"string": model}, "root": {"string": f"root-{name}"}}, **more}


def a_slice(node: str, *devices: dict[str, Any], count: int = 1) -> ResourceSlice:
    pool = {"name": node, "generation": 1, "resourceSliceCount": count}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": list(devices)}
    return convert(ResourceSlice, {"metadata": {"name": f"{node}-gpu"}, "spec": spec})


def a_claim(name: str = "mine", *requests: dict[str, Any], **more: Any) -> ResourceClaim:
    meta = {"name": name, "namespace": "default", "uid": f"claim-{name}"}
    return convert(ResourceClaim, {"metadata": meta, "spec": {"devices": {"requests": list(requests), **more}}})


def exactly(name: str = "gpu", count: int = 1, **more: Any) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count, **more}}


def taken(device: str, node: str = "a", name: str = "other") -> ResourceClaim:
    meta = {"name": name, "namespace": "default", "uid": f"claim-{name}"}
    results = [{"request": "gpu", "driver": DRIVER, "pool": node, "device": device}]
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    status = {"allocation": {"devices": {"results": results}, "nodeSelector": selector}}
    spec = {"devices": {"requests": [exactly()]}}
    return convert(ResourceClaim, {"metadata": meta, "spec": spec, "status": status})


def a_user(*names: str) -> Any:
    entries = [{"name": f"c{number}", "resourceClaimName": name} for number, name in enumerate(names or ("mine",))]
    return a_pod(resourceClaims=entries)


def cluster(*others: Object, nodes: str = "ab") -> ClusterState:
    return a_state(nodes=[a_node(name) for name in nodes], others=[a_class(), *others])


HEAD = "device-request: claim mine, request gpu: "
TAINT = {"key": "example.com/broken", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param(
            [a_claim("mine", exactly())], {"a b": [f"{HEAD}1 device of class gpu; the node has none"]}, id="no devices"
        ),
        pytest.param(
            [a_claim("mine", exactly(count=3)), a_slice("a", a_device("gpu-0"), a_device("gpu-1"))],
            {
                "a": [f"{HEAD}3 devices of class gpu; the node has 2"],
                "b": [f"{HEAD}3 devices of class gpu; the node has none"],
            },
            id="too few",
        ),
        pytest.param(
            [
                a_claim("mine", exactly(selectors=[{"cel": {"expression": MODEL}}])),
                *(a_slice(node, a_device("gpu-0"), a_device("gpu-1", "l4")) for node in "ab"),
            ],
            {"a b": [f"{HEAD}1 device of class gpu; the node has 2: gpu-0, gpu-1 do not match selector {MODEL}"]},
            id="a selector",
        ),
        pytest.param(
            [a_claim("mine", exactly()), *(a_slice(node, a_device("gpu-0", taints=[TAINT])) for node in "ab")],
            {
                "a b": [
                    f"{HEAD}1 device of class gpu; the node has 1: gpu-0 has taint example.com/broken=yes:NoSchedule, "
                    "which the request does not tolerate"
                ]
            },
            id="a taint",
        ),
        pytest.param(
            [
                a_claim("mine", exactly(count=2)),
                taken("gpu-0"),
                *(a_slice(node, a_device("gpu-0"), a_device("gpu-1")) for node in "a"),
            ],
            {
                "a": [f"{HEAD}2 devices of class gpu; the node has 2: gpu-0 is in use"],
                "b": [f"{HEAD}2 devices of class gpu; the node has none"],
            },
            id="one is in use",
        ),
        pytest.param(
            [a_claim("mine", exactly()), a_slice("a", a_device("gpu-0"), count=2)],
            {
                "a": [
                    "device-pool: resource pool gpu.example.com/a is incomplete: slices are missing",
                    f"{HEAD}1 device of class gpu; the node has none",
                ],
                "b": [f"{HEAD}1 device of class gpu; the node has none"],
            },
            id="an incomplete pool",
        ),
        pytest.param(
            [
                a_claim(
                    "mine", exactly("one"), exactly("two"),
                    constraints=[{"requests": ["one", "two"], "matchAttribute": "gpu.example.com/root"}],
                ),
                *(a_slice(node, a_device("gpu-0"), a_device("gpu-1")) for node in "ab"),
            ],
            {
                "a b": [
                    "device-constraint: claim mine: no devices have the same gpu.example.com/root for one, two"
                ]
            },
            id="a constraint",
        ),
        pytest.param(
            [
                a_claim("mine", exactly("one"), exactly("two")),
                *(a_slice(node, a_device("gpu-0")) for node in "ab"),
            ],
            {"a b": ["device-together: requests one, two together: there are too few; 1 device is not in use"]},
            id="too few for all requests",
        ),
    ],
)  # fmt: skip
def test_why_a_claim_cannot_be_allocated(others: list[Object], expected: dict[str, list[str]]) -> None:
    assert node_causes(a_user(), cluster(*others)) == expected


def test_each_alternative_says_what_it_lacks() -> None:
    options = [
        {"name": "big", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 4},
        {"name": "small", "deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2},
    ]
    claim = a_claim("mine", {"name": "gpu", "firstAvailable": options})
    head = "device-request: claim mine, request gpu"
    assert node_causes(a_user(), cluster(claim, a_slice("a", a_device("gpu-0")), nodes="a")) == {
        "a": [
            f"{head}/big: 4 devices of class gpu; the node has 1",
            f"{head}/small: 2 devices of class gpu; the node has 1",
        ]
    }


def test_a_claim_that_is_allocated_elsewhere() -> None:
    state = cluster(taken("gpu-0", name="mine"), a_slice("a", a_device("gpu-0")), nodes="b")
    text = "claim-elsewhere: claim mine has gpu-0 of a already, and the node cannot use it"
    assert node_causes(a_user(), state) == {"b": [text]}


def test_details_are_for_programs() -> None:
    state = cluster(a_claim("mine", exactly(count=2)), taken("gpu-0"), a_slice("a", a_device("gpu-0")), nodes="a")
    assert the_cause(a_user(), state).details == {
        "claim": "default/mine", "request": "gpu", "class": "gpu", "wanted": 2, "devices": 1, "usable": 0,
        "unusable": {"are in use": ("gpu-0",)},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param([], 'could not find ResourceClaim "default/mine"', id="a claim that does not exist"),
        pytest.param(
            [a_claim("mine", {"name": "gpu", "exactly": {"deviceClassName": "none", "count": 1}})],
            "request gpu: device class none does not exist",
            id="a class that does not exist",
        ),
    ],
)
def test_what_is_wrong_with_a_claim_itself(others: list[Object], expected: str) -> None:
    assert whole_pod(a_user(), cluster(*others)) == [f"resource-claim: {expected}"]
