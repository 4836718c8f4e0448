"""What a search found as the API's AllocationResult: results, configuration, and the nodes that can use the devices."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from stowplan.columns.devices.pools import PooledDevice
from stowplan.objects.quantity import Quantity, canonical
from stowplan.objects.resource_claims import (
    FROM_CLAIM,
    FROM_CLASS,
    AllocatedConfiguration,
    AllocatedDevice,
    AllocatedDevices,
    AllocationResult,
    ResourceClaim,
)
from stowplan.objects.resource_slices import NodeRequirement, NodeSelectorOfDevices, NodeTermOfDevices
from stowplan.plugins.nodes.default.device_claims.questions import DeviceQuestion, FatalError, OneRequest
from stowplan.plugins.nodes.default.device_claims.search import Found, Pick


def allocations(
    question: DeviceQuestion,
    found: Found,
    devices: Sequence[PooledDevice],
    claims: Sequence[ResourceClaim],
    node_name: str,
) -> list[AllocationResult]:
    """Return the allocation of each claim."""
    return [
        AllocationResult(
            devices=AllocatedDevices(
                results=tuple(_result(pick, number, devices, claim) for number, pick in enumerate(picks)),
                config=_configuration(question, found, place, claim),
            ),
            node_selector=node_selector([devices[pick.place] for pick in picks], node_name, place),
        )
        for place, (claim, picks) in enumerate(zip(claims, found.picks, strict=True))
    ]


def _result(pick: Pick, number: int, devices: Sequence[PooledDevice], claim: ResourceClaim) -> AllocatedDevice:
    pooled = devices[pick.place]
    driver, pool, name = pooled.id
    return AllocatedDevice(
        request=pick.request.full_name,
        driver=driver,
        pool=pool,
        device=name,
        admin_access=True if pick.request.admin_access else None,
        tolerations=pick.request.tolerations,
        binding_conditions=pooled.device.binding_conditions,
        binding_failure_conditions=pooled.device.binding_failure_conditions,
        share_id=None if pick.shared is None else share_id(claim, pooled.id, number),
        consumed_capacity={
            capacity: Quantity(canonical(amount.text)) for capacity, amount in (pick.shared or {}).items()
        },
    )


def share_id(claim: ResourceClaim, device: tuple[str, str, str], number: int) -> str:
    """Return the id of a new share: unique, and the same when the decision is made again."""
    whose = (claim.namespace, claim.name, claim.uid, claim.metadata.resource_version)
    text = "/".join((*whose, *device, str(number)))
    digits = blake2b(text.encode(), digest_size=16).hexdigest()
    variant = (
        f"8{digits[12:15]}",
        f"{8 + int(digits[15], 16) % 4:x}{digits[16:19]}",
    )  # RFC 9562: an id of our own making
    return "-".join((digits[:8], digits[8:12], *variant, digits[19:31]))


# -- configuration


def _configuration(
    question: DeviceQuestion, found: Found, place: int, claim: ResourceClaim
) -> tuple[AllocatedConfiguration, ...]:
    """Return the configuration of the classes, each once, and then that of the claim."""
    chosen = _chosen(question, found, place)
    configs: list[tuple[str, list[str], AllocatedConfiguration]] = []
    of_class: dict[str, list[list[str]]] = {}
    for request in chosen:
        device_class = request.device_class
        if device_class.name in of_class:
            for names in of_class[device_class.name]:
                names.append(request.full_name)
            continue
        of_class[device_class.name] = []
        for config in device_class.spec.config:
            names = [request.full_name]
            of_class[device_class.name].append(names)
            configs.append((FROM_CLASS, names, AllocatedConfiguration(opaque=config.opaque)))
    for own in claim.spec.devices.config:
        configs += [
            (FROM_CLAIM, list(own.requests), AllocatedConfiguration(opaque=own.opaque))
            for _ in _repetitions(own.requests, chosen)
        ]
    return tuple(
        AllocatedConfiguration(source=source, requests=tuple(names), opaque=config.opaque)
        for source, names, config in configs
    )


def _repetitions(names: Sequence[str], chosen: Iterable[OneRequest]) -> Iterable[object]:
    """Yield something for each time that kube-scheduler lists a claim's configuration: once per request it names."""
    if not names:
        return (None,)
    return [each for each in chosen if each.base_name in names or (each.parent and each.full_name in names)]


def _chosen(question: DeviceQuestion, found: Found, place: int) -> list[OneRequest]:
    """Return the requests of a claim; of lists the alternative that was chosen."""
    requests = question.claims[place].requests
    return [each.options[found.chosen.get((place, at), 0)] for at, each in enumerate(requests)]


# -- nodes


def node_selector(devices: Sequence[PooledDevice], node_name: str, claim: int) -> NodeSelectorOfDevices | None:
    """Return which nodes can use these devices; None for all. Raise FatalError if that cannot be said."""
    fields: list[NodeRequirement] = []
    expressions: list[NodeRequirement] = []
    for pooled in devices:
        where = pooled.device if pooled.slice.spec.per_device_node_selection else pooled.slice.spec
        if where.node_name or pooled.device.binds_to_node:
            here = NodeRequirement(key="metadata.name", operator="In", values=(node_name,))
            return NodeSelectorOfDevices(node_selector_terms=(NodeTermOfDevices(match_fields=(here,)),))
        terms = () if where.node_selector is None else where.node_selector.node_selector_terms
        if len(terms) > 1:
            problem = f": unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            raise FatalError(problem, claim, before="create NodeSelector for ")
        for term in terms:
            _merge(fields, term.match_fields)
            _merge(expressions, term.match_expressions)
    if not fields and not expressions:
        return None
    term = NodeTermOfDevices(match_expressions=tuple(expressions), match_fields=tuple(fields))
    return NodeSelectorOfDevices(node_selector_terms=(term,))


def _merge(requirements: list[NodeRequirement], more: Iterable[NodeRequirement]) -> None:
    for each in more:
        known = any(
            (one.key, one.operator, set(one.values)) == (each.key, each.operator, set(each.values))
            for one in requirements
        )
        if not known:
            requirements.append(each)
