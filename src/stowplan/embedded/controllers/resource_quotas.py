"""ResourceQuotas: their status says what is used. The API writes it for what is created; this, for all else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.embedded.controllers.actions import Action, SetStatus
from stowplan.embedded.quotas.ledger import QUOTAS, QuotaLedger
from stowplan.embedded.store import DocumentStore, StoreChange


class QuotaController:
    def __init__(self, store: DocumentStore, ledger: QuotaLedger) -> None:
        self._store, self._ledger = store, ledger

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        namespace = change.document["metadata"].get("namespace", "")
        touched = [each.key for each in self._ledger.accounts(namespace) if each.resources(change.collection)]
        return [*touched, change.key] if change.collection == QUOTAS else touched

    def reconcile(self, key: str, _now: float) -> Iterator[Action]:
        account, quota = self._ledger.account(key), self._store.get(QUOTAS, key)
        if account is None or quota is None:
            return
        status = account.status()
        if quota.get("status") != status:
            yield SetStatus(QUOTAS, key, quota["metadata"]["uid"], status)
