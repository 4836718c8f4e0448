"""What a pod requests of each resource, and what it is limited to, by its spec.

Containers count together. Init containers run before them, one after the other, so the largest counts; those that keep
running (sidecars) count with the containers, and with the init containers after them.
"""

from __future__ import annotations

from collections.abc import Iterator

from stowplan.embedded.documents import Document
from stowplan.embedded.quotas import amounts
from stowplan.embedded.quotas.amounts import Amounts

_OF_PODS = ("cpu", "memory")  # and huge pages: what the pod as a whole can ask for
HUGE_PAGES = "hugepages-"


def containers(spec: Document) -> Iterator[Document]:
    yield from spec.get("containers", ())
    yield from spec.get("initContainers", ())


def requested(spec: Document, *, overhead: bool) -> Amounts:
    """The sum of the requests; with the pod's overhead for all that counts what a pod takes."""
    found = _total(spec, "requests")
    if overhead:
        amounts.add(found, amounts.read(spec.get("overhead", {})))
    return found


def limited(spec: Document, *, overhead: bool) -> Amounts:
    """The sum of the limits. Overhead counts for resources that are limited."""
    found = _total(spec, "limits")
    if overhead:
        more = amounts.read(spec.get("overhead", {}))
        amounts.add(found, {name: amount for name, amount in more.items() if name in found})
    return found


def asks_as_a_whole(spec: Document) -> bool:
    """True if the pod itself, and not only its containers, has requests or limits."""
    resources = spec.get("resources", {})
    return any(_of_pod(name) for part in ("requests", "limits") for name in resources.get(part, ()))


def _of_pod(name: str) -> bool:
    return name in _OF_PODS or name.startswith(HUGE_PAGES)


def _total(spec: Document, part: str) -> Amounts:
    total: Amounts = {}
    for container in spec.get("containers", ()):
        amounts.add(total, _own(container, part))
    sidecars: Amounts = {}
    most: Amounts = {}
    for container in spec.get("initContainers", ()):
        own = _own(container, part)
        if container.get("restartPolicy") == "Always":
            amounts.add(total, own)
            amounts.add(sidecars, own)
            own = sidecars
        else:
            amounts.add(own, sidecars)
        amounts.raise_to(most, own)
    amounts.raise_to(total, most)
    whole = amounts.read(spec.get("resources", {}).get(part, {}))
    return total | {name: amount for name, amount in whole.items() if _of_pod(name)}


def _own(container: Document, part: str) -> Amounts:
    return amounts.read(container.get("resources", {}).get(part, {}))
