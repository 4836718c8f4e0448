"""Claims for extended resources that a device class stands for.

A pod asks for `example.com/gpu: 2`, as of a device plugin. On a node that has none of it to offer in its status,
devices of the class are allocated instead, through a claim that the scheduler makes for the pod: one request for each
container and resource, named after their places.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from stowplan.columns.devices.classes import ClassesOfResources
from stowplan.objects.actions import RequestMapping
from stowplan.objects.meta import OwnerReference
from stowplan.objects.quantity import value
from stowplan.objects.resource_claims import (
    OF_EXTENDED_RESOURCES,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimMeta,
    ResourceClaimSpec,
)

if TYPE_CHECKING:
    from stowplan.objects.pod_parts import Container
    from stowplan.objects.pods import Pod

IN_MEMORY = "<extended-resources>"  # the name of such a claim until it is written


def claim_for(pod: Pod, requests: Sequence[DeviceRequest]) -> ResourceClaim:
    """Return the claim of a pod's extended resources as it is before it is written."""
    owner = OwnerReference("Pod", pod.name, pod.uid, "v1", controller=True)
    metadata = ResourceClaimMeta(
        name=IN_MEMORY,
        namespace=pod.namespace,
        generate_name=f"{pod.name}-extended-resources-",
        annotations={OF_EXTENDED_RESOURCES: "true"},
        owner_references=(owner,),
    )
    spec = ResourceClaimSpec(devices=DeviceClaim(requests=tuple(requests)))
    return ResourceClaim(metadata=metadata, spec=spec)


def requests_of(
    pod: Pod, resources: Collection[str], classes: ClassesOfResources
) -> tuple[list[DeviceRequest], list[RequestMapping]]:
    """Return the requests for these resources, and which container gets which request."""
    requests: list[DeviceRequest] = []
    mappings: list[RequestMapping] = []
    for resource in sorted(resources):
        found = classes.of(resource)
        if found is not None:
            more, mapped = _of_resource(pod, resource, found.name)
            requests += more
            mappings += mapped
    return sorted(requests, key=lambda request: request.name), mappings


def _of_resource(pod: Pod, resource: str, name: str) -> tuple[list[DeviceRequest], list[RequestMapping]]:
    """Plain init containers use what later containers get, and share the most that one of them needs beyond that."""
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    first = len(pod.spec.init_containers)
    brief = [place for place in range(first) if not containers[place].sidecar]
    lasting: dict[int, DeviceRequest] = {}
    of_lasting: list[RequestMapping] = []
    for place, container in enumerate(containers):
        if place not in brief:
            made, mapped = _of_container(place, container, resource, name, ())
            of_lasting += mapped
            if made is not None:
                lasting[place] = made
    largest: DeviceRequest | None = None
    of_brief: list[RequestMapping] = []
    names: set[str] = set()
    for place in brief:
        later = [each for at, each in lasting.items() if at >= place]
        made, mapped = _of_container(place, containers[place], resource, name, later)
        of_brief += mapped
        if made is not None:
            names.add(made.name)
            if largest is None or _count(largest) < _count(made):
                largest = made
    if largest is not None:
        of_brief = [
            RequestMapping(each.container_name, largest.name, resource) if each.request_name in names else each
            for each in of_brief
        ]
    return [*([] if largest is None else [largest]), *lasting.values()], [*of_lasting, *of_brief]


def _of_container(
    place: int, container: Container, resource: str, name: str, reusable: Sequence[DeviceRequest]
) -> tuple[DeviceRequest | None, list[RequestMapping]]:
    """Return the request of a container beyond what it can reuse, and what it gets."""
    requested = container.resources.requests
    wanted = value(requested[resource]) if resource in requested else 0
    mapped: list[RequestMapping] = []
    if not wanted:
        return None, mapped
    for each in reusable:
        mapped.append(RequestMapping(container.name, each.name, resource))
        wanted -= _count(each)
        if wanted <= 0:
            return None, mapped
    own = f"container-{place}-request-{sorted(requested).index(resource)}"
    mapped.append(RequestMapping(container.name, own, resource))
    exactly = ExactDeviceRequest(device_class_name=name, allocation_mode="ExactCount", count=wanted)
    return DeviceRequest(name=own, exactly=exactly), mapped


def _count(request: DeviceRequest) -> int:
    return 0 if request.exactly is None else request.exactly.count
