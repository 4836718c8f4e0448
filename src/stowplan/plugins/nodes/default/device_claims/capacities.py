"""What a request takes of a device's capacities, as kube-scheduler counts it.

Of every capacity, asked for or not: the amount that is asked for, else the policy's default, else all of it. A policy
rounds the amount up to the next one that is valid, and refuses what is beyond.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stowplan.objects import quantity
from stowplan.objects.quantity import NANO, nanos
from stowplan.objects.resource_claims import CapacityRequest
from stowplan.objects.resource_slices import CapacityPolicy, CapacityRange, DeviceCapacity


class CapacityAmount(NamedTuple):
    """An amount of a capacity: in nano-units, how Go writes it, and how much the device has."""

    nanos: int
    text: str
    most: int


def amounts(
    capacities: Mapping[str, DeviceCapacity], request: CapacityRequest | None
) -> dict[str, CapacityAmount] | None:
    """Return what a request takes of each capacity of a device; None if the device cannot give that at all."""
    asked = {} if request is None else request.requests
    if not asked.keys() <= capacities.keys():
        return None
    found: dict[str, CapacityAmount] = {}
    for name, capacity in capacities.items():
        policy = capacity.request_policy
        text = _taken(asked.get(name), capacity, policy)
        amount = CapacityAmount(nanos(text), text, nanos(capacity.value))
        if amount.nanos > amount.most or (policy is not None and _violates(amount.nanos, text, policy)):
            return None
        found[name] = amount
    return found


def _taken(asked: str | None, capacity: DeviceCapacity, policy: CapacityPolicy | None) -> str:
    if asked is None:
        return str(capacity.value if policy is None or policy.default is None else policy.default)
    if policy is None:
        return str(asked)
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded(asked, policy.valid_range, policy.valid_range.min)
    return next((str(valid) for valid in policy.valid_values if nanos(asked) <= nanos(valid)), str(asked))


def _rounded(asked: str, valid: CapacityRange, least: str) -> str:
    if nanos(asked) < nanos(least):
        return str(least)
    if valid.step is None:
        return str(asked)
    step, first = quantity.value(valid.step), quantity.value(least)
    steps = -((first - quantity.value(asked)) // step)
    return quantity.in_binary(first + step * steps)


def _violates(amount: int, text: str, policy: CapacityPolicy) -> bool:
    if policy.default is not None and quantity.canonical(text) == quantity.canonical(policy.default):
        return False
    valid = policy.valid_range
    if valid is None:
        return bool(policy.valid_values) and all(amount != nanos(each) for each in policy.valid_values)
    if valid.max is not None and amount > nanos(valid.max):
        return True
    if valid.step is None:
        return False
    least = 0 if valid.min is None else quantity.value(valid.min)
    return (-(-amount // NANO) - least) % quantity.value(valid.step) != 0
