"""What is used of each quota. Every change of an object is booked when it happens.

An account is counted once from the objects of its namespace, when its quota is created or its limits change. From then
on a change of an object costs as much as the quotas of its namespace, however many objects there are.
"""

from __future__ import annotations

from stowplan.embedded.documents import Document
from stowplan.embedded.quotas import amounts, usage
from stowplan.embedded.quotas.amounts import ZERO, Amounts
from stowplan.embedded.quotas.scopes import scopes_of
from stowplan.embedded.store import DocumentStore, StoreChange

QUOTAS = "resourcequotas"


class QuotaAccount:
    """A quota, and what is used of it."""

    def __init__(self, quota: Document) -> None:
        metadata, spec = quota["metadata"], quota["spec"]
        self.name = str(metadata["name"])
        self.key = f"{metadata['namespace']}/{self.name}"
        self.spec = spec
        self.hard = amounts.read(spec.get("hard", {}))
        self.used: Amounts = {name: ZERO for name in self.hard if usage.is_counted(name)}
        self._scopes = scopes_of(spec)
        self._resources: dict[str, list[str]] = {}

    def resources(self, collection: str) -> list[str]:
        """The resources of this quota that objects of a collection use."""
        found = self._resources.get(collection)
        if found is None:
            found = self._resources[collection] = [name for name in self.hard if usage.is_used(name, collection)]
        return found

    def is_about(self, collection: str, document: Document) -> bool:
        return bool(self.resources(collection)) and all(each.matches(collection, document) for each in self._scopes)

    def share(self, collection: str, document: Document | None) -> Amounts:
        """What an object uses of this quota."""
        if document is None or not self.is_about(collection, document):
            return {}
        found = usage.of(collection, document)
        return {name: found[name] for name in self.resources(collection) if name in found}

    def book(self, collection: str, before: Document | None, now: Document | None) -> None:
        old, new = self.share(collection, before), self.share(collection, now)
        if old == new:
            return
        for name, amount in old.items():
            self.used[name] -= amount
        amounts.add(self.used, new)

    def status(self, more: Amounts | None = None) -> Document:
        """The status of the quota, after more is used."""
        used = dict(self.used)
        amounts.add(used, more or {})
        hard: dict[str, str] = self.spec.get("hard", {})
        return {"hard": hard, "used": amounts.written(used)} if hard else {}


class QuotaLedger:
    """The accounts of all quotas, in the order of their names within a namespace."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store
        self._accounts: dict[str, dict[str, QuotaAccount]] = {}
        for stored in store.all(QUOTAS):
            self._open(stored.document)
        store.listeners.append(self.handle)

    def accounts(self, namespace: str) -> list[QuotaAccount]:
        found = self._accounts.get(namespace)
        return [found[name] for name in sorted(found)] if found else []

    def account(self, key: str) -> QuotaAccount | None:
        namespace, _, name = key.partition("/")
        return self._accounts.get(namespace, {}).get(name)

    def handle(self, change: StoreChange) -> None:
        opened = self._follow(change) if change.collection == QUOTAS else None
        namespace = change.document["metadata"].get("namespace", "")
        if namespace not in self._accounts or _uses_the_same(change):
            return
        for account in self._accounts[namespace].values():
            if account is not opened:  # it has counted the quota itself already
                account.book(change.collection, change.before, change.now)

    def _follow(self, change: StoreChange) -> QuotaAccount | None:
        """Open an account for a quota that is new or changed, and return it; close that of one that is gone."""
        metadata = change.document["metadata"]
        if change.now is None:
            left = self._accounts.get(metadata["namespace"], {})
            left.pop(metadata["name"], None)
            if not left:
                self._accounts.pop(metadata["namespace"], None)
        elif change.before is None or change.before["spec"] != change.now["spec"]:
            return self._open(change.now)
        return None

    def _open(self, quota: Document) -> QuotaAccount:
        """Count what is used, also by the quota itself."""
        account, namespace = QuotaAccount(quota), quota["metadata"]["namespace"]
        for collection in self._store.collections():
            if collection.items and account.resources(collection.name):
                for stored in self._store.all(collection.name, namespace):
                    account.book(collection.name, None, stored.document)
        self._accounts.setdefault(namespace, {})[account.name] = account
        return account


def _uses_the_same(change: StoreChange) -> bool:
    """True for a change of a pod that is none of what it uses: most changes are of this sort."""
    before, now = change.before, change.now
    if before is None or now is None or change.collection != usage.PODS:
        return False
    return before["spec"] is now["spec"] and usage.is_charged(before) == usage.is_charged(now)
