"""Aggregated ClusterRoles: their rules are those of all ClusterRoles that their selectors select."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from stowplan.embedded.authorization.role_kinds import CLUSTER_ROLES
from stowplan.embedded.controllers.actions import Action, UpdateObject
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore, StoreChange
from stowplan.objects import selectors


def rules(role: Document, others: Iterable[Document]) -> list[Document]:
    """The rules that an aggregated role should have: each once, the roles in the order of their names."""
    found: list[Document] = []
    by_name = sorted(others, key=lambda each: each["metadata"]["name"])
    for selector in role["aggregationRule"].get("clusterRoleSelectors", ()):
        for other in by_name:
            if other["metadata"]["name"] != role["metadata"]["name"] and _selects(selector, other):
                found += [rule for rule in other.get("rules", ()) if rule not in found]
    return found


class RoleAggregation:
    """The controller. It looks at all aggregated roles after a change of any ClusterRole."""

    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        return self._aggregated() if change.collection == CLUSTER_ROLES else ()

    def _aggregated(self) -> list[str]:
        found = self._store.collection(CLUSTER_ROLES).items
        return [key for key, stored in found.items() if _aggregates(stored.document)]

    def reconcile(self, key: str, _now: float) -> Iterator[Action]:
        role = self._store.get(CLUSTER_ROLES, key)
        if role is None or not _aggregates(role):
            return
        wanted = rules(role, [stored.document for stored in self._store.all(CLUSTER_ROLES)])
        if role.get("rules", []) != wanted:
            yield UpdateObject(CLUSTER_ROLES, {**role, "rules": wanted})


def _aggregates(role: Document) -> bool:
    return "aggregationRule" in role


def _selects(selector: Document, role: Document) -> bool:
    compiled = selectors.compile_selector(msgspec.convert(selector, selectors.LabelSelector))
    return selectors.matches(compiled, role["metadata"].get("labels", {}))
