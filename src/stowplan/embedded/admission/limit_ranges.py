"""LimitRanges: the defaults of their own items, the requests and limits that they give to pods, and what they refuse.

A container without a request or a limit gets that of the LimitRanges of its namespace (`complete`). Then every pod and
every claim is compared with their bounds (`check`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import msgspec

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import forbidden
from stowplan.embedded.quotas import amounts, pod_resources
from stowplan.embedded.quotas.amounts import Amount, Amounts
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.store import DocumentStore
from stowplan.objects.quantity import NANO

LIMIT_RANGES = "limitranges"
NAMESPACE = "metadata.namespace"  # the index that finds those of a namespace
_CLAIMS = "persistentvolumeclaims"
_SET = "kubernetes.io/limit-ranger"


class Bound(msgspec.Struct, frozen=True):
    """How much a container, a pod or a claim (`kind`) may ask of a resource."""

    resource: str
    kind: str
    amount: Amount

    def of_usage(self, word: str) -> str:
        return f"{word} {self.resource} usage per {self.kind} is {self.amount}"


Problem: TypeAlias = Callable[[Bound, Amount | None, Amount | None], str]  # what is said of a request and a limit


def defaults(limit_range: Document) -> None:
    """Default limits of containers are the maximum; default requests are the default limits, or else the minimum."""
    for item in limit_range.get("spec", {}).get("limits", ()):
        if item.get("type") != "Container":
            continue
        limits = {**item.get("max", {}), **item.get("default", {})}
        requests = {**item.get("min", {}), **limits, **item.get("defaultRequest", {})}
        for name, found in (("default", limits), ("defaultRequest", requests)):
            if found:
                item[name] = found


def of_namespace(store: DocumentStore, namespace: str) -> list[Document]:
    """The LimitRanges of a namespace, by name."""
    found = store.collection(LIMIT_RANGES).find(NAMESPACE, namespace) or ()
    return sorted((stored.document for stored in found), key=lambda each: str(each["metadata"]["name"]))


def complete(pod: Document, limit_ranges: list[Document]) -> None:
    """Set the requests and limits that the containers of a pod lack, and tell so in an annotation."""
    for limit_range in limit_ranges:
        items = [item for item in _items(limit_range) if item["type"] == "Container"]
        told = list[str]()
        for kind, list_name in (("container", "containers"), ("init container", "initContainers")):
            for container in pod["spec"].get(list_name, ()):
                told += _completed(container, kind, items)
        if told:
            annotations = pod["metadata"].setdefault("annotations", {})
            annotations[_SET] = f"LimitRanger plugin set: {'; '.join(told)}"


def _completed(container: Document, kind: str, items: list[Document]) -> Iterator[str]:
    resources = container.setdefault("resources", {})
    for part, source, word in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
        known = resources.get(part, {})
        missing = {
            name: amount for item in items for name, amount in item.get(source, {}).items() if name not in known
        }  # fmt: skip
        if missing:
            resources[part] = {**known, **missing}
            yield f"{', '.join(sorted(missing))} {word} for {kind} {container['name']}"


def check(resource: ServedResource, document: Document, limit_ranges: list[Document]) -> None:
    """Raise 403 for a pod or a claim that is outside the bounds of a LimitRange."""
    problems = _claim_problems if resource.collection == _CLAIMS else _pod_problems
    for limit_range in limit_ranges:
        found = list(dict.fromkeys(each for item in _items(limit_range) for each in problems(document, item)))
        if found:
            why = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
            raise forbidden(resource, document["metadata"]["name"], why)


def _items(limit_range: Document) -> list[Document]:
    found: list[Document] = limit_range["spec"].get("limits", [])
    return found


def _pod_problems(pod: Document, item: Document) -> Iterator[str]:
    spec = pod["spec"]
    if item["type"] == "Container":
        for container in pod_resources.containers(spec):
            resources = container.get("resources", {})
            requests, limits = (amounts.read(resources.get(part, {})) for part in ("requests", "limits"))
            yield from _outside(item, requests, limits)
    elif item["type"] == "Pod":
        requests = pod_resources.requested(spec, overhead=False)
        yield from _outside(item, requests, pod_resources.limited(spec, overhead=False))


def _claim_problems(claim: Document, item: Document) -> Iterator[str]:
    if item["type"] != "PersistentVolumeClaim":
        return
    requests = amounts.read(claim["spec"].get("resources", {}).get("requests", {}))
    yield from _each(item, "min", _below, requests, {})
    yield from _each(item, "max", _above_request, requests, {})


def _outside(item: Document, requests: Amounts, limits: Amounts) -> Iterator[str]:
    yield from _each(item, "min", _below, requests, limits)
    yield from _each(item, "max", _above, requests, limits)
    yield from _each(item, "maxLimitRequestRatio", _ratio, requests, limits)


def _each(
    item: Document, part: str, problem: Problem, requests: Amounts, limits: Amounts
) -> Iterator[str]:  # fmt: skip
    for name, text in sorted(item.get(part, {}).items()):
        bound = Bound(name, item["type"], amounts.parsed(text))
        if found := problem(bound, requests.get(name), limits.get(name)):
            yield found


def _below(least: Bound, request: Amount | None, limit: Amount | None) -> str:
    bound = least.of_usage("minimum")
    if request is None:
        return f"{bound}.  No request is specified"
    if least.amount > request:
        return f"{bound}, but request is {request}"
    return f"{bound}, but limit is {limit}" if limit is not None and least.amount > limit else ""


def _above(most: Bound, request: Amount | None, limit: Amount | None) -> str:
    bound = most.of_usage("maximum")
    if limit is None:
        return f"{bound}.  No limit is specified"
    if limit > most.amount:
        return f"{bound}, but limit is {limit}"
    return f"{bound}, but request is {request}" if request is not None and request > most.amount else ""


def _above_request(most: Bound, request: Amount | None, _limit: Amount | None) -> str:
    bound = most.of_usage("maximum")
    if request is None:
        return f"{bound}.  No request is specified"
    return f"{bound}, but request is {request}" if request > most.amount else ""


def _ratio(most: Bound, request: Amount | None, limit: Amount | None) -> str:
    bound = f"{most.resource} max limit to request ratio per {most.kind} is {most.amount}"
    if request is None or not request.nanos:
        return f"{bound}, but no request is specified or request is 0"
    if limit is None or not limit.nanos:
        return f"{bound}, but no limit is specified or limit is 0"
    ratio = limit.nanos / request.nanos
    return f"{bound}, but provided ratio is {ratio:f}" if ratio * NANO > most.amount.nanos else ""
