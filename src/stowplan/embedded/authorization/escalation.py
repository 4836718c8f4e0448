"""Nobody grants what they do not have: who writes a role must have its rules, who binds one the rules of that role.

The verbs `escalate` (on roles) and `bind` (on the role that is bound) are the ways around it.
"""

from __future__ import annotations

from stowplan.embedded.authorization import rules
from stowplan.embedded.authorization.access_request import AccessRequest
from stowplan.embedded.authorization.authorizer import RoleAuthorizer
from stowplan.embedded.authorization.role_kinds import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    GROUP,
    ROLE_BINDINGS,
    ROLES,
)
from stowplan.embedded.authorization.rules import Rule
from stowplan.embedded.authorization.users import ApiUser
from stowplan.embedded.documents import Document
from stowplan.embedded.errors import forbidden, not_found
from stowplan.embedded.resources import ServedResource

_LONGEST = 10_000  # characters of missing rules in a message
_TOO_MANY = (
    f"its rules have more than {rules.MOST_PARTS} combinations of API groups, resources, verbs and names "
    "that no single rule of the user covers: use several roles, or *"
)
_FOR_COLLECTION = ("ownerReferences", "finalizers", "managedFields")


class EscalationGuard:
    def __init__(self, authorizer: RoleAuthorizer) -> None:
        self._authorizer = authorizer

    def check(
        self, resource: ServedResource, document: Document, user: ApiUser | None, old: Document | None = None
    ) -> None:  # fmt: skip
        """Raise 403 if the user may not write this role or binding, or change the old one. Controllers are no users."""
        if resource.group != GROUP or user is None or user.is_superuser or _is_for_collection(document, old):
            return
        if resource.collection in (ROLES, CLUSTER_ROLES):
            self._check_role(resource, document, user)
        elif resource.collection in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
            self._check_binding(resource, document, user)

    def _check_role(self, resource: ServedResource, role: Document, user: ApiUser) -> None:
        name, namespace = role["metadata"].get("name", ""), role["metadata"].get("namespace", "")
        request = AccessRequest("escalate", GROUP, resource.plural, name=name, namespace=namespace)
        if self._authorizer.allows(user, request):
            return
        if problem := self._problem(user, namespace, rules.read(role)):
            raise forbidden(resource, name, problem)
        if "aggregationRule" in role and self._problem(user, "", rules.EVERYTHING):
            raise forbidden(resource, name, "must have cluster-admin privileges to use the aggregationRule")

    def _check_binding(self, resource: ServedResource, binding: Document, user: ApiUser) -> None:
        role, namespace = binding["roleRef"], binding["metadata"].get("namespace", "")
        plural = {"Role": "roles", "ClusterRole": "clusterroles"}.get(role["kind"], "")
        request = AccessRequest("bind", GROUP, plural, name=role["name"], namespace=namespace)
        if not plural or self._authorizer.allows(user, request):
            return
        granted = self._authorizer.index.rules_of(role, namespace)
        if granted is None:
            raise not_found(resource, role["name"])
        if problem := self._problem(user, namespace, granted):
            raise forbidden(resource, binding["metadata"].get("name", ""), problem)

    def _problem(self, user: ApiUser, namespace: str, wanted: tuple[Rule, ...]) -> str:
        owned, lost = self._authorizer.rules(user, namespace)
        try:
            missing = rules.compact(rules.missing(owned, wanted))
        except rules.TooManyPartsError:
            return _TOO_MANY
        if not missing:
            return ""
        shown = _cut("\n".join(sorted({rule.shown() for rule in missing})))
        who = f'user "{user.name}" (groups={rules.quoted(user.groups)})'
        errors = f"; resolution errors: [{' '.join(lost)}]" if lost else ""
        return f"{who} is attempting to grant RBAC permissions not currently held:\n{shown}{errors}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text) - _LONGEST} more characters)"


def _is_for_collection(document: Document, old: Document | None) -> bool:
    """True if an update changes nothing but what garbage collection needs: owners and finalizers."""
    return old is not None and _essence(document) == _essence(old)


def _essence(document: Document) -> Document:
    metadata = {name: value for name, value in document["metadata"].items() if name not in _FOR_COLLECTION}
    return {**document, "metadata": metadata}
