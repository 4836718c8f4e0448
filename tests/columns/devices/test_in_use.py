"""Which devices are in use: whole ones, and shares of them."""

from __future__ import annotations

from typing import Any

from stowplan.columns.state import ClusterState
from stowplan.objects.changes import Gone, Put
from stowplan.objects.kinds import convert
from stowplan.objects.resource_claims import ResourceClaim

GPU = ("gpu.example.com", "pool", "gpu-0")


def a_claim(name: str, **result: Any) -> ResourceClaim:
    driver, pool, device = GPU
    results = [{"request": "r", "driver": driver, "pool": pool, "device": device, **result}]
    return convert(
        ResourceClaim,
        {
            "metadata": {"name": name, "namespace": "default", "uid": name},
            "status": {"allocation": {"devices": {"results": results}}},
        },
    )


def test_a_device_is_in_use_while_its_claim_is_allocated() -> None:
    state = ClusterState()
    state.apply(Put(a_claim("mine")))
    state.devices.catch_up()
    assert state.devices.in_use.is_used(GPU)
    state.apply(Gone(a_claim("mine")))
    state.devices.catch_up()
    assert not state.devices.in_use.is_used(GPU)


def test_admin_access_takes_nothing() -> None:
    state = ClusterState()
    state.apply(Put(a_claim("mine", adminAccess=True)))
    state.devices.catch_up()
    assert not state.devices.in_use.is_used(GPU)


def test_shares_add_up_and_the_device_stays_open_to_others() -> None:
    state = ClusterState()
    for number, amount in enumerate(("10Gi", "6Gi")):
        state.apply(Put(a_claim(f"claim-{number}", shareID=f"s{number}", consumedCapacity={"memory": amount})))
    state.devices.catch_up()
    in_use = state.devices.in_use
    assert GPU not in in_use.whole
    assert in_use.shared[GPU].consumed == {"memory": 16 * 2**30 * 10**9}
    state.apply(Gone(a_claim("claim-0")))
    state.devices.catch_up()
    assert in_use.shared[GPU].consumed == {"memory": 6 * 2**30 * 10**9}
