"""Namespaces: each gets its default service account; one that is deleted is emptied first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from stowplan.embedded.controllers.actions import Action, CreateObject, DeleteObject, Finalize, SetStatus
from stowplan.embedded.controllers.queries import leaving, with_condition
from stowplan.embedded.store import DocumentStore, StoreChange

Document: TypeAlias = dict[str, Any]

_DELETED = "All content successfully deleted, may be waiting on finalization"
_TOLD = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionContentFailure", "ContentDeleted", _DELETED),
)  # fmt: skip


class NamespaceController:
    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    def concerns(self, happened: StoreChange) -> Iterable[str]:
        if happened.collection == "namespaces":
            return (happened.key,) if happened.now is not None else ()
        namespace = happened.document["metadata"].get("namespace")
        if namespace is None:
            return ()
        if happened.collection == "serviceaccounts" or happened.now is None:
            found = self._store.get("namespaces", namespace)
            interesting = found is not None and (leaving(found) or happened.collection == "serviceaccounts")
            return (namespace,) if interesting else ()
        return ()

    def reconcile(self, key: str, now: float) -> Iterator[Action]:
        namespace = self._store.get("namespaces", key)
        if namespace is None:
            return
        if not leaving(namespace):
            if self._store.get("serviceaccounts", f"{key}/default") is None:
                yield CreateObject("serviceaccounts", key, {"metadata": {"name": "default"}})
            return
        left = self._content(key)
        for collection, document in left:
            if not leaving(document):
                name = f"{key}/{document['metadata']['name']}"
                yield DeleteObject(collection, name, document["metadata"]["uid"], grace=None)
        yield from self._finish(key, now)

    def _content(self, namespace: str) -> list[tuple[str, Document]]:
        found = []
        for collection in self._store.collections():
            for stored in self._store.all(collection.name, namespace) if collection.items else ():
                if stored.document["metadata"].get("namespace") == namespace:
                    found.append((collection.name, stored.document))
        return found

    def _finish(self, key: str, now: float) -> Iterator[Action]:
        """Its own finalizer goes last; without it the API lets it go."""
        namespace = self._store.get("namespaces", key)
        if namespace is None:
            return
        if self._content(key):
            conditions = namespace["status"].get("conditions", [])
            for kind, reason, message in _TOLD:
                conditions = with_condition(conditions, kind, "False", now, reason, message)
            status = {**namespace["status"], "conditions": conditions}
            yield SetStatus("namespaces", key, namespace["metadata"]["uid"], status)
        else:
            yield Finalize(key)
