"""What a namespace allows: its LimitRanges and ResourceQuotas, in the order in which the API server asks them.

defaults ── complete (LimitRanges) ──► validation ──► admitted (LimitRanges, then quotas) ──► charge ──► stored
"""

from __future__ import annotations

from collections.abc import Iterable

from stowplan.embedded.admission import limit_ranges
from stowplan.embedded.documents import Document
from stowplan.embedded.quotas import enforcement
from stowplan.embedded.quotas.enforcement import Charge
from stowplan.embedded.quotas.ledger import QuotaLedger
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.store import DocumentStore

_PODS, _CLAIMS = "pods", "persistentvolumeclaims"


class NamespaceLimits:
    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self.ledger = QuotaLedger(store)
        ranges = store.collection(limit_ranges.LIMIT_RANGES)
        ranges.index(limit_ranges.NAMESPACE, lambda each: str(each["metadata"].get("namespace", "")))

    def apply_to(self, namespace: str) -> bool:
        """True if there is a LimitRange or a quota."""
        return bool(limit_ranges.of_namespace(self._store, namespace) or self.ledger.accounts(namespace))

    def complete(self, resource: ServedResource, document: Document) -> None:
        """Give a new pod the requests and limits that it lacks."""
        if resource.collection == _PODS:
            limit_ranges.complete(document, self._ranges(document))

    def admitted(self, resource: ServedResource, new: Document, old: Document | None = None) -> list[Charge]:
        """What an object is charged that is created, or changed. Raises 403 if the namespace does not allow it."""
        if _is_limited(resource.collection, old):
            limit_ranges.check(resource, new, self._ranges(new))
        return enforcement.charges(self.ledger, resource, new, old)

    def charge(self, charges: Iterable[Charge]) -> None:
        enforcement.write(self._store, charges)

    def _ranges(self, document: Document) -> list[Document]:
        return limit_ranges.of_namespace(self._store, document["metadata"]["namespace"])


def _is_limited(collection: str, old: Document | None) -> bool:
    """True for what LimitRanges are asked about: a pod when it is created, a claim until it terminates."""
    if old is None:
        return collection in (_PODS, _CLAIMS)
    return collection == _CLAIMS and "deletionTimestamp" not in old["metadata"]
