"""Decides what a user may do: superusers everything, all others what the rules of their roles allow."""

from __future__ import annotations

import msgspec

from stowplan.embedded.authorization.access_request import AccessRequest
from stowplan.embedded.authorization.role_index import Grant, RoleIndex
from stowplan.embedded.authorization.rules import Rule
from stowplan.embedded.authorization.users import ApiUser


class AccessDecision(msgspec.Struct, frozen=True):
    """`reason` says which binding allows it, or what is wrong with those that could; it may be empty."""

    allowed: bool
    reason: str = ""


class RoleAuthorizer:
    def __init__(self, index: RoleIndex) -> None:
        self.index = index

    def decide(self, user: ApiUser, request: AccessRequest) -> AccessDecision:
        if user.is_superuser:
            return AccessDecision(True)
        lost = []
        for grant in self.index.grants(user, request.namespace):
            if grant.rules is None:
                lost.append(_not_found(grant))
            elif any(rule.allows(request) for rule in grant.rules):
                return AccessDecision(True, f"RBAC: allowed by {grant.shown()}")
        return AccessDecision(False, f"RBAC: {joined(lost)}" if lost else "")

    def allows(self, user: ApiUser, request: AccessRequest) -> bool:
        return self.decide(user, request).allowed

    def rules(self, user: ApiUser, namespace: str) -> tuple[list[Rule], list[str]]:
        """All rules of a user in a namespace, and what is wrong with the bindings that have none."""
        found, lost = list[Rule](), list[str]()
        for grant in self.index.grants(user, namespace):
            if grant.rules is None:
                lost.append(_not_found(grant))
            else:
                found += grant.rules
        return found, lost


def _not_found(grant: Grant) -> str:
    role = grant.binding["roleRef"]
    return f'{role["kind"].lower()}.rbac.authorization.k8s.io "{role["name"]}" not found'


def joined(errors: list[str]) -> str:
    """Several errors as Kubernetes joins them: each once."""
    each = list(dict.fromkeys(errors))
    return each[0] if len(each) == 1 else f"[{', '.join(each)}]"
