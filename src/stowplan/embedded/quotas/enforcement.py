"""Which requests exceed a quota, in the words of the API server; and what the others are charged."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from stowplan.embedded.documents import Document
from stowplan.embedded.errors import ApiError, forbidden
from stowplan.embedded.quotas import scopes, usage
from stowplan.embedded.quotas.amounts import Amount, Amounts
from stowplan.embedded.quotas.ledger import QUOTAS, QuotaAccount, QuotaLedger
from stowplan.embedded.resources import ServedResource
from stowplan.embedded.store import DocumentStore


class Charge(msgspec.Struct, frozen=True):
    """What a request adds to what is used of a quota."""

    account: QuotaAccount
    more: Amounts

    def exceeded(self) -> list[str]:
        """The resources of which more would be used than the quota allows."""
        account = self.account
        return sorted(name for name in self.more if account.used[name] + self.more[name] > account.hard[name])


def charges(
    ledger: QuotaLedger, resource: ServedResource, new: Document, old: Document | None = None
) -> list[Charge]:  # fmt: skip
    """The charges of a request that creates or changes an object. Raises 403 if a quota refuses it."""
    collection, metadata = resource.collection, new["metadata"]
    accounts = ledger.accounts(metadata.get("namespace", "")) if resource.namespaced else []
    if not accounts or (old is not None and not _may_use_more(collection, new, old)):
        return []
    about = [account for account in accounts if account.is_about(collection, new)]
    for account in about:
        if why := _lacks(account, collection, new):
            raise forbidden(resource, metadata["name"], f"failed quota: {account.name}: must specify {why}")
    found = [Charge(account, _added(account, collection, new, old)) for account in about]
    for charge in found:
        if charge.exceeded():
            raise _exceeded(resource, metadata["name"], charge)
    return [charge for charge in found if charge.more]


def write(store: DocumentStore, found: Iterable[Charge]) -> None:
    """Write what will be used into the status of the quotas."""
    for charge in found:
        quota = store.get(QUOTAS, charge.account.key)
        if quota is not None:
            document = {**quota, "metadata": dict(quota["metadata"]), "status": charge.account.status(charge.more)}
            store.put(QUOTAS, charge.account.key, document)


def _may_use_more(collection: str, new: Document, old: Document) -> bool:
    """True for updates that quotas look at. A pod can only move between the scopes of quotas."""
    if collection == usage.PODS:
        return scopes.ends(new) != scopes.ends(old)
    return collection in (usage.SERVICES, usage.CLAIMS)


def _lacks(account: QuotaAccount, collection: str, document: Document) -> str:
    if collection != usage.PODS:
        return ""
    missing = usage.unspecified(document, account.resources(collection))
    return "; ".join(f"{name} for: {','.join(sorted(set(missing[name])))}" for name in sorted(missing))


def _added(account: QuotaAccount, collection: str, new: Document, old: Document | None) -> Amounts:
    share, before = account.share(collection, new), account.share(collection, old)
    added = {name: amount - before[name] if name in before else amount for name, amount in share.items()}
    return {name: amount for name, amount in added.items() if amount.nanos > 0}


def _exceeded(resource: ServedResource, name: str, charge: Charge) -> ApiError:
    account, names = charge.account, charge.exceeded()

    def told(amounts: dict[str, Amount]) -> str:
        return ",".join(f"{each}={amounts[each]}" for each in names)

    why = f"requested: {told(charge.more)}, used: {told(account.used)}, limited: {told(account.hard)}"
    return forbidden(resource, name, f"exceeded quota: {account.name}, {why}")
