"""What an object uses of a quota, by its kind: of every resource that a quota could limit.

All objects are counted ("count/deployments.apps"). Pods, services and claims use more than their number.
"""

from __future__ import annotations

from stowplan.embedded.documents import Document
from stowplan.embedded.quotas import amounts, pod_resources
from stowplan.embedded.quotas.amounts import ONE, ZERO, Amounts
from stowplan.embedded.quotas.pod_resources import HUGE_PAGES

PODS, SERVICES, CLAIMS = "pods", "services", "persistentvolumeclaims"
_COUNT, _REQUESTS, _LIMITS = "count/", "requests.", "limits."
_IGNORED = ("events",)
_COUNTED_BY_NAME = ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_OF_PODS = frozenset(
    (PODS, *_COMPUTE, *(f"{kind}{name}" for kind in (_REQUESTS, _LIMITS) for name in _COMPUTE))
)  # fmt: skip
_MUST_BE_SET = frozenset(f"{kind}{name}" for kind in ("", _REQUESTS, _LIMITS) for name in ("cpu", "memory"))
_OF_SERVICES = (SERVICES, "services.nodeports", "services.loadbalancers")
_STORAGE = f"{_REQUESTS}storage"
_OF_CLAIMS = (CLAIMS, _STORAGE)
_OF_CLASS = ".storageclass.storage.k8s.io/"
_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


def is_used(resource: str, collection: str) -> bool:
    """True if objects of a collection use this resource of a quota."""
    if collection in _IGNORED:
        return False
    if resource == f"{_COUNT}{collection}":
        return True
    if collection == PODS:
        return resource in _OF_PODS or resource.startswith((HUGE_PAGES, f"{_REQUESTS}{HUGE_PAGES}")) or (
            resource.startswith(_REQUESTS) and _is_extended(resource)
        )  # fmt: skip
    if collection == CLAIMS:
        return resource in _OF_CLAIMS or resource.endswith(tuple(f"{_OF_CLASS}{name}" for name in _OF_CLAIMS))
    if collection == SERVICES:
        return resource in _OF_SERVICES
    return resource == collection and collection in _COUNTED_BY_NAME


def is_counted(resource: str) -> bool:
    """True if the usage of a resource is known, so that it has a place in the status of a quota."""
    of = (PODS, SERVICES, CLAIMS, *_COUNTED_BY_NAME)
    return resource.startswith(_COUNT) or any(is_used(resource, collection) for collection in of)


def _is_extended(resource: str) -> bool:
    return "/" in resource and "kubernetes.io/" not in resource


def of(collection: str, document: Document) -> Amounts:
    """What an object uses."""
    if collection in _IGNORED:
        return {}
    found = {f"{_COUNT}{collection}": ONE}
    if collection == PODS:
        return found | (_of_pod(document) if is_charged(document) else {})
    if collection == CLAIMS:
        return found | _of_claim(document)
    if collection == SERVICES:
        return found | _of_service(document)
    return found | ({collection: ONE} if collection in _COUNTED_BY_NAME else {})


def is_charged(pod: Document) -> bool:
    """False for a pod that has ended, or that nothing but finalizers keeps."""
    if pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return False
    metadata = pod["metadata"]
    return "deletionTimestamp" not in metadata or metadata.get("deletionGracePeriodSeconds") != 0


def unspecified(pod: Document, resources: list[str]) -> dict[str, list[str]]:
    """The containers that do not say how much they want of cpu or memory, by the resource of a quota that counts it."""
    spec, found = pod["spec"], dict[str, list[str]]()
    if pod_resources.asks_as_a_whole(spec):
        return found
    for container in pod_resources.containers(spec):
        resource = container.get("resources", {})
        stated = _stated(amounts.read(resource.get("requests", {})), amounts.read(resource.get("limits", {})))
        for name in resources:
            if name in _MUST_BE_SET and name not in stated:
                found.setdefault(name, []).append(container["name"])
    return found


def _of_pod(pod: Document) -> Amounts:
    spec = pod["spec"]
    return _stated(pod_resources.requested(spec, overhead=True), pod_resources.limited(spec, overhead=True))


def _stated(requests: Amounts, limits: Amounts) -> Amounts:
    """Requests and limits by the names that quotas have for them."""
    found = {PODS: ONE}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith(HUGE_PAGES):
            found[name] = found[f"{_REQUESTS}{name}"] = amount
        elif _is_extended(name):
            found[f"{_REQUESTS}{name}"] = amount
    return found | {f"{_LIMITS}{name}": limits[name] for name in _COMPUTE if name in limits}


def _of_claim(claim: Document) -> Amounts:
    found = {CLAIMS: ONE}
    sizes = amounts.read(claim["spec"].get("resources", {}).get("requests", {}))
    if "storage" in sizes:
        allocated = amounts.read(claim.get("status", {}).get("allocatedResources", {}))
        found[_STORAGE] = max(
            sizes["storage"], allocated.get("storage", ZERO), key=lambda each: each.nanos
        ).rounded_up()
    of_class = claim["metadata"].get("annotations", {}).get(_OLD_CLASS) or claim["spec"].get("storageClassName")
    return found | ({f"{of_class}{_OF_CLASS}{name}": amount for name, amount in found.items()} if of_class else {})


def _of_service(service: Document) -> Amounts:
    spec = service["spec"]
    ports, kind = spec.get("ports", ()), spec.get("type")
    found = dict.fromkeys(_OF_SERVICES, ZERO) | {SERVICES: ONE}
    if kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        ports = [port for port in ports if port.get("nodePort")]
    if kind in ("NodePort", "LoadBalancer"):
        found["services.nodeports"] = amounts.whole(len(ports))
    if kind == "LoadBalancer":
        found["services.loadbalancers"] = ONE
    return found
