"""Why claims cannot be allocated on a node: which request lacks devices, and what each device lacks.

device-request      a request, and what is wrong with the devices of its class: too few, a selector, a taint, in use …
device-constraint   each request alone has its devices, but a constraint is not met by them together
device-together     the same without a constraint: there are not enough devices for all requests at once
device-pool         a pool that cannot be used, because it is incomplete or invalid
claim-elsewhere     a claim that was allocated before, to devices that the node does not reach, or that failed

Only a diagnosis asks, so every device is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from stowplan.columns.devices.devices import Devices
from stowplan.columns.devices.pools import DevicePool, NodeDevices, PooledDevice
from stowplan.columns.nodes.views import Nodes
from stowplan.framework.cause_texts import MOST_OF_NAME, few, listed
from stowplan.framework.causes import Cause, Detail, NodeCause
from stowplan.objects.resource_claims import ResourceClaim
from stowplan.objects.texts import shortened
from stowplan.plugins.nodes.default.device_claims.device_expressions import DeviceExpressions
from stowplan.plugins.nodes.default.device_claims.planner import NodeGroup
from stowplan.plugins.nodes.default.device_claims.questions import DeviceQuestion, OneRequest, Trait, tolerates


def of_groups(groups: Iterable[NodeGroup], nodes: Nodes) -> Iterator[NodeCause]:
    """Yield the causes for which the nodes of these groups lack devices. `nodes` are the ones that were rejected."""
    devices, table = nodes.cluster.state.devices, nodes.cluster.state.table
    devices.catch_up()
    rows_of: dict[str, tuple[Cause, list[int]]] = {}
    for group in groups:
        if group.answers is None:
            continue
        for row in group.rows.tolist():
            node = table.nodes[row]
            if node is None:
                continue
            for cause in of_node(group.answers.question, group.claims, devices.of(node), devices):
                rows_of.setdefault(cause.text, (cause, []))[1].append(row)
    for cause, rows in rows_of.values():
        yield NodeCause(np.isin(nodes.rows, rows), cause)


def of_node(
    question: DeviceQuestion, claims: Sequence[ResourceClaim], seen: NodeDevices, devices: Devices
) -> list[Cause]:
    """Return why these claims cannot be allocated on one node, as far as that can be told."""
    found = [_pool(pool) for pool in seen.pools if not pool.usable]
    shortages = [_of_request(question, options, claims, seen, devices) for options in _requests(question)]
    found += [cause for causes in shortages for cause in causes]
    return found or [_together(question, claims, seen, devices)]


def _requests(question: DeviceQuestion) -> Iterator[tuple[OneRequest, ...]]:
    for claim in question.claims:
        for request in claim.requests:
            yield request.options


def _of_request(
    question: DeviceQuestion, options: Sequence[OneRequest], claims: Sequence[ResourceClaim], seen: NodeDevices,
    devices: Devices,
) -> list[Cause]:  # fmt: skip
    """Return what each alternative of a request lacks; nothing if one of them lacks nothing."""
    causes = []
    for request in options:
        cause = DeviceShortage(question, request, claims[request.claim], seen, devices).cause()
        if cause is None:
            return []
        causes.append(cause)
    return causes


class DeviceShortage:
    """What one request lacks on one node. Each device is counted for the first thing that is wrong with it."""

    def __init__(
        self, question: DeviceQuestion, request: OneRequest, claim: ResourceClaim, seen: NodeDevices, devices: Devices
    ) -> None:
        self._question, self._request, self._claim = question, request, claim
        self._expressions, self._devices = DeviceExpressions(), devices
        self.of_class: list[str] = []
        self.good: list[str] = []
        self.wrong: dict[str, list[str]] = {}  # the devices by what is wrong with them
        for pooled in seen.devices:
            if pooled.selected:
                self._look_at(pooled)

    def _look_at(self, pooled: PooledDevice) -> None:
        trait = self._question.traits[self._question.trait_of(pooled)]
        if trait.matches[self._request.number] is not True and not self._is_of_class(pooled):
            return
        self.of_class.append(pooled.device.name)
        why = self._why_not(pooled, trait)
        (self.wrong.setdefault(why, []) if why else self.good).append(pooled.device.name)

    def _is_of_class(self, pooled: PooledDevice) -> bool:
        selectors = self._request.device_class.spec.selectors
        return all(self._holds(each.cel.expression, pooled) is True for each in selectors if each.cel is not None)

    def _holds(self, expression: str, pooled: PooledDevice) -> bool | str:
        return self._expressions(expression).matches(pooled.slice.spec.driver, pooled.device, pooled.alike)

    def _why_not(self, pooled: PooledDevice, trait: Trait) -> str:
        """Return what is wrong with a device of the class: "{is|are} in use", say; "" if nothing is."""
        request = self._request
        for selector in request.spec.selectors:
            text = "" if selector.cel is None else selector.cel.expression
            holds = self._holds(text, pooled)
            if holds is not True:
                shown = shortened(" ".join(text.split()), MOST_OF_NAME)
                return f"{{do}} not match selector {shown}" + (f" ({holds})" if isinstance(holds, str) else "")
        if pooled.id in self._devices.in_use.whole and not request.admin_access:
            return "{is} in use"
        taints = [each for each in pooled.device.taints if not tolerates(request.tolerations, [each])]
        if taints:
            first = taints[0]
            value = f"={first.value}" if first.value else ""
            return f"{{has}} taint {first.key}{value}:{first.effect}, which the request does not tolerate"
        return "{has} too little capacity" if self._lacks_capacity(pooled, trait) else ""

    def _lacks_capacity(self, pooled: PooledDevice, trait: Trait) -> bool:
        amounts = trait.amounts[self._request.number]
        if amounts is None:
            return True
        shared = self._devices.in_use.shared.get(pooled.id)
        consumed: Mapping[str, int] = {} if shared is None else shared.consumed
        return any(consumed.get(name, 0) + amount.nanos > amount.most for name, amount in amounts.items())

    def cause(self) -> Cause | None:
        """Return the cause; None if the request alone has its devices."""
        request = self._request
        matching = len(self.of_class) - sum(len(names) for why, names in self.wrong.items() if why.startswith("{do}"))
        wanted = max(matching, 1) if request.takes_all else request.spec.count
        if len(self.good) >= wanted:
            return None
        name = request.device_class.name
        asked = f"all devices of class {name}" if request.takes_all else f"{_devices(wanted)} of class {name}"
        of_request = f"claim {self._claim.name}, request {request.full_name}"
        text = f"{of_request}: {asked}; the node has {len(self.of_class) or 'none'}"
        reasons = [f"{few(names)} {_inflected(why, len(names))}" for why, names in self.wrong.items()]
        details: dict[str, Detail] = {
            "claim": self._claim.key, "request": request.full_name, "class": name, "wanted": wanted,
            "devices": len(self.of_class), "usable": len(self.good),
            "unusable": {_inflected(why, 2): listed(names) for why, names in self.wrong.items()},
        }  # fmt: skip
        return Cause("device-request", ": ".join((text, *(["; ".join(reasons)] if reasons else []))), details)


def _together(question: DeviceQuestion, claims: Sequence[ResourceClaim], seen: NodeDevices, devices: Devices) -> Cause:
    """Return why requests that have their devices one by one do not have them at the same time."""
    for claim in question.claims:
        for constraint in claim.constraints:
            kind = "distinct" if constraint.distinct else "the same"
            names = sorted(constraint.requests) or ["all requests"]
            text = f"claim {claims[claim.claim].name}: no devices have {kind} {constraint.attribute} for {few(names)}"
            details = {"claim": claims[claim.claim].key, "attribute": constraint.attribute}
            return Cause("device-constraint", text, details)
    free = sum(pooled.id not in devices.in_use.whole for pooled in seen.devices if pooled.selected)
    requests = [options[0].base_name for options in _requests(question)]
    what = "counters of the devices, or the devices themselves, are too few" if _counted(seen) else "there are too few"
    text = f"requests {few(requests)} together: {what}; {_devices(free)} {'is' if free == 1 else 'are'} not in use"
    return Cause("device-together", text, {"requests": listed(requests), "free": free})


def _counted(seen: NodeDevices) -> bool:
    return any(pooled.counters for pooled in seen.devices)


def _pool(pool: DevicePool) -> Cause:
    state = "incomplete: slices are missing" if pool.incomplete else "invalid: names are used twice, or not defined"
    return Cause("device-pool", f"resource pool {pool} is {state}", {"driver": pool.id[0], "pool": pool.id[1]})


def elsewhere(claim: ResourceClaim) -> Cause:
    """The cause of nodes that cannot use an allocated claim."""
    devices = [each.device for each in claim.allocation.devices.results] if claim.allocation is not None else []
    selector = claim.allocation.node_selector if claim.allocation is not None else None
    terms = () if selector is None else selector.node_selector_terms
    names = [value for term in terms for field in term.match_fields for value in field.values]
    where = f" of {few(names)}" if names else ""
    them = "it" if len(devices) == 1 else "them"
    text = f"claim {claim.name} has {few(devices)}{where} already, and the node cannot use {them}"
    return Cause("claim-elsewhere", text, {"claim": claim.key, "devices": listed(devices), "nodes": listed(names)})


def _devices(number: int) -> str:
    return "1 device" if number == 1 else f"{number} devices"


def _inflected(why: str, number: int) -> str:
    words = {"do": "does", "is": "is", "has": "has"} if number == 1 else {"do": "do", "is": "are", "has": "have"}
    for word, form in words.items():
        why = why.replace(f"{{{word}}}", form, 1)
    return why
