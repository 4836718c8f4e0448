"""Namespaces: each gets a default service account; the objects in a terminating namespace are deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stowplan.embedded.controllers.actions import Action, CreateDocument, DeleteDocument, FinalizeNamespace, SetStatus
from stowplan.embedded.controllers.queries import terminating, with_condition
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore, StoreChange

_DELETED = "All content successfully deleted, may be waiting on finalization"
_CONDITIONS_WHILE_DELETING = (
    ("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
    ("NamespaceDeletionContentFailure", "ContentDeleted", _DELETED),
)  # fmt: skip


class NamespaceController:
    def __init__(self, store: DocumentStore) -> None:
        self._store = store

    def keys_for(self, change: StoreChange) -> Iterable[str]:
        if change.collection == "namespaces":
            return (change.key,) if change.now is not None else ()
        namespace = change.document["metadata"].get("namespace")
        if namespace is None:
            return ()
        if change.collection == "serviceaccounts" or change.now is None:
            found = self._store.get("namespaces", namespace)
            interesting = found is not None and (terminating(found) or change.collection == "serviceaccounts")
            return (namespace,) if interesting else ()
        return ()

    def reconcile(self, key: str, now: float) -> Iterator[Action]:
        namespace = self._store.get("namespaces", key)
        if namespace is None:
            return
        if not terminating(namespace):
            if self._store.get("serviceaccounts", f"{key}/default") is None:
                yield CreateDocument("serviceaccounts", key, {"metadata": {"name": "default"}})
            return
        left = self._content(key)
        for collection, document in left:
            if not terminating(document):
                name = f"{key}/{document['metadata']['name']}"
                yield DeleteDocument(collection, name, document["metadata"]["uid"], grace=None)
        yield from self._finish(key, now)

    def _content(self, namespace: str) -> list[tuple[str, Document]]:
        found = []
        for collection in self._store.collections():
            for stored in self._store.all(collection.name, namespace) if collection.items else ():
                if stored.document["metadata"].get("namespace") == namespace:
                    found.append((collection.name, stored.document))
        return found

    def _finish(self, key: str, now: float) -> Iterator[Action]:
        """Remove the finalizer of the namespace once it is empty."""
        namespace = self._store.get("namespaces", key)
        if namespace is None:
            return
        if self._content(key):
            conditions = namespace["status"].get("conditions", [])
            for kind, reason, message in _CONDITIONS_WHILE_DELETING:
                conditions = with_condition(conditions, kind, "False", now, reason, message)
            status = {**namespace["status"], "conditions": conditions}
            yield SetStatus("namespaces", key, namespace["metadata"]["uid"], status)
        else:
            yield FinalizeNamespace(key)
