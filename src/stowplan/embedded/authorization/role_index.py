"""The rules of a user, found by an index of the subjects of all bindings: no request looks at all bindings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from stowplan.embedded.authorization import rules
from stowplan.embedded.authorization.role_kinds import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from stowplan.embedded.authorization.rules import Rule
from stowplan.embedded.authorization.users import ApiUser, account_name
from stowplan.embedded.documents import Document
from stowplan.embedded.store import DocumentStore, StoreChange

_Subject: TypeAlias = tuple[bool, str]  # whether it is a group, and its name


class Grant(msgspec.Struct, frozen=True):
    """What a binding grants to a subject. `rules` is None if the role does not exist."""

    binding: Document
    subject: Document
    rules: tuple[Rule, ...] | None

    def shown(self) -> str:
        """The grant as the reason of a decision has it."""
        name, role = self.binding["metadata"]["name"], self.binding["roleRef"]
        namespace = self.binding["metadata"].get("namespace", "")
        full = f"{name}/{namespace}" if namespace else name
        who = self.subject["name"]
        if self.subject["kind"] == "ServiceAccount":
            who = f"{who}/{self.subject.get('namespace') or namespace}"
        return f'{self.binding["kind"]} "{full}" of {role["kind"]} "{role["name"]}" to {self.subject["kind"]} "{who}"'


class RoleIndex:
    """Follows a store from its creation on."""

    def __init__(self, store: DocumentStore) -> None:
        # By namespace ("": the whole cluster) and subject, the bindings that name it, by key.
        self._granted: dict[tuple[str, _Subject], dict[str, tuple[Document, Document]]] = {}
        self._rules: dict[tuple[str, str], tuple[Rule, ...]] = {}  # by collection and key
        for name in (CLUSTER_ROLES, ROLES, CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS):
            for key, stored in store.collection(name).items.items():
                self.follow(StoreChange(name, key, None, stored.document))
        store.listeners.append(self.follow)

    def follow(self, change: StoreChange) -> None:
        if change.collection in (CLUSTER_ROLES, ROLES):
            if change.now is None:
                self._rules.pop((change.collection, change.key), None)
            else:
                self._rules[change.collection, change.key] = rules.read(change.now)
        elif change.collection in (CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS):
            self._forget(change.key, change.before)
            self._add(change.key, change.now)

    def _add(self, key: str, binding: Document | None) -> None:
        for subject in binding.get("subjects", ()) if binding else ():
            assert binding is not None
            namespace = binding["metadata"].get("namespace", "")
            granted = self._granted.setdefault((namespace, _subject(subject, namespace)), {})
            granted.setdefault(key, (binding, subject))

    def _forget(self, key: str, binding: Document | None) -> None:
        for subject in binding.get("subjects", ()) if binding else ():
            assert binding is not None
            namespace = binding["metadata"].get("namespace", "")
            where = namespace, _subject(subject, namespace)
            granted = self._granted.get(where, {})
            granted.pop(key, None)
            if not granted:
                self._granted.pop(where, None)

    def rules_of(self, role: Document, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of the role that a binding in a namespace refers to; None if it does not exist."""
        if role["kind"] == "ClusterRole":
            return self._rules.get((CLUSTER_ROLES, role["name"]))
        return self._rules.get((ROLES, f"{namespace}/{role['name']}"))

    def grants(self, user: ApiUser, namespace: str) -> Iterator[Grant]:
        """What a user is granted for the whole cluster, then in the namespace."""
        subjects: list[_Subject] = [(False, user.name), *((True, group) for group in user.groups)]
        for scope in dict.fromkeys(("", namespace)):
            for subject in subjects:
                for binding, named in self._granted.get((scope, subject), {}).values():
                    yield Grant(binding, named, self.rules_of(binding["roleRef"], scope))


def _subject(subject: Document, namespace: str) -> _Subject:
    if subject["kind"] == "ServiceAccount":
        return False, account_name(subject.get("namespace") or namespace, subject["name"])
    return subject["kind"] == "Group", subject["name"]
